"""Arguments and results of the same calls of a real program, as gdb has them and as Strobe's timeline has them: two mappings to be compared.

gdb runs tests/targets/indexer/record_values.py, twice: addresses, memory that nobody wrote to (heap and stack) and the environment differ in the second
run, so that what depends on them can be told from what the program means. Strobe is asked as its users ask: patterns, launch, debug_query.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from actors.indexer.binary import Library
from actors.indexer.project_formatters import project_formatters
from tests.harness.gdb import entries
from tests.harness.mcp import Strobe, ToolError
from tests.harness.targets import TARGETS, program, require
from tests.harness.value_differences import Comparison, Tally

GDB_S: Final = 600
BEGIN_S: Final = 120.0
RAN_S: Final = 120.0
DEPTH: Final = 3  # the default
SCRIPT: Final = TARGETS / "indexer" / "record_values.py"
RESULT: Final = "(result)"
PAGE_TOKENS: Final = 4_000_000  # more than the values of a page ever take: none is shortened
PAGE: Final = 8
EXITS_MAX: Final = 200
SHORTENED: Final = "are not shown whole"
MOVED: Final = (
    "set disable-randomization off",
    "set environment GLIBC_TUNABLES glibc.malloc.perturb=171",
    f"set environment MOVES_THE_STACK {'x' * 1000}",
)

Call = tuple[str, int]  # linkage name, number of the call, from 1
Values = dict[str, Any]  # by argument's name, and RESULT


@dataclass(frozen=True, slots=True)
class Load:
    """A program and what it is run with."""

    program: Path
    arguments: tuple[str, ...]
    cwd: Path
    stdin: Path | None = None


def linkage_names(program: Path, names: Sequence[str]) -> dict[str, str]:
    """Linkage name → name without parameters, for the functions of these names; each must be one function."""
    symbols, readable = (
        subprocess.run([require("nm"), "-p", *flags, str(program)], capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
        for flags in ((), ("-C",))
    )
    found: dict[str, str] = {}
    for symbol, shown in zip(symbols, readable, strict=True):
        name = re.sub(r"^[0-9a-f ]{16} ", "", shown)[2:].split("(", 1)[0]
        if name in names and symbol[17] in "tTW" and "[clone" not in shown:
            found[symbol[19:]] = name
    assert sorted(found.values()) == sorted(names), set(names) ^ set(found.values()) or f"not one function each: {found}"
    return found


def by_gdb(
    load: Load, functions: Iterable[str], calls: Sequence[int], values: int, work: Path, noise: int = 20
) -> tuple[dict[Call, Values], dict[Call, Values]]:
    """The values of those calls in two runs; `values`: how many are shown of an argument at most; `noise`: how many calls of each function begin and
    end with noise below their stack, in the second run."""
    addresses = entries(load.program)
    wanted = {name: addresses[name] for name in functions}
    with ThreadPoolExecutor(2) as runs:
        first, second = (runs.submit(_run, load, wanted, calls, values, work / name, noise=noisy) for name, noisy in (("still", 0), ("moved", noise)))
        return first.result(), second.result()


def _run(load: Load, functions: Mapping[str, int], calls: Sequence[int], values: int, work: Path, *, noise: int) -> dict[Call, Values]:
    work.mkdir()
    setup = [*MOVED, f"set environment LD_PRELOAD {program('indexer/shift_heap.c', '-O1', '-shared', '-fPIC')}"] if noise else []
    asked, answered = work / "ask.json", work / "calls.json"
    pie = load.program.read_bytes()[16] == 3
    words = [*load.arguments, *([f"< {load.stdin}"] if load.stdin else []), f"> {work}/out 2> {work}/err"]
    ask = {"functions": functions, "calls": calls, "values": values, "arguments": " ".join(words), "pie": pie, "noise": noise, "setup": setup}
    asked.write_text(json.dumps(ask))
    command = [require("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", str(SCRIPT), str(load.program)]
    environment = {**os.environ, "RECORD_IN": str(asked), "RECORD_OUT": str(answered)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GDB_S, stdin=subprocess.DEVNULL, check=False, cwd=load.cwd)
    assert answered.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(answered.read_text())
    return {(one["function"], one["call"]): {**one["arguments"], **({RESULT: one["result"]} if "result" in one else {})} for one in found}


def prepare_plans(load: Load, functions: Iterable[str]) -> None:
    """In the cache of this STROBE_HOME: a program that ends within a second is else over before all its values have types."""
    addresses = entries(load.program)
    book = Library().open(str(load.program)).plans
    done = book.planned([(addresses[name], name) for name in functions], math.inf, DEPTH, project_formatters(str(load.cwd)))
    assert done.complete and not book.problems, book.problems


async def by_strobe(strobe: Strobe, load: Load, functions: Mapping[str, str], wanted: Iterable[Call], returning: Iterable[Call]) -> dict[Call, Values]:
    """`functions`: linkage name → the name that patterns and the timeline have; `returning`: the calls that have a result."""
    more: dict[str, Any] = {} if load.stdin is None else {"stdin": load.stdin.read_text()}
    await _trace(strobe, sorted(functions.values()))
    session = await strobe.launch(load.program, *load.arguments, root=load.cwd, cwd=str(load.cwd), **more)
    status = await strobe.until_ended(session, within_s=RAN_S)
    assert status["status"] == "exited", status
    asked = {raw: {number for name, number in wanted if name == raw} for raw in functions}
    with_result = {raw: {number for name, number in returning if name == raw} for raw in functions}
    found: dict[Call, Values] = {}
    for raw, numbers in asked.items():
        if numbers:
            calls = _Calls(strobe, session, raw, functions[raw])
            found |= {(raw, number): values for number, values in (await calls.read(numbers, with_result[raw])).items()}
    dropped = (await strobe.call("debug_query", sessionId=session, limit=1)).get("eventsDropped", {})
    assert not any(dropped.values()), dropped
    return found


async def _trace(strobe: Strobe, patterns: list[str]) -> None:
    """A node that just began, on a machine that has much to do, may answer late: then it says so, and to try again."""
    deadline = time.monotonic() + BEGIN_S
    while True:
        try:
            await strobe.call("debug_trace", add=patterns)
            return
        except ToolError as error:
            if error.code != "TIMEOUT" or time.monotonic() > deadline:
                raise


class _Calls:
    """Of one function, in the order of their begin."""

    def __init__(self, strobe: Strobe, session: str, raw: str, shown: str) -> None:
        self.strobe, self.session, self.raw, self.shown = strobe, session, raw, shown

    async def read(self, numbers: set[int], returning: set[int]) -> dict[int, Values]:
        entered = [event async for event in self._events("function_enter", max(numbers))]
        assert all(event["functionRaw"] == self.raw for event in entered), f"{self.shown} is {entered[-1]['functionRaw']} too"
        assert len(entered) == max(numbers), f"{self.shown} was called {len(entered)} times"
        found = {number: {one["name"]: one["value"] for one in entered[number - 1].get("arguments", [])} for number in numbers}
        open_calls = {entered[number - 1]["id"]: number for number in returning}
        if not open_calls:
            return found
        async for event in self._events("function_exit", EXITS_MAX):  # callers return after those that they called
            number = open_calls.pop(event["parentEventId"], None)
            if number is not None:
                found[number][RESULT] = event["returnValue"]
            if not open_calls:
                return found
        raise AssertionError(f"{self.shown} has no end: {open_calls}")

    async def _events(self, kind: str, count: int) -> AsyncIterator[dict[str, Any]]:
        """The first `count` of one kind, with all their values."""
        left = count
        cursor: dict[str, Any] = {}
        while left > 0:
            reply = await self.strobe.call(
                "debug_query", sessionId=self.session, eventType=kind, function={"equals": self.shown}, verbose=True, limit=min(PAGE, left),
                maxTokens=PAGE_TOKENS, **cursor,
            )  # fmt: skip
            assert not any(SHORTENED in text for text in reply.get("warnings", [])), reply["warnings"]
            for event in reply["events"]:
                yield event
            left -= len(reply["events"])
            if not reply["hasMore"]:
                return
            cursor = {"cursor": reply["cursor"]}


def compared(ours: Mapping[Call, Values], first: Mapping[Call, Values], second: Mapping[Call, Values], explained: Mapping[str, str]) -> Tally:
    """`explained`: pattern of a path → why what it names differs rightly."""
    comparison = Comparison(explained)
    for call, theirs in first.items():
        assert call in second, f"gdb's second run has no call {call}"
        assert call in ours, f"Strobe has no call {call}"
        comparison.call(f"{call[0]} #{call[1]}", ours[call], theirs, second[call])
    return comparison.tally
