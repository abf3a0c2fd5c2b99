"""What debug_test costs next to the framework by itself: a suite of 400 tests that compute for about 5 ms each, run by turns.

`duration`: as the run tells it; `to the reply`: from the call of debug_test to the answer that has the result, which waits for the end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench.figure import Figure, spread
from tests.bench.options import Options, live_node

TESTS = 400
SUITE = """import {test} from 'node:test';
for (let number = 0; number < %d; number++)
    test('number ' + number, () => { for (let sum = 0, i = 0; i < 4e6; i++) sum += i %% 7; });
"""


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options.times(9, 2)))


async def _measure(times: int) -> list[Figure]:
    node = shutil.which("node")
    assert node is not None, "this bench needs node"
    folder = Path(tempfile.mkdtemp(prefix="strobe-bench-"))
    bare: list[float] = []
    ours: list[float] = []
    replied: list[float] = []
    try:
        (folder / "package.json").write_text('{"name": "many", "version": "1.0.0", "type": "module"}')
        (folder / "many.test.js").write_text(SUITE % TESTS)
        async with live_node() as strobe:
            for number in range(times + 1):
                began = time.perf_counter()
                subprocess.run([node, "--test"], cwd=folder, check=True, capture_output=True, env={**os.environ, "CI": "1", "NO_COLOR": "1"})
                middle = time.perf_counter()
                reply = await strobe.call("debug_test", projectRoot=str(folder))
                while reply["status"] == "running":
                    reply = await strobe.call("debug_test", action="status", testRunId=reply["testRunId"])
                if number:
                    bare.append(middle - began)
                    ours.append(reply["result"]["summary"]["durationMs"] / 1000)
                    replied.append(time.perf_counter() - middle)
                    assert reply["result"]["summary"]["passed"] == TESTS, reply
                await asyncio.sleep(3.0)  # a new spare pair gets ready and warm
    finally:
        shutil.rmtree(folder)
    more = [one - other for one, other in zip(ours, bare, strict=True)]
    return [
        Figure("node --test by itself", median(bare), "s", note=spread(bare)),
        Figure("the same by debug_test", median(ours), "s", note=spread(ours)),
        Figure("of the time by itself", median(ours) / median(bare), "x", 1.03),
        Figure("more than by itself", median(more) * 1000, "ms", 100, note="median of pairs"),
        Figure("call to the reply, more than by itself", (median(replied) - median(bare)) * 1000, "ms"),
    ]
