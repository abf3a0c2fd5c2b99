"""go test, on recorded runs (tests/golden/frameworks/go)."""

from __future__ import annotations

import json

from strobe.adapters.adapter import Exit
from strobe.adapters.go_run import GoRun
from strobe.adapters.go_test import GoTest
from strobe.model.testing import TestStatus
from tests.harness.adapter_replay import GOLDEN, MemoryProject, request

SOURCE = "\n".join(f"func {name}(t *testing.T) {{}}" for name in ("TestPass", "TestFail", "TestSkip", "TestSub", "TestPar", "TestPar2"))
FILES = {"go.mod": "module ex.com/x\n", "a_test.go": SOURCE, "panic/p_test.go": "func TestOK(t\nfunc TestPanic(t\nfunc TestNever(t\n", "bad/b_test.go": ""}


def replayed(name: str, code: int, stderr: str | None = None, *, ends: bool = True) -> GoRun:
    run = GoTest().start(MemoryProject(FILES, ("go",)), request())
    (step,) = run.begin()
    for line in (GOLDEN / "go" / stderr).read_text().splitlines() if stderr else ():
        run.line(step.name, "stderr", line, 1)
    for line in (GOLDEN / "go" / name).read_text().splitlines():
        run.line(step.name, "stdout", line, 2)
    if ends:
        run.ended(step.name, Exit(code=code), {}, 9)
    return run


def test_whole_suite() -> None:
    book = replayed("suite.out", 1, "suite.err").book
    found = {(case.suite, case.name): case.status.value for case in book.tests.values()}
    assert {name for (_, name), status in found.items() if status == "failed"} == {"TestFail", "TestSub", "TestSub/bad", "TestPanic"}
    assert {name for (_, name), status in found.items() if status == "skipped"} == {"TestSkip"}
    fail = next(one for one in book.failures() if one.name == "TestFail")
    assert (fail.file, fail.line, fail.message) == ("a_test.go", 5, "want 3 got 4") and fail.rerun_command == "go test -run '^TestFail$' ."
    assert book.tests[("ex.com/x", "TestSkip")].reason == "nope"
    assert book.compile_message is not None and "bad/b_test.go:3:42" in book.compile_message
    assert book.crash is not None and book.crash.during == ["TestPanic"]


def test_panic() -> None:
    book = replayed("panic.out", 1).book
    failure = next(one for one in book.failures() if one.name == "TestPanic")
    assert failure.message.startswith("panic: ") and failure.file is not None and failure.file.endswith("panic/p_test.go")
    assert [frame.function for frame in failure.stack_trace][:2] == ["ex.com/x/panic.f", "ex.com/x/panic.TestPanic"]


def test_build_error() -> None:
    book = replayed("bad.out", 2, "bad.err").book
    assert book.compile_message is not None and "cannot use 1" in book.compile_message and not book.tests and book.crash is None


def test_stopped_in_the_middle() -> None:
    run = GoTest().start(MemoryProject({"go.mod": "module ex.com/x\n"}, ("go",)), request())
    (step,) = run.begin()
    for line in (GOLDEN / "go" / "hangterm.out").read_text().splitlines():
        run.line(step.name, "stdout", line, 2)
    names = {one.name for one in run.book.running.values()}
    assert len(names) == 1
    run.finish(9000)
    assert all(case.status is TestStatus.STUCK for case in run.book.tests.values() if case.name in names)


def started() -> GoRun:
    run = GoTest().start(MemoryProject(FILES, ("go",)), request())
    run.begin()
    say(run, Action="run", Test="TestFail")
    return run


def say(run: GoRun, **event: object) -> None:
    run.line("tests", "stdout", json.dumps({"Package": "ex.com/x", **event}), 2)


def test_a_printed_end_is_not_believed_against_gos_own() -> None:
    run = started()
    say(run, Action="output", Test="TestFail", Output="so far --- PASS: TestFail (0.00s)\n")
    say(run, Action="output", Test="TestFail", Output="    a_test.go:5: want 3 got 4\n")
    say(run, Action="fail", Test="TestFail", Elapsed=0.5)
    say(run, Action="fail")
    run.ended("tests", Exit(code=1), {}, 9)
    (failure,) = run.book.failures()
    assert (failure.file, failure.line, failure.message) == ("a_test.go", 5, "want 3 got 4") and not run.book.errors


def test_a_failure_after_much_output() -> None:
    """100 MB of it cost what is kept: its beginning and its end."""
    run = started()
    line = "x" * 9_999 + "\n"
    for _ in range(10_000):
        run.said(("ex.com/x", "TestFail"), line)
    kept = run.output[("ex.com/x", "TestFail")]
    assert sum(map(len, kept._head)) + sum(map(len, kept._tail)) < 100_000
    say(run, Action="output", Test="TestFail", Output="    a_test.go:5: want 3 got 4\n")
    say(run, Action="fail", Test="TestFail", Elapsed=0.5)
    (failure,) = run.book.failures()
    assert (failure.file, failure.line, failure.message) == ("a_test.go", 5, "want 3 got 4")
    assert "characters left out" in (run.book.tests[("ex.com/x", "TestFail")].output or "")
