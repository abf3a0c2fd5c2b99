"""node:test: detection, commands, and recorded runs (tests/golden/frameworks/node_test)."""

from __future__ import annotations

from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import MemoryProject, replay, request, statuses

ADAPTER = adapter("node:test")
PROJECT = MemoryProject(
    {
        "package.json": '{"scripts": {"test": "node --import tsx --test test/**/*.{js,ts}"}}',
        "test/a/x.ts": "import 'node:test'",
        "test/y.js": "",
    }
)


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "node_test/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.test.mjs", 4, 'Expected values to be strictly equal:')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite.test.mjs", 4), (None, "suite.test.mjs", 9)]
    assert failure.rerun_command == "node --import tsx --test '--test-name-pattern=^fails here$' suite.test.mjs"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "node_test/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "node_test/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "node_test/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.test.mjs: ') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    """Node 20 expands no patterns, and matches a test's own name."""
    (step,) = ADAPTER.start(PROJECT, request(test="math > adds", exact=True)).begin()
    assert step.argv == (
        "/bin/node", "--import", "tsx", "--import=/reporters/node_test.mjs", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
        "--test-reporter=/reporters/node_test.mjs", "--test-reporter-destination=stderr", "--test-name-pattern=^math > adds$",
        "--test-name-pattern=^adds$", "test/y.js", "test/a/x.ts",
    )  # fmt: skip


def test_others_of_that_name_are_left_out() -> None:
    run = ADAPTER.start(PROJECT, request(test="math > adds", exact=True))
    run.begin()
    for number, suite in enumerate(("math", "text")):
        event = {"id": str(number), "path": [suite, "adds"], "file": "/proj/test/y.js"}
        run.event("tests", {"ev": "start", **event}, 1)
        run.event("tests", {"ev": "end", **event, "status": "passed"}, 2)
    assert statuses(run.book) == {"math > adds": "passed"} and not run.book.running


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 96 and "test/a/x.ts" in one.reason
    (bare,) = ADAPTER.detect(MemoryProject({"sum.test.mjs": "import test from 'node:test'"}))
    assert bare.confidence == 75
    assert ADAPTER.detect(MemoryProject({"package.json": "{}", "sum.test.mjs": "import test from 'vitest'"})) == []
