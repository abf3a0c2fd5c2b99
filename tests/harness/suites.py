"""The projects that every adapter's conformance tests run (tests/targets/frameworks/<folder>): the same tests, written for each framework."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strobe.adapters.adapter import Adapter, Request
from strobe.adapters.registry import adapter
from strobe.model.testing import Level
from tests.harness.test_runs import FolderProject, Outcome, drive

TARGETS: Final = Path(__file__).resolve().parents[1] / "targets" / "frameworks"
REPORTERS: Final = Path(__file__).resolve().parents[2] / "agent" / "reporters"


ROLES: Final = (
    "suite", "names", "hang", "spin", "crash", "broken", "empty", "parallel", "retried", "late", "after",
)  # fmt: skip
# What is looked at within a role's run: skipped tests and why, the process that runs a test, a failure's stack, a process for each of
# two at once, that a hook of a file hangs.
FACTS: Final = ("skips", "reasons", "pids", "stack", "apart", "hooks")


def no_preparation(place: Path, root: Path) -> None:
    """Runs as it lies."""


@dataclass(frozen=True)
class Suite:
    """A framework's projects. `names` gives each role its test's name: adds, fails, skipped, pair (two), prints, quick, hangs, spins, dies, retried, odd
    (some), hooked. `sets` says which files, beside `common`, make the project of a role. `failing` is (file, text of the line that fails).
    `cannot`: roles and facts that the framework does not have or tell, and why; each other one is tested."""

    framework: str
    folder: str
    common: tuple[str, ...]
    sets: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]]
    failing: tuple[str, str]
    no_match: tuple[str, str]  # a name that is of no test, and a part of the nearest
    trace: str  # one of the patterns that the failure suggests
    cannot: Mapping[str, str] = field(default_factory=dict)
    part: str = "pair"
    fails_with: str = "4 is not 3"
    reason: str = "left out for now"
    frame: str = "checked"  # a function on the failure's stack
    parallel: str | None = None  # the command that runs two tests at once, where the usual one does not
    file: str | None = None  # of the odd names, where `test` may be a file
    after_late: Mapping[str, str] = field(default_factory=lambda: {"quick": "passed"})  # what is told of a process that lives on after its tests
    breaks_all: bool = True  # a file that can't be read keeps the others from running
    prepare: Callable[[Path, Path], None] = no_preparation
    build_folder: str = "."  # of the candidate, within the project's
    dies_by: str | None = "SIGSEGV"
    needs: tuple[str, ...] = ()
    slow: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    brings: Callable[[], str] | None = None  # installs what it needs; the folder of its programs

    def __str__(self) -> str:
        return self.framework.replace(" ", "_")

    def one(self, role: str) -> str:
        (name,) = self.names[role]
        return name


@dataclass(frozen=True)
class Bench:
    """A project of a suite in a folder of its own, ready to run."""

    suite: Suite
    root: Path
    work: Path
    folder: str

    @property
    def path(self) -> str:
        brought = [self.suite.brings()] if self.suite.brings is not None else []
        return os.pathsep.join([*brought, str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

    @property
    def project(self) -> FolderProject:
        return FolderProject(self.root, self.path)

    @property
    def adapter(self) -> Adapter:
        return adapter(self.suite.framework)

    def request(self, test: str | None = None, command: str | None = None, level: Level | None = None, exact: bool = False) -> Request:
        work = self.work / str(len(list(self.work.iterdir())))
        work.mkdir()
        place = self.root if self.folder == "." else self.root / self.folder
        return Request(
            folder=str(place), reporters=str(REPORTERS), work=str(work), test=test, command=command, level=level, exact=exact, env=self.suite.env
        )  # fmt: skip

    def run(self, request: Request | None = None, **given: object) -> Outcome:
        return drive(self.adapter, self.project, request or self.request(), env={"PATH": self.path}, **given)  # type: ignore[arg-type]

    def run_until(self, name: str) -> Outcome:
        """Until this test runs and no other does; then it is killed, as at a limit."""
        return self.run(kill_when=lambda book: {one.name for one in book.running.values()} == {name})


def bench(suite: Suite, base: Path, role: str, folder: str = ".") -> Bench:
    """A project with the files of a role; `folder` is where in it. The path holds what a shell and a URL would read otherwise."""
    root = (base / "a project").resolve()
    place = root if folder == "." else root / folder
    place.mkdir(parents=True, exist_ok=True)
    work = base / "work"
    work.mkdir(exist_ok=True)
    for file in (*suite.common, *suite.sets[role]):
        source, _, name = file.partition(" as ")
        target = place / (name or source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TARGETS / suite.folder / source, target)
    suite.prepare(place, root)
    at = suite.build_folder if folder == "." else folder if suite.build_folder == "." else f"{folder}/{suite.build_folder}"
    return Bench(suite, root, work, at)
