"""pytest and unittest beyond what all adapters share: fixtures that fail, subtests, workers that die, whose Python runs, what a command may be."""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from strobe.adapters.adapter import Request
from strobe.adapters.pytest import Pytest
from strobe.adapters.registry import detect
from strobe.errors import StrobeError
from strobe.model.testing import TestStatus
from tests.harness.all_suites import PYTEST, UNITTEST
from tests.harness.suites import Bench, bench
from tests.harness.test_runs import FolderProject

TARGETS = Path(__file__).resolve().parents[1] / "targets" / "frameworks"


def with_file(base: Path, name: str, suite: str = "pytest") -> Bench:
    at = bench(PYTEST if suite == "pytest" else UNITTEST, base, "empty")
    (at.root / name).write_text((TARGETS / suite / name).read_text())
    return at


def test_fixtures_and_subtests_that_fail(tmp_path: Path) -> None:
    book = with_file(tmp_path, "test_parts.py").run().book
    found = {name.rsplit("::", 1)[-1]: case for (_, name), case in book.tests.items()}
    assert {name: case.status.value for name, case in found.items()} == {
        "test_setup": "failed", "test_teardown": "failed", "test_expected": "skipped", "test_passes_against_all_odds": "failed", "test_subtests": "failed",
    }  # fmt: skip
    assert found["test_setup"].failures[0].message.startswith("in its setup: RuntimeError: no such thing")
    assert found["test_teardown"].failures[0].message.startswith("in its teardown: ") and found["test_expected"].reason == "failed as expected: known"
    parts = [one.message.split("]")[0] for one in found["test_subtests"].failures]
    assert parts[:2] == ["[number=0", "[number=2"] and not book.errors


def test_parts_of_unittest(tmp_path: Path) -> None:
    book = with_file(tmp_path, "test_parts.py", "unittest").run().book
    found = {name: case for (_, name), case in book.tests.items()}
    assert found["test_parts.Parts.test_subtests"].status is TestStatus.FAILED and len(found["test_parts.Parts.test_subtests"].failures) == 2
    assert found["test_parts.Parts.test_expected"].status is TestStatus.SKIPPED
    broken = next(case for name, case in found.items() if name.startswith("setUpClass"))
    assert broken.status is TestStatus.FAILED and "would not come" in broken.failures[0].message


def test_a_worker_that_dies(tmp_path: Path) -> None:
    """xdist starts another; the test is lost, by the signal that took its worker."""
    at = bench(PYTEST, tmp_path, "crash")
    book = at.run(at.request(command="pytest -n 1 -p no:cacheprovider")).book
    assert book.crash is not None and book.crash.signal == "SIGSEGV" and book.crash.during == ["test_crash.py::test_dies"], book
    assert {case.status for case in book.tests.values()} == {TestStatus.LOST, TestStatus.PASSED} and book.finished


def test_project_options_stay(tmp_path: Path) -> None:
    """Its addopts, its own report and its plugins are not disturbed."""
    at = bench(PYTEST, tmp_path, "suite")
    (at.root / "pytest.ini").write_text("[pytest]\naddopts = --junitxml=own.xml -q\nmarkers =\n    unit: small\n")
    book = at.run().book
    assert len(book.tests) == 6 and (at.root / "own.xml").exists() and not book.errors


def test_levels(tmp_path: Path) -> None:
    at = bench(PYTEST, tmp_path, "suite")
    assert {case.name for case in at.run(at.request(level="unit")).book.tests.values()} == {PYTEST.one("fails")}
    with pytest.raises(StrobeError, match="No e2e tests"):
        at.run(at.request(level="e2e"))
    place = at.root / "tests" / "integration"
    place.mkdir(parents=True)
    (place / "test_far.py").write_text("def test_far(): pass\n")
    assert {case.name for case in at.run(at.request(level="integration")).book.tests.values()} == {"tests/integration/test_far.py::test_far"}


def test_commands(tmp_path: Path) -> None:
    """A shell line whose tests are told of all the same, and a line with a file."""
    at = bench(PYTEST, tmp_path, "suite")
    by_shell = at.run(at.request(command="cd . && python -m pytest -q | cat")).book
    assert len(by_shell.tests) == 6 and by_shell.count(TestStatus.FAILED) == 1
    assert len(at.run(at.request(command="python -m pytest test_suite.py::test_prints_look_alikes")).book.tests) == 1
    assert at.run(at.request(test="test_suite.py")).book.count(TestStatus.PASSED) == 4


def test_file_that_is_not_there(tmp_path: Path) -> None:
    at = bench(PYTEST, tmp_path, "suite")
    book = at.run(at.request(command="pytest no_such_file.py")).book
    (error,) = book.errors
    assert "no_such_file.py" in error and not book.tests and book.crash is None


def test_virtual_environment_of_the_project(tmp_path: Path) -> None:
    """Its own Python is preferred to the one on the PATH, from a package's folder too; one without pytest is named."""
    at = bench(PYTEST, tmp_path, "suite", folder="packages/one")
    venv.create(at.root / ".venv", with_pip=False, symlinks=True)
    python = at.root / ".venv" / "bin" / "python"
    (step,) = at.adapter.start(at.project, at.request()).begin()
    assert step.argv[0] == str(python)
    book = at.run().book
    assert not book.tests and len(book.errors) == 1 and "not installed" in book.errors[0] and str(python) in book.errors[0]
    own = next((at.root / ".venv" / "lib").glob("python*")) / "site-packages"
    (own / "there.pth").write_text(sysconfig.get_path("purelib"))
    assert len(at.run().book.tests) == 6


def test_uv_project_without_an_environment(tmp_path: Path) -> None:
    """uv knows where its environment is."""
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "pytest"\n')
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    tool = tmp_path / "bin" / "uv"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "run --no-sync python" ] || exit 9\nshift 3\nexec "{sys.executable}" "$@"\n')
    tool.chmod(0o755)
    project = FolderProject(tmp_path, f"{tool.parent}:/usr/bin:/bin")
    assert any("uv.lock requires pytest" in one.reason for one in detect(project) if one.framework == "pytest")
    request = Request(folder=str(tmp_path), reporters=str(TARGETS), work=str(tmp_path))
    (step,) = Pytest().start(project, request).begin()
    assert step.argv[:4] == (str(tool), "run", "--no-sync", "python")


def test_agents_variables_do_not_reach_the_tests(tmp_path: Path) -> None:
    at = bench(PYTEST, tmp_path, "empty")
    (step,) = at.adapter.start(at.project, at.request()).begin()
    assert {name for name in ("CLAUDECODE", "AGENT", "PYTEST_XDIST_WORKER") if name in step.env and step.env[name] is None} == {
        "CLAUDECODE", "AGENT", "PYTEST_XDIST_WORKER"
    }  # fmt: skip
