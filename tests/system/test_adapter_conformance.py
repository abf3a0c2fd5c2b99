"""What every test adapter does, on real projects of its framework: the same checks for all (plain commands: test_adapter_generic)."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path

import pytest

from strobe.adapters.book import Book
from strobe.adapters.registry import ADAPTERS, detect
from strobe.model.testing import TestCase, TestStatus
from tests.harness.all_suites import SUITES
from tests.harness.suites import FACTS, ROLES, Suite, bench
from tests.harness.targets import in_ci


def cases(role: str, *, full: tuple[str, ...] = (), always: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """All suites that have the role; those that are slow only where it matters most: `always` names some, "" all."""
    marked = []
    for one in SUITES:
        if role not in one.cannot:
            long = (one.slow and not {"", str(one)} & set(always)) or bool({"", str(one)} & set(full))
            marked.append(pytest.param(one, id=str(one), marks=[pytest.mark.full] if long else []))
    return pytest.mark.parametrize("suite", marked)


@pytest.fixture(autouse=True)
def there(request: pytest.FixtureRequest) -> None:
    suite: Suite | None = request.node.callspec.params.get("suite") if hasattr(request.node, "callspec") else None
    missing = [program for program in (suite.needs if suite is not None else ()) if shutil.which(program) is None]
    if missing:
        message = f"{', '.join(missing)} not installed"
        pytest.fail(message) if in_ci() else pytest.skip(message)


def test_every_adapter_says_what_it_cannot() -> None:
    """A role without a project is one that the framework cannot have, and for a reason."""
    assert {one.framework for one in SUITES} | {"generic"} == {one.name for one in ADAPTERS}
    for one in SUITES:
        assert set(one.cannot) <= {*ROLES, *FACTS} and all(one.cannot.values()), one
        assert set(ROLES) <= {*one.sets, *one.cannot}, one


def by_status(book: Book) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for case in book.tests.values():
        found.setdefault(case.status.value, set()).add(case.name)
    return found


def the_case(book: Book, name: str) -> TestCase:
    (found,) = [case for case in book.tests.values() if case.name == name]
    return found


def the_status(book: Book, name: str) -> str | None:
    return next((case.status.value for case in book.tests.values() if case.name == name), None)


def failing_line(root: Path, file: str, text: str) -> int:
    lines = (root / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@cases("suite", always=("",))
def test_whole_suite(suite: Suite, tmp_path: Path) -> None:
    """Results, failures with their place, what is worth tracing, live tests, and nothing of what the program printed."""
    at = bench(suite, tmp_path, "suite")
    outcome = at.run()
    book = outcome.book
    passed = {suite.one("adds"), *suite.names["pair"], suite.one("prints")}
    expected = {"passed": passed, "failed": {suite.one("fails")}, "skipped": set(suite.names["skipped"])}
    assert by_status(book) == {status: names for status, names in expected.items() if names}, (book, outcome.output)
    assert bool(suite.names["skipped"]) == ("skips" not in suite.cannot)
    assert book.finished and book.crash is None and book.no_tests is None and not book.errors and not book.running, book
    assert {suite.one("adds"), suite.one("fails"), suite.one("prints")} <= outcome.ever_running()
    assert bool(outcome.pids(suite.one("adds"))) == ("pids" not in suite.cannot), "the process that runs a test is known"
    failed = the_case(book, suite.one("fails"))
    assert failed.duration_ms is not None
    (failure,) = failed.failures
    assert suite.fails_with in failure.message and "\x1b" not in failure.message
    assert (failure.file, failure.line) == (suite.failing[0], failing_line(at.root, *suite.failing)), failure
    assert any(suite.frame in (frame.function or "") for frame in failure.stack_trace) == ("stack" not in suite.cannot), failure
    assert suite.trace in failure.suggested_traces, failure
    assert failure.rerun_command is not None and shlex.split(failure.rerun_command)
    assert all((suite.reason in (the_case(book, name).reason or "")) == ("reasons" not in suite.cannot) for name in suite.names["skipped"]), book


@cases("suite")
def test_one_test(suite: Suite, tmp_path: Path) -> None:
    """A whole name runs that test alone, a part of names all that have it."""
    at = bench(suite, tmp_path, "suite")
    exact = at.run(at.adapter.rerun(at.project, at.request(), suite.one("adds"))).book
    assert by_status(exact) == {"passed": {suite.one("adds")}} and not exact.errors, exact
    part = at.run(at.request(test=suite.part)).book
    assert by_status(part) == {"passed": set(suite.names["pair"])} and not part.errors, part


@cases("suite")
def test_no_match(suite: Suite, tmp_path: Path) -> None:
    at = bench(suite, tmp_path, "suite")
    asked, near = suite.no_match
    book = at.run(at.request(test=asked)).book
    assert not book.tests and book.no_tests is None and book.crash is None, book
    (error,) = book.errors
    assert repr(asked) in error and near in error, error


@cases("empty")
def test_no_tests(suite: Suite, tmp_path: Path) -> None:
    book = bench(suite, tmp_path, "empty").run().book
    assert not book.tests and not book.errors and book.crash is None, book
    assert book.no_tests is not None and "test" in book.no_tests.hint.lower()


@cases("hang", always=("vitest", "jest"))
def test_hang_that_is_killed(suite: Suite, tmp_path: Path) -> None:
    """What waits for ever is known while it runs; no report is needed."""
    outcome = bench(suite, tmp_path, "hang").run_until(suite.one("hangs"))
    assert by_status(outcome.book) == {"passed": {suite.names["quick"][0]}, "stuck": {suite.one("hangs")}}, (outcome.book, outcome.output)
    stuck = the_case(outcome.book, suite.one("hangs"))
    assert stuck.duration_ms is not None and outcome.book.crash is None and not outcome.book.errors


@cases("spin", always=("vitest",))
def test_spin_that_is_killed(suite: Suite, tmp_path: Path) -> None:
    """A test that never gives the event loop back is known as well, with its process."""
    outcome = bench(suite, tmp_path, "spin").run_until(suite.one("spins"))
    assert by_status(outcome.book) == {"passed": {suite.names["quick"][0]}, "stuck": {suite.one("spins")}}, outcome.output
    assert outcome.pids(suite.one("spins"))


@cases("crash", always=("vitest", "jest"))
def test_crash(suite: Suite, tmp_path: Path) -> None:
    """A test that ends its process: the signal, and the test it was."""
    outcome = bench(suite, tmp_path, "crash").run()
    book = outcome.book
    assert the_case(book, suite.one("dies")).status is TestStatus.LOST, (book, outcome.output)
    assert the_case(book, suite.names["quick"][-1]).status is TestStatus.PASSED
    assert book.crash is not None and book.crash.during == [suite.one("dies")] and book.crash.signal == suite.dies_by, book.crash


@cases("broken")
def test_what_cannot_be_read(suite: Suite, tmp_path: Path) -> None:
    """A source that does not compile is an error with its place, and no crash."""
    book = bench(suite, tmp_path, "broken").run().book
    assert book.crash is None and book.no_tests is None
    assert book.errors and any("broken" in error for error in book.errors), book
    assert book.compile_message is not None and "broken" in book.compile_message
    assert (suite.one("adds") in {case.name for case in book.tests.values()}) is not suite.breaks_all


@cases("names", full=("GoogleTest", "go_test", "CTest"))
def test_odd_names(suite: Suite, tmp_path: Path) -> None:
    """Each is told as it is written, and can be run alone by it."""
    at = bench(suite, tmp_path, "names")
    names = by_status(at.run().book)["passed"]
    assert set(suite.names["odd"]) <= names
    for name in suite.names["odd"]:
        alone = at.run(at.adapter.rerun(at.project, at.request(), name)).book
        assert by_status(alone) == {"passed": {name}} and not alone.errors, (name, alone)


@pytest.mark.parametrize("suite", [pytest.param(one, id=str(one), marks=[pytest.mark.full] if one.slow else []) for one in SUITES if one.file])
def test_one_file(suite: Suite, tmp_path: Path) -> None:
    """Where tests are of files, `test` may be one."""
    at = bench(suite, tmp_path, "names")
    book = at.run(at.request(test=suite.file)).book
    assert set(suite.names["odd"]) <= by_status(book)["passed"] and not book.errors


@cases("suite", full=("GoogleTest", "go_test", "CTest"))
def test_monorepo(suite: Suite, tmp_path: Path) -> None:
    """Each package is a candidate; a run is of one, with the tool from further up and paths of the project."""
    other = bench(suite, tmp_path, "names", folder="packages/other")
    at = bench(suite, tmp_path, "suite", folder="packages/one")
    found = {one.folder: one for one in detect(at.project) if one.framework == suite.framework}
    assert {at.folder, other.folder} <= set(found) and all(one.reason and 0 < one.confidence <= 100 for one in found.values()), found
    book = at.run().book
    assert suite.one("adds") in by_status(book)["passed"] and not book.errors and len(book.tests) == 5 + len(suite.names["skipped"]), book
    failure = the_case(book, suite.one("fails")).failures[0]
    place = f"packages/one/{suite.failing[0]}"
    assert (failure.file, failure.line) == (place, failing_line(at.root, place, suite.failing[1])), failure
    assert failure.rerun_command is not None and "packages/one" in failure.rerun_command and shlex.split(failure.rerun_command)


@cases("parallel")
def test_parallel(suite: Suite, tmp_path: Path) -> None:
    """Two tests run at once: both are known as running, each in its process."""
    at = bench(suite, tmp_path, "parallel")
    outcome = at.run(at.request(command=suite.parallel))
    meeting = set(suite.names["meet"])
    assert by_status(outcome.book) == {"passed": meeting}, (outcome.book, outcome.output)
    assert any({name for name, _ in at_once} >= meeting for at_once in outcome.seen)
    left, right = (outcome.pids(name) for name in suite.names["meet"])
    assert bool(left and right and left != right) == ("apart" not in suite.cannot)


@cases("retried", always=("vitest", "jest"))
def test_retried(suite: Suite, tmp_path: Path) -> None:
    """What the framework runs again counts as it ended last, and as one test."""
    outcome = bench(suite, tmp_path, "retried").run()
    book = outcome.book
    assert set(by_status(book)) == {"passed"} and suite.one("retried") in by_status(book)["passed"], (book, outcome.output)
    assert len([name for name in by_status(book)["passed"] if name.startswith(suite.one("retried"))]) == 1
    assert not book.errors and not book.running and book.crash is None


@cases("suite", always=("",))
def test_detected(suite: Suite, tmp_path: Path) -> None:
    at = bench(suite, tmp_path, "suite")
    best = detect(at.project)[0]
    assert (best.framework, best.folder) == (suite.framework, at.folder) and best.confidence >= 75 and best.reason, detect(at.project)


@cases("late", full=("",))
def test_process_that_lives_on(suite: Suite, tmp_path: Path) -> None:
    """A timer keeps it alive after its tests: they are done all the same."""
    at = bench(suite, tmp_path, "late")
    stuck_too = "stuck" in suite.after_late.values()  # it is a file's process that hangs, not the runner's
    book = at.run(kill_when=lambda book: book.finished or (stuck_too and the_status(book, "quick") == "passed")).book
    assert {case.name: case.status.value for case in book.tests.values()} == suite.after_late and book.crash is None


@cases("after", full=("",))
def test_hook_that_hangs(suite: Suite, tmp_path: Path) -> None:
    """What ended before it counts, and that something of the file hangs is told."""
    at = bench(suite, tmp_path, "after")
    seen: list[float] = []

    def hangs(book: Book) -> bool:
        if the_status(book, suite.one("hooked")) == "passed":
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] > 1.5  # no event says that nothing comes

    book = at.run(kill_when=hangs).book
    assert the_status(book, suite.one("hooked")) == "passed" and book.crash is None, book
    stuck = [case.file for case in book.tests.values() if case.status is TestStatus.STUCK]
    assert (stuck == [suite.sets["after"][0]]) == ("hooks" not in suite.cannot), book
