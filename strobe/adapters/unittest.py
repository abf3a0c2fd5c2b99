"""unittest of the standard library: agent/reporters/strobe_unittest.py runs it, tells what happens and chooses tests by name."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step
from strobe.adapters.levels_python import level_folders, no_level
from strobe.adapters.pytest import configured, required
from strobe.adapters.python_project import files_of, interpreter, python_folders
from strobe.adapters.python_run import TESTS, PythonRun
from strobe.adapters.stepped import refuse, surroundings
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, NoTests

REPORTER: Final = "strobe_unittest.py"
TEST_FILES: Final = ("**/test*.py",)
LOOKED_AT_MAX: Final = 60
EXAMPLE: Final = (
    "Add test_sum.py:\n  import unittest\n  class Sum(unittest.TestCase):\n      def test_adds(self):\n          self.assertEqual(1 + 1, 2)\n"
    "It runs by: python -m unittest"
)
_IMPORT: Final = re.compile(r"^\s*(?:import|from)\s+unittest\b", re.M)
_CASE: Final = re.compile(r"^class \w+\(.*TestCase\)", re.M)


class UnittestRun(PythonRun):
    framework = "unittest"

    def could_not_start(self, step: str, exit: Exit) -> None:
        self.trouble(f"unittest could not start (status {exit.code}):\n{self.last(step)}")


class Unittest:
    name = "unittest"

    def detect(self, project: Project) -> Sequence[Candidate]:
        folders = python_folders(project)
        found = []
        for folder in folders:
            for file in files_of(project, folder, folders, TEST_FILES)[:LOOKED_AT_MAX]:
                text = project.read(file, 1 << 16) or ""
                if _IMPORT.search(text) and _CASE.search(text):
                    other = configured(project, folder) or required(project, folder)
                    reason = f"{file} has classes of unittest" + (f"; {other} speaks of pytest, which runs them too" if other else "")
                    found.append(Candidate(framework=self.name, confidence=60 if other else 82, reason=reason, folder=folder))
                    break
        return found

    def start(self, project: Project, request: Request) -> UnittestRun:
        python = interpreter(project, request)
        asked = Wanted(name=request.test, exact=request.exact)
        env: dict[str, str | None] = {}
        if request.test is not None:
            env["STROBE_TEST_ONLY"] = json.dumps({"text": request.test, "exact": request.exact})
        argv = (*python.argv, f"{request.reporters.rstrip('/')}/{REPORTER}", *self.arguments(project, request))
        step = Step(TESTS, argv, request.folder, surroundings(request, env), events=True)
        run = UnittestRun(project, request, asked, self.hint(), step)
        run.rerun_words = (*shlex.split(python.said), "-m", "unittest")
        return run

    def arguments(self, project: Project, request: Request) -> list[str]:
        """Of `python -m unittest`: what a command says, a level's folder, else where tests are found from."""
        if request.command is not None:
            words = shlex.split(request.command)
            if words[1:3] == ["-m", "unittest"] and not set("|&;<>$`") & set(request.command):
                return words[3:]
            what = f"`command` is not plainly `python -m unittest …`: {request.command!r}."
            raise refuse(what, 'Set `framework` to "generic" to run any command.', request.command)
        folder = relative(project.root, request.folder)
        if request.level is not None:
            places = level_folders(project, folder)
            if places[request.level]:
                return ["discover", "-s", places[request.level][0], "-t", "."]
            if request.level != "unit":
                raise no_level(request.level, [place for found in places.values() for place in found])
        for place in ("tests", "test"):
            # Discovery from the top does not look into a folder that is no package.
            hidden = not project.exists(inside(folder, f"{place}/__init__.py")) and project.files(inside(folder, f"{place}/test*.py"), 1)
            if hidden and not project.files(inside(folder, "test*.py"), 1):
                return ["discover", "-s", place]
        return ["discover"]

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "python"

    def hint(self) -> NoTests:
        return NoTests(project="Python", hint=f"No unittest tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if project.files("**/*.py", 1) else None
