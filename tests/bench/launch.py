"""From debug_launch's request to its reply, with one function to trace, on a node that is up and whose spare pair is warm."""

from __future__ import annotations

import asyncio
import time

from tests.bench.figure import Figure, percentile, spread
from tests.bench.options import Options, live_node
from tests.harness.targets import TARGETS, program


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options.times(20, 3)))


async def _measure(times: int) -> list[Figure]:
    path = program("bench_calls.c", "-O2")
    took: list[float] = []
    async with live_node() as strobe:
        for number in range(times + 1):
            await strobe.call("debug_trace", add=["work"])
            started = time.perf_counter()
            reply = await strobe.call("debug_launch", command=str(path), args=["10", "1", "1"], projectRoot=str(TARGETS))
            if number:  # the first one fills the symbol cache, and the pair may not be warm yet
                took.append(time.perf_counter() - started)
            await strobe.until_ended(reply["sessionId"])
            await strobe.call("debug_session", action="stop", sessionId=reply["sessionId"])
            await asyncio.sleep(3.0)  # a new spare pair gets ready and warm
    return [Figure("launch to reply, one function traced", percentile(took, 0.5), "s", 0.25, note=f"p90 {percentile(took, 0.9):.3f} s; {spread(took)} s")]
