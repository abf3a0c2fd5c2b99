"""A run whose framework says that it failed is never told as one that passed, whichever adapter reads it."""

from __future__ import annotations

from typing import Any

import pytest

from strobe.adapters.adapter import Exit, Run, Step
from strobe.adapters.book import Book
from strobe.adapters.registry import ADAPTERS, adapter
from strobe.model.testing import TestStatus
from tests.unit.test_adapter_memory import PROJECT, begun, catch2, ctest, googletest

NAMES = [one.name for one in ADAPTERS]
NARRATED = ("vitest", "jest", "node:test", "mocha", "playwright", "bun test", "deno test")
TOLD = ("pytest", "unittest")
HOWS = (Exit(code=1), Exit(code=101), Exit(code=139), Exit(signal="SIGSEGV"), Exit(signal="SIGKILL"))


def says_failed(book: Book) -> bool:
    return bool(book.errors or book.crash or book.count(TestStatus.FAILED) or book.count(TestStatus.LOST))


def ended(run: Run, step: Step, exit: Exit) -> Book:
    run.ended(step.name, exit, {}, 5)
    run.finish(6)
    return run.book


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_it_says_nothing_and_fails(name: str, how: Exit) -> None:
    run, step = begun(name)
    assert says_failed(ended(run, step, how))


def narrated(name: str, *, done: bool) -> tuple[Run, Step]:
    run, step = begun(name)
    events: list[dict[str, Any]] = [
        {"ev": "run", "pid": 7, "cwd": PROJECT.root}, {"ev": "file", "file": "/proj/a.test.js"},
        {"ev": "start", "id": "1", "path": ["a"], "file": "/proj/a.test.js", "pid": 7},
        {"ev": "end", "id": "1", "path": ["a"], "file": "/proj/a.test.js", "status": "passed", "ms": 1},
        *([{"ev": "fileEnd", "file": "/proj/a.test.js"}, {"ev": "done"}] if done else []),
    ]  # fmt: skip
    for event in events:
        run.event(step.name, event, 1)
    return run, step


def told(name: str, *, done: bool) -> tuple[Run, Step]:
    run, step = begun(name)
    events: list[dict[str, Any]] = [
        {"ev": "run", "cwd": PROJECT.root, "root": PROJECT.root}, {"ev": "collected", "n": 2},
        {"ev": "start", "id": "a_test.py::a", "file": "a_test.py", "line": 1},
        {"ev": "phase", "id": "a_test.py::a", "when": "call", "outcome": "passed", "ms": 1}, {"ev": "finish", "id": "a_test.py::a"},
        *([{"ev": "end", "code": 0}] if done else []),
    ]  # fmt: skip
    for event in events:
        run.event(step.name, {"pid": 7, **event}, 1)
    return run, step


@pytest.mark.parametrize("done", (True, False))
@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("name", (*NARRATED, *TOLD))
def test_its_tests_pass_and_it_fails(name: str, how: Exit, done: bool) -> None:
    run, step = narrated(name, done=done) if name in NARRATED else told(name, done=done)
    assert run.book.count(TestStatus.PASSED) == 1
    assert says_failed(ended(run, step, how))


@pytest.mark.parametrize("name", (*NARRATED, *TOLD))
def test_it_ends_too_early_as_if_all_were_well(name: str) -> None:
    run, step = narrated(name, done=False) if name in NARRATED else told(name, done=False)
    assert says_failed(ended(run, step, Exit(code=0)))


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_programs_whose_tests_pass_and_that_fail(how: Exit) -> None:
    run, step = googletest()
    run.line(step, "stdout", "[       OK ] Sum.Adds (0 ms)", 3)
    assert run.book.count(TestStatus.PASSED) == 1
    run.ended(step, how, {}, 4)
    assert says_failed(run.book)
    run, step, report = catch2()
    lines = ('<TestCase name="prints" filename="a.cpp" line="3">', '<OverallResult success="true"/>', "</TestCase>", "")
    run.ended(step, how, {report: "\n".join(lines)}, 4)
    assert run.book.count(TestStatus.PASSED) == 1 and says_failed(run.book)
    run, step = ctest()
    run.line(step, "stdout", "    Start 1: a", 3)
    run.line(step, "stdout", "1/1 Test #1: a ..........   Passed    0.00 sec", 3)
    run.ended(step, how, {}, 4)
    assert run.book.count(TestStatus.PASSED) == 1 and says_failed(run.book)


def test_every_adapter_is_asked() -> None:
    assert {*NARRATED, *TOLD} < set(NAMES) and all(adapter(name) for name in NAMES)
