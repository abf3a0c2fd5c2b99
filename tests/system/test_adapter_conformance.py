"""What every test adapter does, on real projects of its framework: the same checks for all."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from strobe.adapters.book import Book
from strobe.adapters.registry import detect
from strobe.model.testing import TestCase, TestStatus
from tests.harness.frameworks import FRAMEWORKS, TARGETS, Bench, Framework, bench
from tests.harness.test_runs import Outcome, drive

SLOW = ("jest", "playwright", "vitest")  # a second or more to start: most of their cases are `full`


def cases(*, full: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    marked = [pytest.param(one, id=str(one), marks=[pytest.mark.full] if one.name in full else []) for one in FRAMEWORKS]
    return pytest.mark.parametrize("framework", marked)


def run(at: Bench, *, folder: str = ".", test: str | None = None, command: str | None = None) -> Outcome:
    return drive(at.adapter, at.project, at.request(folder, test=test, command=command), env={"PATH": at.path})


def run_until(at: Bench, test: str) -> Outcome:
    """Until this test runs and no other does; then it is killed, as at a limit."""
    return drive(at.adapter, at.project, at.request(), kill_when=lambda book: running(book) == {test}, env={"PATH": at.path})


def running(book: Book) -> set[str]:
    return {one.name for one in book.running.values()}


def by_status(book: Book) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for case in book.tests.values():
        found.setdefault(case.status.value, set()).add(case.name)
    return found


def the_case(book: Book, name: str) -> TestCase:
    (found,) = [case for case in book.tests.values() if case.name == name]
    return found


def failing_line(framework: Framework) -> int:
    lines = (TARGETS / framework.folder / framework.file("suite")).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith("function checked")) + 1


@cases()
def test_whole_suite(framework: Framework, tmp_path: Path) -> None:
    """Results, failures with their place, what is worth tracing, live tests, and nothing of what the program printed."""
    at = bench(framework, tmp_path, "suite")
    outcome = run(at)
    book = outcome.book
    assert by_status(book) == {
        "passed": {"math > adds", "math > pair 1 2", "math > pair 3 4", "prints look-alikes"}, "failed": {"math > fails here"}, "skipped": {"math > left out"},
    }, (book, outcome.output)  # fmt: skip
    assert book.finished and book.crash is None and book.no_tests is None and not book.errors and not book.running
    assert {"math > adds", "math > fails here", "prints look-alikes"} <= outcome.ever_running()
    assert outcome.pids("math > adds"), "the process that runs a test is known"
    failed = the_case(book, "math > fails here")
    assert failed.file == framework.file("suite") and failed.duration_ms is not None
    (failure,) = failed.failures
    assert (failure.file, failure.line) == (framework.file("suite"), failing_line(framework))
    assert "4" in failure.message and "3" in failure.message and "\x1b" not in failure.message
    assert "checked" in [frame.function for frame in failure.stack_trace] and failure.suggested_traces[0] == "checked"
    assert failure.rerun_command is not None and framework.file("suite").split(".")[0] in failure.rerun_command
    assert shlex.split(failure.rerun_command)


@cases(full=SLOW)
def test_one_test(framework: Framework, tmp_path: Path) -> None:
    """A whole name runs that test alone, a part of names all that have it, a file all of its own."""
    at = bench(framework, tmp_path, "suite", "names")
    exact = drive(at.adapter, at.project, at.adapter.rerun(at.project, at.request(), "math > adds"), env={"PATH": at.path}).book
    assert by_status(exact) == {"passed": {"math > adds"}} and not exact.errors
    part = run(at, test="pair").book
    assert by_status(part) == {"passed": {"math > pair 1 2", "math > pair 3 4"}} and not part.errors
    file = run(at, test=framework.file("names")).book
    assert set(by_status(file)) == {"passed"} and len(file.tests) == 4 and not file.errors


@cases(full=SLOW)
def test_no_match(framework: Framework, tmp_path: Path) -> None:
    at = bench(framework, tmp_path, "suite")
    book = run(at, test="math > adss").book
    assert not book.tests and book.no_tests is None and book.crash is None
    (error,) = book.errors
    assert "'math > adss'" in error and "adds" in error, error


@cases(full=SLOW)
def test_no_tests(framework: Framework, tmp_path: Path) -> None:
    at = bench(framework, tmp_path)
    book = run(at).book
    assert not book.tests and not book.errors and book.crash is None
    assert book.no_tests is not None and "test" in book.no_tests.hint


@cases(full=("playwright",))
def test_hang_that_is_killed(framework: Framework, tmp_path: Path) -> None:
    """What waits for ever is known while it runs; no report is needed."""
    at = bench(framework, tmp_path, "hang")
    outcome = run_until(at, "never ends")
    assert by_status(outcome.book) == {"passed": {"quick"}, "stuck": {"never ends"}}, outcome.output
    stuck = the_case(outcome.book, "never ends")
    assert stuck.file == framework.file("hang") and stuck.duration_ms is not None and outcome.book.crash is None


@cases(full=("jest", "playwright"))
def test_spin_that_is_killed(framework: Framework, tmp_path: Path) -> None:
    """A test that never gives the event loop back is known as well, with its process."""
    at = bench(framework, tmp_path, "spin")
    outcome = run_until(at, "spins")
    assert by_status(outcome.book) == {"passed": {"quick"}, "stuck": {"spins"}}, outcome.output
    assert outcome.pids("spins")


@cases(full=("playwright",))
def test_crash(framework: Framework, tmp_path: Path) -> None:
    """A test that ends its process: the signal, and the test it was."""
    at = bench(framework, tmp_path, "crash")
    outcome = run(at)
    book = outcome.book
    assert the_case(book, "dies").status is TestStatus.LOST and the_case(book, "quick").status is TestStatus.PASSED, (book, outcome.output)
    assert book.crash is not None and book.crash.during == ["dies"] and book.crash.signal == framework.kill, book.crash


@cases(full=SLOW)
def test_file_that_cannot_be_read(framework: Framework, tmp_path: Path) -> None:
    at = bench(framework, tmp_path, "broken", "suite")
    book = run(at).book
    assert book.crash is None and book.no_tests is None
    (error,) = book.errors
    assert framework.file("broken") in error and book.compile_message == error
    assert ("math > adds" in {case.name for case in book.tests.values()}) == framework.whole_files


@cases(full=SLOW)
def test_odd_names(framework: Framework, tmp_path: Path) -> None:
    """Each is told as it is written, and can be run alone by it."""
    at = bench(framework, tmp_path, "names")
    names = by_status(run(at).book)["passed"]
    assert names == {"says \"hi\" and it's fine", "ünï ☃ 雪", "a [b] (c) {d} $1 ^*+?.|\\ x", "comma, semi; colon: and/slash"}
    for name in sorted(names):
        alone = drive(at.adapter, at.project, at.adapter.rerun(at.project, at.request(), name), env={"PATH": at.path}).book
        assert by_status(alone) == {"passed": {name}} and not alone.errors, name


@cases(full=SLOW)
def test_parallel_workers(framework: Framework, tmp_path: Path) -> None:
    """Two tests run at once, in two processes: both are known as running."""
    at = bench(framework, tmp_path, "left", "right")
    outcome = run(at, command=framework.side_by_side)
    assert by_status(outcome.book) == {"passed": {"meets on the left", "meets on the right"}}, (outcome.book, outcome.output)
    both = [{name for name, _ in at_once} for at_once in outcome.seen]
    assert {"meets on the left", "meets on the right"} in both
    if framework.name != "deno test":  # its workers are threads
        assert outcome.pids("meets on the left") != outcome.pids("meets on the right")


@cases(full=SLOW)
def test_monorepo(framework: Framework, tmp_path: Path) -> None:
    """Each package is a candidate; a run is of one, with the tool from further up and paths of the project."""
    bench(framework, tmp_path, "names", folder="packages/other")
    at = bench(framework, tmp_path, "suite", folder="packages/one")
    found = {one.folder: one for one in detect(at.project) if one.framework == framework.name}
    assert {"packages/one", "packages/other"} <= set(found) and all(one.reason and 0 < one.confidence <= 100 for one in found.values())
    book = run(at, folder="packages/one").book
    assert "math > adds" in by_status(book)["passed"] and not book.errors and len(book.tests) == 6
    failure = the_case(book, "math > fails here").failures[0]
    assert failure.file == f"packages/one/{framework.file('suite')}" and failure.line == failing_line(framework)
    assert failure.rerun_command is not None and failure.rerun_command.startswith("cd packages/one && ")


@cases()
def test_detected(framework: Framework, tmp_path: Path) -> None:
    at = bench(framework, tmp_path, "suite")
    best = detect(at.project)[0]
    assert best.framework == framework.name and best.folder == "." and best.confidence >= 90, detect(at.project)


WITH_HOOKS = pytest.mark.parametrize(
    "framework", [pytest.param(one, id=str(one), marks=pytest.mark.full) for one in FRAMEWORKS if one.name not in ("deno test", "playwright")]
)


@WITH_HOOKS
def test_process_that_lives_on(framework: Framework, tmp_path: Path) -> None:
    """A timer keeps it alive after its tests: they are done all the same. Where each file is a process of its own, it is that file that hangs."""
    at = bench(framework, tmp_path, "late")

    def done(book: Book) -> bool:
        return book.finished or (framework.name == "node:test" and the_status(book, "quick") == "passed")

    book = drive(at.adapter, at.project, at.request(), kill_when=done, env={"PATH": at.path}).book
    expected = {"quick": "passed", "(after its last test)": "stuck"} if framework.name == "node:test" else {"quick": "passed"}
    assert {case.name: case.status.value for case in book.tests.values()} == expected and book.crash is None


@WITH_HOOKS
def test_hook_that_hangs(framework: Framework, tmp_path: Path) -> None:
    """What ended before it counts, and that something of the file hangs is told."""
    at = bench(framework, tmp_path, "after")
    seen: list[float] = []

    def hangs(book: Book) -> bool:
        if the_status(book, "group > quick") == "passed":
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] > 1.5  # no event says that nothing comes

    book = drive(at.adapter, at.project, at.request(), kill_when=hangs, env={"PATH": at.path}).book
    assert the_status(book, "group > quick") == "passed" and book.crash is None, book
    stuck = [case for case in book.tests.values() if case.status is TestStatus.STUCK]
    assert framework.name == "bun test" or [case.file for case in stuck] == [framework.file("after")], book


def the_status(book: Book, name: str) -> str | None:
    return next((case.status.value for case in book.tests.values() if case.name == name), None)
