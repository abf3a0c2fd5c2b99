"""Sessions one right after the other, as a script or a test suite makes them: launch with one function to trace, until the end, stop. With the template that
their processes are forked from, and without it, when each starts interpreters of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from statistics import median

from tests.bench.figure import Figure, spread
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.node import processes_of
from tests.harness.targets import program

FIRST = 3  # fill the caches


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options.times(12, 2)))


async def _measure(times: int) -> list[Figure]:
    figures: list[Figure] = []
    for forked in (True, False):
        async with live_node() as strobe:
            await _some(strobe, FIRST)
            if not forked:
                (template,) = [int(line.split()[0]) for line in processes_of(strobe.home) if "template of sessions" in line]
                os.kill(template, signal.SIGKILL)  # another one comes 30 s after this was noticed
            await _some(strobe, 1)
            began = time.perf_counter()
            launches = await _some(strobe, times)
            each = (time.perf_counter() - began) / times
        how = "forked from the template" if forked else "started"
        figures += [
            Figure(f"session after session, processes {how}", each, "s"),
            Figure(f"launch right after another session, processes {how}", median(launches), "s", note=spread(launches)),
        ]
    return figures


async def _some(strobe: Strobe, count: int) -> list[float]:
    path: Path = program("ticks.c", "-O0")
    took = []
    for _ in range(count):
        began = time.perf_counter()
        session = await strobe.launch(path, "2", "1", trace=["tick"])
        took.append(time.perf_counter() - began)
        await strobe.until_ended(session)
        await strobe.call("debug_session", action="stop", sessionId=session)
    return took
