"""From debug_trace to hooks that record, and to hooks whose values are typed, in running programs that Strobe has never seen: 100 functions of a binary
of 100,000 functions, 100 of sqlite3's shell, and a class of cppcheck (the largest real program that this machine builds). Each on a node with an empty
symbol cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.figure import Figure, spread
from tests.bench.generate_large import function_name, large_program
from tests.bench.options import Options, live_node
from tests.harness.gdb import entries
from tests.harness.mcp import Strobe
from tests.harness.real_programs import cppcheck, sqlite3_shell
from tests.harness.targets import TARGETS, program

WAIT_S: Final = 60.0
GOAL_S: Final = 1.0


@dataclass(frozen=True)
class Case:
    """A program that waits for its standard input, and what is traced in it."""

    name: str
    path: Path
    arguments: Sequence[str]
    patterns: Sequence[str]


@dataclass(frozen=True)
class Times:
    functions: int
    recording: float  # seconds until debug_trace answered
    typed: float  # seconds until all are typed that can be, as deep as is usual
    typed_functions: int


def cases() -> list[Case]:
    names = [name for name in sorted(entries(sqlite3_shell())) if name.startswith("sqlite3") and "." not in name]
    return [
        Case("100,000 functions", large_program(), ["wait"], [function_name(100 + number // 10, 10 * (number % 10)) for number in range(100)]),
        Case("sqlite3", sqlite3_shell(), [":memory:"], names[:: len(names) // 100][:100]),
        Case("cppcheck", cppcheck(), ["--file-list=-"], ["Tokenizer::*"]),
    ]


def run(options: Options) -> list[Figure]:
    figures: list[Figure] = []
    for case in cases():
        times = [asyncio.run(_measure(case)) for _ in range(options.times(5))]
        what = f"{times[0].functions} functions of {case.name}"
        recording, typed = [one.recording for one in times], [one.typed for one in times]
        figures.append(Figure(f"debug_trace answers, {what}", median(recording), "s", note=spread(recording) + " s"))
        figures.append(Figure(f"all typed, {what}", median(typed), "s", GOAL_S, note=f"{spread(typed)} s; {times[0].typed_functions} have types"))
    return figures


async def _measure(case: Case) -> Times:
    async with live_node() as strobe:
        await strobe.until_ended(await strobe.launch(program("exits.c", "-O0"), root=TARGETS))  # the processes are up and warm after this one
        reply = await strobe.call(
            "debug_launch", command=str(case.path), args=list(case.arguments), projectRoot=str(TARGETS), stdin={"open": True}
        )  # fmt: skip
        session = reply["sessionId"]
        started = time.perf_counter()
        told = await strobe.call("debug_trace", sessionId=session, add=list(case.patterns))
        recording = time.perf_counter() - started
        typed = await _typed(strobe, session, told["typedFunctions"], told["hookedFunctions"], started)
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)
        return Times(told["hookedFunctions"], recording, *typed)


async def _typed(strobe: Strobe, session: str, typed: int, hooked: int, started: float) -> tuple[float, int]:
    """(seconds until no more became typed, how many are). What is typed when debug_trace answers took as long as that."""
    at = time.perf_counter() - started
    quiet_until = time.perf_counter() + 5.0
    while typed < hooked and time.perf_counter() < quiet_until:
        await asyncio.sleep(0.05)
        now = (await strobe.call("debug_trace", sessionId=session))["typedFunctions"]
        if now > typed:
            typed, at, quiet_until = now, time.perf_counter() - started, time.perf_counter() + 5.0
    return at, typed
