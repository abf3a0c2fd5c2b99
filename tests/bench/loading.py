"""A later debug_trace with a visit of Frida's and without one, and what loading a library costs while patterns wait for libraries.

The two ways are compared in one run on the same idle program. A load is what the program itself measures around dlopen(3), the first one apart from the
next, which find the library's hooks asleep.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path
from statistics import median

from actors.session.ptrace.patching import install, restore, take_over
from actors.spawner.injector import Injector
from strobe.lanes.pool import Pool, create_pool
from strobe.protocol.spawner import HookSpec, PrepareReply
from tests.actor.test_apart import prepare_apart
from tests.bench.figure import Figure, spread
from tests.bench.options import Options, live_node
from tests.harness.hooking import hook_specs, raw_plan
from tests.harness.mcp import Strobe
from tests.harness.targets import TARGETS, program
from tests.harness.visits import injector, prepare

PLUGIN = ("-O1", "-shared", "-fPIC")


def run(options: Options) -> list[Figure]:
    return [*asyncio.run(_later_traces(options.times(15))), *asyncio.run(_loads(options.times(40, 5)))]


async def _later_traces(times: int) -> list[Figure]:
    path = program("ticks.c", "-O0")
    pool = create_pool(Path("/dev/shm") / f"strobe-test-bench-{os.getpid()}", 8)
    process = subprocess.Popen([str(path), "1", "120000"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        async with injector() as host:
            assert process.stdout is not None
            process.stdout.readline()
            first = await prepare(host, process.pid, pool, [])
            await asyncio.to_thread(take_over, process.pid, first.writes, first.patches, first.arm_address)
            hooks = hook_specs(process.pid, path, ["tick", "weight", "label"], plan=raw_plan())
            visited = [await _traced(host, process.pid, pool, hooks, None) for _ in range(times)]
            apart = [await _traced(host, process.pid, pool, hooks, first) for _ in range(times)]
    finally:
        process.kill()
        process.communicate()
        pool.unlink()
    return [
        Figure("later trace of 3 functions, by a visit", median(visited), "ms", note=spread(visited)),
        Figure("later trace of 3 functions, apart", median(apart), "ms", note=spread(apart)),
    ]


async def _traced(host: Injector, pid: int, pool: Pool, hooks: list[HookSpec], first: PrepareReply | None) -> float:
    """Milliseconds from plans to patches. `first`: of an earlier visit, whose recorder is asked; None: by another visit."""
    began = time.perf_counter()
    reply = await (prepare(host, pid, pool, hooks) if first is None else prepare_apart(host, pid, pool, hooks, first))
    await asyncio.to_thread(install, pid, reply.writes, reply.patches)
    took = (time.perf_counter() - began) * 1000
    await asyncio.to_thread(restore, pid, reply.patches)
    return took


async def _loads(times: int) -> list[Figure]:
    loader, library = program("loader.c", "-O1", "-ldl"), program("plugin.c", *PLUGIN, name="libone.so")
    commands = ["clock", *[f"open={library}", "close"] * times]
    alone = _microseconds(subprocess.run([str(loader), *commands], capture_output=True, text=True, check=False, timeout=60).stderr)
    figures = [Figure("dlopen of a small library, untraced", median(alone[1:]), "us", note=spread(alone[1:]))]
    async with live_node() as strobe:
        for name, patterns in (
            ("no pattern", []), ("a pattern that it has nothing for", ["elsewhere_*"]), ("a pattern that takes four functions of it", ["plugin_*"])
        ):  # fmt: skip
            first, next_ones = await _load_under(strobe, loader, commands, patterns)
            figures.append(Figure(f"dlopen with {name}, again", median(next_ones), "us", note=f"{spread(next_ones)}; the first {first:.0f}"))
    return figures


async def _load_under(strobe: Strobe, loader: Path, commands: list[str], patterns: list[str]) -> tuple[float, list[float]]:
    session = await strobe.launch(loader, *commands, root=TARGETS, trace=patterns)
    await strobe.until_ended(session)
    took = _microseconds((await strobe.output(session))[1].decode())
    await strobe.call("debug_session", action="stop", sessionId=session)
    await strobe.call("debug_trace", remove=patterns)
    return took[0], took[1:]


def _microseconds(text: str) -> list[float]:
    return [float(line) for line in text.splitlines()]
