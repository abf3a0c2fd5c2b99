"""What every test adapter for Python, C++, Rust, Go and plain commands does, on real projects of its framework: the same checks for all."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from strobe.adapters.book import Book
from strobe.adapters.registry import detect
from strobe.model.testing import TestCase, TestStatus
from tests.harness.all_suites import SUITES
from tests.harness.suites import Suite, bench
from tests.harness.targets import in_ci


def cases(*, without: tuple[str, ...] = (), full: tuple[str, ...] = (), always: bool = False) -> pytest.MarkDecorator:
    """All suites that have the role; those that are slow to build only where it matters most."""
    marked = []
    for one in SUITES:
        if str(one) not in without:
            long = (one.slow and not always) or str(one) in full
            marked.append(pytest.param(one, id=str(one), marks=[pytest.mark.full] if long else []))
    return pytest.mark.parametrize("suite", marked)


@pytest.fixture(autouse=True)
def there(request: pytest.FixtureRequest) -> None:
    suite: Suite = request.getfixturevalue("suite")
    missing = [program for program in suite.needs if shutil.which(program) is None]
    if missing:
        message = f"{', '.join(missing)} not installed"
        pytest.fail(message) if in_ci() else pytest.skip(message)


def by_status(book: Book) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for case in book.tests.values():
        found.setdefault(case.status.value, set()).add(case.name)
    return found


def the_case(book: Book, name: str) -> TestCase:
    (found,) = [case for case in book.tests.values() if case.name == name]
    return found


def failing_line(root: Path, file: str, text: str) -> int:
    lines = (root / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@cases(always=True)
def test_whole_suite(suite: Suite, tmp_path: Path) -> None:
    """Results, failures with their place, what is worth tracing, live tests, and nothing of what the program printed."""
    at = bench(suite, tmp_path, "suite")
    outcome = at.run()
    book = outcome.book
    passed = {suite.one("adds"), *suite.names["pair"], suite.one("prints")}
    expected = {"passed": passed, "failed": {suite.one("fails")}, "skipped": set(suite.names["skipped"])}
    assert by_status(book) == {status: names for status, names in expected.items() if names}, (book, outcome.output)
    assert book.finished and book.crash is None and book.no_tests is None and not book.errors and not book.running, book
    assert {suite.one("adds"), suite.one("fails"), suite.one("prints")} <= outcome.ever_running()
    if suite.has_pids:
        assert outcome.pids(suite.one("adds")), "the process that runs a test is known"
    failed = the_case(book, suite.one("fails"))
    assert failed.duration_ms is not None
    (failure,) = failed.failures
    assert suite.fails_with in failure.message and "\x1b" not in failure.message
    if suite.has_lines:
        assert failure.file == suite.failing[0] and failure.line == failing_line(at.root, *suite.failing), failure
    if suite.frame is not None:
        assert any(suite.frame in (frame.function or "") for frame in failure.stack_trace), failure
    assert suite.trace in failure.suggested_traces, failure
    assert failure.rerun_command is not None and shlex.split(failure.rerun_command)
    for name in suite.names["skipped"]:
        assert suite.reason is None or suite.reason in (the_case(book, name).reason or "")


@cases()
def test_one_test(suite: Suite, tmp_path: Path) -> None:
    """A whole name runs that test alone, a part of names all that have it."""
    at = bench(suite, tmp_path, "suite")
    exact = at.run(at.adapter.rerun(at.project, at.request(), suite.one("adds"))).book
    assert by_status(exact) == {"passed": {suite.one("adds")}} and not exact.errors, exact
    part = at.run(at.request(test=suite.part)).book
    assert by_status(part) == {"passed": set(suite.names["pair"])} and not part.errors, part


@cases()
def test_no_match(suite: Suite, tmp_path: Path) -> None:
    at = bench(suite, tmp_path, "suite")
    asked, near = suite.no_match
    book = at.run(at.request(test=asked)).book
    assert not book.tests and book.no_tests is None and book.crash is None, book
    (error,) = book.errors
    assert repr(asked) in error and near in error, error


@cases()
def test_no_tests(suite: Suite, tmp_path: Path) -> None:
    book = bench(suite, tmp_path, "empty").run().book
    assert not book.tests and not book.errors and book.crash is None, book
    assert book.no_tests is not None and "test" in book.no_tests.hint.lower()


@cases()
def test_hang_that_is_killed(suite: Suite, tmp_path: Path) -> None:
    """What waits for ever is known while it runs; no report is needed."""
    outcome = bench(suite, tmp_path, "hang").run_until(suite.one("hangs"))
    assert by_status(outcome.book) == {"passed": {suite.names["quick"][0]}, "stuck": {suite.one("hangs")}}, (outcome.book, outcome.output)
    stuck = the_case(outcome.book, suite.one("hangs"))
    assert stuck.duration_ms is not None and outcome.book.crash is None and not outcome.book.errors


@cases()
def test_crash(suite: Suite, tmp_path: Path) -> None:
    """A test that ends its process: the signal, and the test it was."""
    outcome = bench(suite, tmp_path, "crash").run()
    book = outcome.book
    assert the_case(book, suite.one("dies")).status is TestStatus.LOST, (book, outcome.output)
    assert the_case(book, suite.names["quick"][-1]).status is TestStatus.PASSED
    assert book.crash is not None and book.crash.during == [suite.one("dies")] and book.crash.signal == suite.dies_by, book.crash


@cases()
def test_what_cannot_be_read(suite: Suite, tmp_path: Path) -> None:
    """A source that does not compile is an error with its place, and no crash."""
    at = bench(suite, tmp_path, "broken")
    book = at.run().book
    assert book.crash is None and book.no_tests is None
    assert book.errors and any("broken" in error for error in book.errors), book
    assert book.compile_message is not None and "broken" in book.compile_message
    assert (suite.one("adds") in {case.name for case in book.tests.values()}) is not suite.breaks_all


@cases(full=("GoogleTest", "go_test", "CTest"))
def test_odd_names(suite: Suite, tmp_path: Path) -> None:
    """Each is told as it is written, and can be run alone by it."""
    at = bench(suite, tmp_path, "names")
    names = by_status(at.run().book)["passed"]
    assert set(suite.names["odd"]) <= names
    for name in suite.names["odd"]:
        alone = at.run(at.adapter.rerun(at.project, at.request(), name)).book
        assert by_status(alone) == {"passed": {name}} and not alone.errors, (name, alone)


@cases(full=("GoogleTest", "go_test", "CTest"))
def test_monorepo(suite: Suite, tmp_path: Path) -> None:
    """Each package is a candidate; a run is of one, with paths of the project."""
    other = bench(suite, tmp_path, "names", folder="packages/other")
    at = bench(suite, tmp_path, "suite", folder="packages/one")
    found = {one.folder: one for one in detect(at.project) if one.framework == suite.framework}
    assert {at.folder, other.folder} <= set(found) and all(one.reason and 0 < one.confidence <= 100 for one in found.values()), found
    book = at.run().book
    assert suite.one("adds") in by_status(book)["passed"] and not book.errors and len(book.tests) == 5 + len(suite.names["skipped"]), book
    failure = the_case(book, suite.one("fails")).failures[0]
    if suite.has_lines:
        assert failure.file == f"packages/one/{suite.failing[0]}", failure
    assert failure.rerun_command is not None and shlex.split(failure.rerun_command)


@cases(without=tuple(str(one) for one in SUITES if one.parallel is None))
def test_parallel(suite: Suite, tmp_path: Path) -> None:
    """Two tests run at once: both are known as running."""
    at = bench(suite, tmp_path, "parallel")
    outcome = at.run(at.request(command=suite.parallel or None))
    meeting = set(suite.names["meet"])
    assert by_status(outcome.book) == {"passed": meeting}, (outcome.book, outcome.output)
    assert any({name for name, _ in at_once} >= meeting for at_once in outcome.seen)
    if suite.has_pids:
        left, right = (outcome.pids(name) for name in suite.names["meet"])
        assert left and right and left != right


@cases()
def test_detected(suite: Suite, tmp_path: Path) -> None:
    at = bench(suite, tmp_path, "suite")
    best = detect(at.project)[0]
    assert (best.framework, best.folder) == (suite.framework, at.folder), detect(at.project)
