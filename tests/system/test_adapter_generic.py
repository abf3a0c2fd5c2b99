"""Any command as a test run: what it prints and leaves is read, else it is one test."""

from __future__ import annotations

from pathlib import Path

import pytest

from strobe.adapters.adapter import Request
from strobe.adapters.generic import Generic
from strobe.adapters.registry import detect
from strobe.errors import StrobeError
from strobe.model.testing import TestStatus
from tests.harness.suites import REPORTERS
from tests.harness.test_runs import FolderProject, Outcome, drive


def run(place: Path, command: str | None, **given: object) -> Outcome:
    work = place / ".work"
    work.mkdir()
    request = Request(folder=str(place), reporters=str(REPORTERS), work=str(work), command=command)
    return drive(Generic(), FolderProject(place), request, **given)  # type: ignore[arg-type]


def statuses(outcome: Outcome) -> dict[str, str]:
    return {case.name: case.status.value for case in outcome.book.tests.values()}


def test_exit_status_is_the_result(tmp_path: Path) -> None:
    book = run(tmp_path, "echo all is well").book
    assert [(case.name, case.status) for case in book.tests.values()] == [("echo all is well", TestStatus.PASSED)]
    assert book.finished and not book.errors and book.crash is None


def test_lines_that_look_like_failures(tmp_path: Path) -> None:
    (tmp_path / "cart.c").touch()
    book = run(tmp_path, "echo starting; echo 'cart.c:12: error: 4 is not 3'; echo 'FAILED: totals'; exit 3").book
    failures = book.failures()
    assert [(one.file, one.line) for one in failures] == [("cart.c", 12), (None, None)]
    assert "4 is not 3" in failures[0].message and failures[1].message == "FAILED: totals" and "@file:cart." in failures[0].suggested_traces
    assert failures[0].rerun_command is not None and not book.errors


def test_tap(tmp_path: Path) -> None:
    lines = ["TAP version 13", "1..5", "ok 1 - adds", "not ok 2 - fails here", "#   at cart.c line 7", "# 4 is not 3", "ok 3 - out # SKIP for now",
             "not ok 4 - later # TODO some day", "ok 5 - adds"]  # fmt: skip
    (tmp_path / "said").write_text("\n".join(lines) + "\n")
    outcome = run(tmp_path, "cat said; exit 1")
    assert statuses(outcome) == {"adds": "passed", "fails here": "failed", "out": "skipped", "later": "skipped", "adds (2)": "passed"}, outcome
    (failure,) = outcome.book.failures()
    assert "4 is not 3" in failure.message and (failure.file, failure.line) == ("cart.c", 7)
    assert outcome.book.expected == 5 and not outcome.book.errors


def test_lines_like_tap_are_not_believed_without_a_plan(tmp_path: Path) -> None:
    assert list(statuses(run(tmp_path, "echo 'not ok 1 - fake'; true")).values()) == ["passed"]


def test_a_plan_that_is_not_kept(tmp_path: Path) -> None:
    book = run(tmp_path, "printf '1..3\\nok 1\\nBail out! no more disk\\n'").book
    assert len(book.tests) == 1 and any("no more disk" in one for one in book.errors) and any("2 of 3" in one for one in book.errors)


def test_junit_file_that_it_leaves(tmp_path: Path) -> None:
    """One from an earlier run does not count."""
    (tmp_path / "old-junit.xml").write_text('<testsuite name="old"><testcase name="stale" classname="x"/></testsuite>')
    (tmp_path / "new").write_text(
        '<?xml version="1.0"?><testsuite name="cart"><testcase name="adds" classname="Cart" time="0.5"/>'
        '<testcase name="fails" classname="Cart"><failure message="4 is not 3">cart.c:9: assertion failed</failure></testcase></testsuite>'
    )
    outcome = run(tmp_path, "cp new junit.xml; exit 1")
    assert statuses(outcome) == {"Cart.adds": "passed", "Cart.fails": "failed"}
    (failure,) = outcome.book.failures()
    assert (failure.file, failure.line) == ("cart.c", 9) and "4 is not 3" in failure.message


def test_crash_and_hang(tmp_path: Path) -> None:
    crashed = run(tmp_path, "kill -SEGV $$").book
    assert crashed.crash is not None and crashed.crash.signal == "SIGSEGV" and crashed.count(TestStatus.LOST) == 1
    place = tmp_path / "other"
    place.mkdir()
    stuck = run(place, "echo begun; while :; do sleep 60; done", kill_when=lambda book: bool(book.running)).book
    assert stuck.count(TestStatus.STUCK) == 1 and stuck.crash is None


def test_command_that_a_folder_names(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\t@echo fine\n")
    project = FolderProject(tmp_path)
    (found,) = [one for one in detect(project) if one.framework == "generic"]
    assert "make test" in found.reason and 0 < found.confidence < 50
    assert statuses(run(tmp_path, None)) == {"make test": "passed"}


def test_a_name_cannot_be_chosen(tmp_path: Path) -> None:
    request = Request(folder=str(tmp_path), reporters=str(REPORTERS), work=str(tmp_path), command="true", test="adds")
    with pytest.raises(StrobeError, match="choose tests by name"):
        Generic().start(FolderProject(tmp_path), request)
