"""The first hook in a binary of 100,000 functions that Strobe has never seen, next to gdb setting one breakpoint there.

What Strobe takes for it is launch-to-reply with one function to trace less launch-to-reply with nothing to trace, each on a node whose symbol cache is
empty and whose processes are warm. gdb's figure is `gdb -batch -ex "break NAME"`, from start to end.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path
from statistics import median

from tests.bench.figure import Figure, spread
from tests.bench.generate_large import function_name, large_program
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.targets import TARGETS, program, require


def run(options: Options) -> list[Figure]:
    path, name = large_program(), function_name(100, 250)
    cold, bare, warm, gdb = [], [], [], []
    for _ in range(options.times(5)):
        gdb.append(_gdb(path, name))
        traced, again = asyncio.run(_launches(path, [name]))
        untraced, _ = asyncio.run(_launches(path, []))
        cold.append(traced - untraced)
        warm.append(again)
        bare.append(untraced)
    took = median(cold)
    note = f"{spread(cold)} s; launch without a trace {median(bare):.3f} s; with it and a warm cache {median(warm):.3f} s"
    return [
        Figure("cold first hook, 100,000 functions", took, "s", 0.15, note=note),
        Figure("cold first hook against gdb's breakpoint", took / median(gdb), "x", 0.2, note=f"gdb {spread(gdb)} s"),
    ]


async def _launches(path: Path, patterns: list[str]) -> tuple[float, float]:
    """Seconds from debug_launch to its reply in a new home, and once more in the same home."""
    async with live_node() as strobe:
        await _launch(strobe, program("exits.c", "-O0"), [])  # the processes are up and warm after this one
        await asyncio.sleep(3.0)
        first = await _launch(strobe, path, patterns)
        await asyncio.sleep(3.0)
        return first, await _launch(strobe, path, patterns)


async def _launch(strobe: Strobe, path: Path, patterns: list[str]) -> float:
    if patterns:
        await strobe.call("debug_trace", add=patterns)
    started = time.perf_counter()
    reply = await strobe.call("debug_launch", command=str(path), projectRoot=str(TARGETS))
    took = time.perf_counter() - started
    await strobe.until_ended(reply["sessionId"])
    await strobe.call("debug_session", action="stop", sessionId=reply["sessionId"])
    return took


def _gdb(path: Path, name: str) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        [require("gdb"), "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", f"break {name}", str(path)],
        capture_output=True, text=True, timeout=120, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "Breakpoint 1" not in done.stdout:
        raise RuntimeError(done.stdout + done.stderr)
    return time.perf_counter() - started
