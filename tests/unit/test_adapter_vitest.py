"""vitest: detection, commands, and recorded runs (tests/golden/frameworks/vitest)."""

from __future__ import annotations

import pytest

from strobe.adapters.adapter import Exit
from strobe.adapters.registry import adapter
from strobe.errors import StrobeError
from strobe.model.testing import TestStatus
from tests.harness.adapter_replay import MemoryProject, installed, replay, request, statuses

ADAPTER = adapter("vitest")
PROJECT = MemoryProject(
    {
        "package.json": '{"scripts": {"test": "vitest --config v.ts --reporter=dot"}, "devDependencies": {"vitest": "4"}}',
        **installed("vitest"),
    }
)


def test_recorded_suite() -> None:
    book = replay(ADAPTER, PROJECT, request(), "vitest/suite.ndjson")
    assert statuses(book) == {
        "math > adds": "passed", "math > fails here": "failed", "math > left out": "skipped", "math > pair 1 2": "passed", "math > pair 3 4": "passed",
        "prints look-alikes": "passed",
    }  # fmt: skip
    (failure,) = book.failures()
    assert (failure.file, failure.line, failure.message.splitlines()[0]) == ("suite.test.ts", 3, 'expected 4 to be 3 // Object.is equality')
    assert [(frame.function, frame.file, frame.line) for frame in failure.stack_trace] == [("checked", "suite.test.ts", 3), (None, "suite.test.ts", 8)]
    assert failure.rerun_command == "npx vitest run --config v.ts suite.test.ts -t '^math fails here$'"
    assert failure.suggested_traces == ["checked"]
    assert book.finished and not book.errors and book.crash is None


def test_recorded_hang_and_crash() -> None:
    hung = replay(ADAPTER, PROJECT, request(), "vitest/spin.ndjson")
    assert statuses(hung) == {"quick": "passed", "spins": "stuck"} and hung.crash is None
    crashed = replay(ADAPTER, PROJECT, request(), "vitest/crash.ndjson")
    assert statuses(crashed) == {"quick": "passed", "dies": "lost"}
    assert crashed.crash is not None and (crashed.crash.signal, crashed.crash.during) == ("SIGSEGV", ["dies"])


def test_recorded_file_that_cannot_be_read() -> None:
    book = replay(ADAPTER, PROJECT, request(), "vitest/broken.ndjson")
    (error,) = book.errors
    assert error.startswith('broken.test.ts: Transform failed') and book.compile_message == error and book.crash is None and not book.tests


def test_command() -> None:
    (step,) = ADAPTER.start(PROJECT, request(test="math > adds (1)")).begin()
    assert step.argv == (
        "/bin/node", "/proj/node_modules/vitest/vitest.js", "run", "--config", "v.ts", "--reporter=dot",
        "-t", r"math(?: > | )adds \(1\)", "--reporter=/reporters/vitest.mjs", "--includeTaskLocation",
    )  # fmt: skip
    assert step.events and step.cwd == "/proj" and step.env["CLAUDECODE"] is None


def test_detection() -> None:
    (one,) = ADAPTER.detect(PROJECT)
    assert one.confidence == 94 and "vitest 4" in one.reason and "'test'" in one.reason
    files = {"package.json": "{}", "packages/a/package.json": "{}", "packages/a/vitest.config.ts": ""}
    files["packages/b/package.json"] = '{"dependencies": {"vitest": "1"}}'
    found = {one.folder: one for one in ADAPTER.detect(MemoryProject(files))}
    assert set(found) == {"packages/a", "packages/b"} and "vitest.config.ts" in found["packages/a"].reason
    assert found["packages/a"].confidence > found["packages/b"].confidence and "not installed" in found["packages/b"].reason


def test_tool_of_a_package_lies_further_up() -> None:
    project = MemoryProject({"packages/a/package.json": "{}", **installed("vitest")})
    (step,) = ADAPTER.start(project, request("/proj/packages/a")).begin()
    assert step.argv[1] == "/proj/node_modules/vitest/vitest.js" and step.cwd == "/proj/packages/a"
    with pytest.raises(StrobeError, match="not installed"):
        ADAPTER.start(MemoryProject({"package.json": "{}"}), request())


def test_rows_of_one_name_are_told_apart() -> None:
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    for number in (1, 2):
        run.event("tests", {"ev": "end", "id": str(number), "path": ["same"], "file": "/proj/a.test.ts", "status": "passed"}, 1)
    assert set(statuses(run.book)) == {"same", "same (2)"}


def test_command_that_is_not_plainly_the_runner() -> None:
    """Its exit status is all that is known, unless its processes tell more."""
    for code, status in ((0, "passed"), (3, "failed")):
        run = ADAPTER.start(PROJECT, request(command="make check | tee log"))
        (step,) = run.begin()
        assert step.argv == ("/bin/sh", "-c", "make check | tee log") and step.events
        run.line("tests", "stderr", "make: *** [check] Error 3", 1)
        run.ended("tests", Exit(code=code), {}, 2)
        assert statuses(run.book) == {"make check | tee log": status} and not run.book.errors and run.book.no_tests is None
    assert "Error 3" in run.book.failures()[0].message


def test_what_the_engine_has_closed() -> None:
    """At a limit the engine closes what runs; the place, the rerun and what to trace are added to it."""
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    for event in ({"ev": "run"}, {"ev": "file", "file": "/proj/a.test.ts"}, {"ev": "start", "id": "1", "path": ["x"], "file": "/proj/a.test.ts", "line": 7}):
        run.event("tests", event, 1)
    run.book.close_running(TestStatus.STUCK, "Still running after 9 s.", 2)
    run.ended("tests", Exit(signal="SIGKILL", killed=True), {}, 3)
    (case,) = run.book.tests.values()
    assert (case.status, case.file, case.line, case.failures[0].message) == (TestStatus.STUCK, "a.test.ts", 7, "Still running after 9 s.")
    assert case.failures[0].rerun_command and case.failures[0].suggested_traces


def test_hang_in_a_hook_and_late_handles() -> None:
    """A file whose tests have ended and that does not end is named; after `done` nothing is stuck any more."""
    run = ADAPTER.start(PROJECT, request())
    run.begin()
    told: tuple[dict[str, object], ...] = (
        {"ev": "run"}, {"ev": "file", "file": "/proj/a.test.ts"}, {"ev": "end", "id": "1", "path": ["x"], "file": "/proj/a.test.ts", "status": "passed"},
    )  # fmt: skip
    for event in told:
        run.event("tests", event, 1)
    run.ended("tests", Exit(signal="SIGKILL", killed=True), {}, 2)
    assert statuses(run.book) == {"x": "passed", "(after its last test)": "stuck"}
    ended = ADAPTER.start(PROJECT, request())
    ended.begin()
    told = (*told, {"ev": "done"})
    for event in told:
        ended.event("tests", event, 1)
    assert ended.book.finished
    ended.ended("tests", Exit(signal="SIGKILL", killed=True), {}, 2)
    assert statuses(ended.book) == {"x": "passed"} and not ended.book.errors
