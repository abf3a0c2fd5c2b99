"""bun test: detection, commands, and recorded runs (tests/golden/frameworks/bun)."""

from __future__ import annotations

from strobe.adapters.adapter import Exit
from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import GOLDEN, MemoryProject, replay, request, statuses

ADAPTER = adapter("bun test")
PROJECT = MemoryProject(
    {
        "package.json": '{"scripts": {"test": "bun test --timeout 100 --coverage"}}',
        "a.test.ts": "import { test } from 'bun:test'",
        "bun.lock": "",
    }
)


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "bun/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.test.ts", 3, 'expect(received).toBe(expected)')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite.test.ts", 3), (None, "suite.test.ts", 8)]
    assert failure.rerun_command == "bun test --timeout 100 ./suite.test.ts -t '^math fails here$'"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "bun/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "bun/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "bun/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.test.ts:2: error: Unexpected') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    (step,) = ADAPTER.start(PROJECT, request(test="a.test.ts")).begin()
    assert step.argv == (
        "/bin/bun", "test", "--timeout", "100", "--preload=/reporters/bun.ts", "--reporter=junit", "--reporter-outfile=/run-folder/work/bun.xml", "./a.test.ts",
    )  # fmt: skip
    assert step.reports == ("/run-folder/work/bun.xml",) and step.env["AGENT"] is None and step.env["BUN_INSPECT"] is None


def test_recorded_report() -> None:
    """bun's own report alone, of a bun whose tests could not be told of live."""
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    run.ended("tests", Exit(code=1), {"/run-folder/work/bun.xml": (GOLDEN / "bun" / "junit.xml").read_text()}, 5)
    assert statuses(run.book) == {
        "math > ok": "passed", "math > fails": "failed", "math > sk": "skipped", "math > later": "skipped", "math > throws": "failed", "math > logs": "passed",
    }  # fmt: skip
    first = run.book.failures()[0]
    assert (first.file, first.line, first.suggested_traces) == ("b/a.test.ts", 2, ["helper"])
    assert [case.reason for case in run.book.tests.values() if case.name == "math > later"] == ["to do"]


def test_report_that_was_cut() -> None:
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    run.ended("tests", Exit(code=1), {"/run-folder/work/bun.xml": "<testsuites><testsuite"}, 5)
    assert "could not be read" in run.book.errors[0]


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 97 and "bun.lock" in one.reason
    (importing,) = ADAPTER.detect(MemoryProject({"package.json": "{}", "a.test.ts": "import { test } from 'bun:test'"}))
    assert importing.confidence == 90
    assert ADAPTER.detect(MemoryProject({"package.json": '{"devDependencies": {"vitest": "1"}}', "bun.lock": "", "a.test.ts": ""})) == []
