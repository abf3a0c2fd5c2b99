"""100 MB of output cost no memory, whichever adapter reads it, in lines short and long."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest

from strobe.adapters.adapter import Exit, Run, Step
from strobe.adapters.catch2 import Catch2
from strobe.adapters.registry import ADAPTERS, adapter
from strobe.model.testing import TestStatus
from tests.harness.adapter_replay import MemoryProject, installed, request

ELF = "\x7fELF gtest_list_tests catch2-version"
PROJECT = MemoryProject(
    {
        "package.json": json.dumps({"scripts": {}}), **installed("vitest"), **installed("jest"), **installed("mocha"),
        **installed("@playwright/test", program="playwright"), "Cargo.toml": '[package]\nname = "shop"\n', "go.mod": "module shop\n", "t": ELF, "a.cpp": "",
        "a_test.py": "", "CTestTestfile.cmake": "", "deno.json": "{}",
    },
    ("node", "bun", "deno", "cargo", "cargo-nextest", "go", "python3", "ctest", "cmake"),
)  # fmt: skip
BYTES = 100_000_000
KEPT_MAX = 24 << 20
OPENINGS = ("# Unhandled error between tests", "./a_test.ts (uncaught error)", "TAP version 13", "not ok 1 - x", '{ "type": "test", "name": "a", "stdout": "')


def begun(name: str) -> tuple[Run, Step]:
    command = "true" if name == "generic" else None
    run = adapter(name).start(PROJECT, request(command=command))
    return run, run.begin()[0]


@pytest.mark.parametrize("line", (10_000, 4_000_000))
@pytest.mark.parametrize("name", [one.name for one in ADAPTERS])
def test_output_is_not_kept(name: str, line: int) -> None:
    run, step = begun(name)
    fed(run, step.name, line)


def fed(run: Run, step: str, line: int) -> None:
    for opening in OPENINGS:
        run.line(step, "stdout", opening, 1)
        run.line(step, "stderr", opening, 1)
    tracemalloc.start()
    try:
        for number in range(BYTES // line):
            run.line(step, "stdout" if number % 2 else "stderr", f"{number:10}" + "x" * line, 2)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < KEPT_MAX, f"{kept / 1e6:.0f} MB"


def catch2() -> tuple[Run, str, str]:
    run = Catch2().start(PROJECT, request())
    (listing,) = run.begin()
    for text in ("<TestCase>", "<Name>prints</Name>", "<Tags/>", "</TestCase>"):
        run.line(listing.name, "stdout", text, 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    return run, step.name, step.reports[0]


@pytest.mark.parametrize("line", (100, 10_000, 4_000_000))
def test_catch2_test_that_prints_much(line: int) -> None:
    """What it printed stands within its XML, before its end."""
    run, step, report = catch2()
    printed = [escape("<&>" * (line // 3)) for _ in range(12_000_000 // line)]
    lines = [
        '  <TestCase name="prints" filename="a.cpp" line="3">',
        '    <Expression success="false" type="REQUIRE" filename="a.cpp" line="4">', "      <Original>a</Original>",
        "      <Expanded>1 == 2</Expanded>", "    </Expression>", '    <OverallResult success="false" durationInSeconds="0.5">', "      <StdOut>", *printed,
        "      </StdOut>", "    </OverallResult>", "  </TestCase>",
    ]  # fmt: skip
    run.ended(step, Exit(code=1), {report: "\n".join(lines)}, 3)
    (case,) = run.book.tests.values()
    assert case.status is TestStatus.FAILED and case.failures[0].line == 4 and run.book.crash is None and not run.book.errors
    assert case.output is not None and 1 < len(case.output) < 70_000


Reach = Callable[[], tuple[Run, str]]


def googletest() -> tuple[Run, str]:
    run = adapter("GoogleTest").start(PROJECT, request())
    (listing,) = run.begin()
    for text in ("Sum.", "  Adds"):
        run.line(listing.name, "stdout", text, 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    run.line(step.name, "stdout", "[ RUN      ] Sum.Adds", 3)
    return run, step.name


def ctest() -> tuple[Run, str]:
    project = MemoryProject({"CTestTestfile.cmake": ""}, ("ctest",))
    run = adapter("CTest").start(project, request())
    (listing,) = run.begin()
    run.line(listing.name, "stdout", json.dumps({"tests": [{"name": "a"}]}), 1)
    (step,) = run.ended(listing.name, Exit(code=0), {}, 2)
    return run, step.name


@pytest.mark.parametrize("line", (10_000, 4_000_000))
@pytest.mark.parametrize("reach", (googletest, ctest))
def test_output_of_the_tests_themselves(reach: Reach, line: int) -> None:
    fed(*reach(), line)
