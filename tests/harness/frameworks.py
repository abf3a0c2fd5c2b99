"""The projects that every adapter's conformance tests run: the same tests, written for each framework (tests/targets/frameworks)."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.adapters.adapter import Adapter, Request
from strobe.adapters.registry import adapter
from strobe.model.testing import Level
from tests.harness import npm
from tests.harness.test_runs import FolderProject

TARGETS: Final = Path(__file__).resolve().parents[1] / "targets" / "frameworks"
REPORTERS: Final = Path(__file__).resolve().parents[2] / "agent" / "reporters"


@dataclass(frozen=True)
class Framework:
    """`whole_files`: a file that can't be read does not keep the others from running. `side_by_side`: a command that runs two files at once."""

    name: str
    folder: str
    ending: str
    side_by_side: str
    whole_files: bool = True
    kill: str = "SIGSEGV"
    from_npm: bool = True

    def __str__(self) -> str:
        return self.folder

    def file(self, stem: str) -> str:
        return stem + self.ending


FRAMEWORKS: Final = (
    Framework("vitest", "vitest", ".test.ts", "vitest run --maxWorkers=2"),
    Framework("jest", "jest", ".test.js", "jest --maxWorkers=2 --cacheDirectory=.cache"),
    Framework("node:test", "node_test", ".test.mjs", "node --test --test-concurrency=2 *.test.mjs"),
    Framework("mocha", "mocha", ".spec.cjs", "mocha --parallel --jobs 2 --timeout 30000 *.spec.cjs", whole_files=False),
    Framework("playwright", "playwright", ".spec.ts", "playwright test --workers=2", whole_files=False),
    Framework("bun test", "bun", ".test.ts", "bun test --parallel=2"),
    Framework("deno test", "deno", "_test.ts", "deno test --no-check -A --parallel", whole_files=False, kill="SIGKILL", from_npm=False),
)


@dataclass(frozen=True)
class Bench:
    """A project of a framework in a folder of its own, ready to run."""

    framework: Framework
    root: Path
    work: Path

    @property
    def project(self) -> FolderProject:
        return FolderProject(self.root, self.path)

    @property
    def path(self) -> str:
        programs = {"bun test": "bun", "deno test": "deno"}
        extra = [npm.program(programs[self.framework.name])] if self.framework.name in programs else []
        return os.pathsep.join([*extra, os.environ.get("PATH", os.defpath)])

    def request(self, folder: str = ".", test: str | None = None, command: str | None = None, level: Level | None = None) -> Request:
        place = self.root if folder == "." else self.root / folder
        work = self.work / str(len(list(self.work.iterdir())))
        work.mkdir()
        return Request(folder=str(place), reporters=str(REPORTERS), work=str(work), test=test, command=command, level=level)

    @property
    def adapter(self) -> Adapter:
        return adapter(self.framework.name)


def bench(framework: Framework, base: Path, *stems: str, folder: str = ".") -> Bench:
    """A project with these test files of the framework, and what it needs to run."""
    root = (base / "a project").resolve() if " " not in str(base) else base
    place = root if folder == "." else root / folder
    place.mkdir(parents=True, exist_ok=True)
    work = base / "work"
    work.mkdir(exist_ok=True)
    for settings in ("package.json", "deno.json"):
        if (TARGETS / framework.folder / settings).exists():
            shutil.copy(TARGETS / framework.folder / settings, place / settings)
    for stem in stems:
        shutil.copy(TARGETS / framework.folder / framework.file(stem), place / framework.file(stem))
    if framework.from_npm and not (root / "node_modules").exists():
        (root / "node_modules").symlink_to(npm.node_modules())
    return Bench(framework, root, work)
