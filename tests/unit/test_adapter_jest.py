"""jest: detection, commands, and recorded runs (tests/golden/frameworks/jest)."""

from __future__ import annotations

from strobe.adapters.adapter import Exit
from strobe.adapters.registry import adapter
from tests.harness.adapter_replay import MemoryProject, installed, replay, request, statuses

ADAPTER = adapter("jest")
PROJECT = MemoryProject(
    {
        "package.json": '{"scripts": {"test": "tsc && jest --coverage -c j.json"}, "jest": {}}',
        "src/a.test.js": "",
        "test/e2e/b.test.js": "",
        **installed("jest"),
    }
)


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "jest/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.test.js", 2, 'expect(received).toBe(expected) // Object.is equality')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [(None, "suite.test.js", 2), ("checked", "suite.test.js", 7)]
    assert failure.rerun_command == "npx jest -c j.json --runTestsByPath suite.test.js -t '^math fails here$'"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "jest/hang.ndjson")
    assert statuses(hung) == {"quick": "passed", "never ends": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "jest/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "jest/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.test.js: Unexpected token (1:10)') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    """What the script does first is a step of its own, told as compiling; what it fails with is the message."""
    run = ADAPTER.start(PROJECT, request(level="e2e"))
    (first,) = run.begin()
    assert first.phase == "compiling" and first.argv[:2] == ("/bin/sh", "-c") and first.argv[2].endswith("tsc")
    (step,) = run.ended(first.name, Exit(code=0), {}, 5)
    assert step.argv == (
        "/bin/node", "/proj/node_modules/jest/jest.js", "-c", "j.json", "--reporters=default", "--reporters=/reporters/jest.cjs", "--testLocationInResults",
        "--passWithNoTests=false", "--watchAll=false", "--colors=false", "--runTestsByPath", "test/e2e/b.test.js",
    )  # fmt: skip
    broken = ADAPTER.start(PROJECT, request())
    broken.begin()
    broken.line(first.name, "stdout", "src/a.ts(1,7): error TS2322: no", 1)
    assert broken.ended(first.name, Exit(code=2), {}, 5) == ()
    broken.finish(6)
    assert broken.book.compile_message == "src/a.ts(1,7): error TS2322: no" and "status 2" in broken.book.errors[0] and not broken.book.crash


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 94 and "section 'jest'" in one.reason
    assert ADAPTER.detect(MemoryProject({"package.json": '{"devDependencies": {"vitest": "1"}}'})) == []


def test_worker_that_died() -> None:
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    run.event("tests", {"ev": "start", "id": "1", "path": ["x"], "file": "/proj/a.test.js", "pid": 7}, 1)
    died = "A jest worker process (pid=7) was terminated by another process: signal=SIGABRT, exitCode=null."
    run.event("tests", {"ev": "error", "kind": "file", "file": "/proj/a.test.js", "message": died}, 2)
    assert statuses(run.book) == {"x": "lost"} and run.book.crash is not None and run.book.crash.signal == "SIGABRT" and not run.book.errors
