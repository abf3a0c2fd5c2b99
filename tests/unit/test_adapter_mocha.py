"""mocha: detection, commands, and recorded runs (tests/golden/frameworks/mocha)."""

from __future__ import annotations

from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import MemoryProject, installed, replay, request, statuses

ADAPTER = adapter("mocha")
PROJECT = MemoryProject({"package.json": '{"scripts": {"test": "mocha -r ts-node/register -R dot -g x \'test/**/*.ts\'"}}', **installed("mocha")})


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "mocha/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.spec.cjs", 3, 'Expected values to be strictly equal:')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite.spec.cjs", 3), (None, "suite.spec.cjs", 8)]
    assert failure.rerun_command == "npx mocha -r ts-node/register suite.spec.cjs -g '^math fails here$'"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "mocha/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "mocha/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "mocha/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.spec.cjs: mocha could not load it (status 1)') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    """The project's reporter stays; patterns are mocha's to expand."""
    (step,) = ADAPTER.start(PROJECT, request(test="a+b", exact=True)).begin()
    assert step.argv == (
        "/bin/node", "/proj/node_modules/mocha/mocha.js", "-r", "ts-node/register", "-R", "dot", "--require", "/reporters/mocha.cjs",
        "--grep", r"^a\+b$", "--no-color", "test/**/*.ts",
    )  # fmt: skip


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 90
    (configured,) = ADAPTER.detect(MemoryProject({"package.json": "{}", ".mocharc.json": "{}"}))
    assert configured.confidence == 80 and ".mocharc.json" in configured.reason


def test_failed_hook() -> None:
    """It is a failure, and what it kept from running is told as not run."""
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    hook = {"id": "h", "path": ["io", '"before all" hook for "reads"'], "file": "/proj/a.js"}
    run.event("tests", {"ev": "start", **hook, "pid": 5}, 1)
    run.event("tests", {"ev": "end", **hook, "status": "failed", "failures": [{"message": "no disk"}]}, 2)
    run.event("tests", {"ev": "end", "id": "t", "path": ["io", "reads"], "file": "/proj/a.js", "status": "skipped", "reason": "not run: the hook failed"}, 3)
    assert statuses(run.book) == {'io > "before all" hook for "reads"': "failed", "io > reads": "skipped"}
    assert [case.reason for case in run.book.tests.values()][1] == "not run: the hook failed"
