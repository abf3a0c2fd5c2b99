"""pytest 6 and later, with xdist or without: agent/reporters/strobe_pytest.py tells what happens and chooses tests by name."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step
from strobe.adapters.levels_python import level_arguments
from strobe.adapters.python_project import Interpreter, files_of, interpreter, python_folders, toml, upwards
from strobe.adapters.python_run import TESTS, PythonRun
from strobe.adapters.stepped import refuse, surroundings
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, NoTests

REPORTER: Final = "strobe_pytest.py"
TEST_FILES: Final = ("**/test_*.py", "**/*_test.py")
LOOKED_AT_MAX: Final = 60
EXAMPLE: Final = "Add tests/test_sum.py:\n  def test_adds():\n      assert 1 + 1 == 2\nIt runs by: python -m pytest (pip install pytest)"
_IMPORT: Final = re.compile(r"^\s*(?:import|from)\s+pytest\b", re.M)
_FUNCTION: Final = re.compile(r"^(?:async )?def test_|^class Test", re.M)
_REQUIRED: Final = re.compile(r"""(?:^|["'\s])pytest(?:\[[\w,-]+\])?\s*(?:[=<>~!;@"',]|$)""", re.M)


class PytestRun(PythonRun):
    framework = "pytest"

    def expected_status(self, code: int) -> bool:
        if code in (3, 4):  # an internal error, or a call that it does not understand
            return bool(self.book.errors)
        return super().expected_status(code)

    def install(self) -> str:
        """The command that adds it to the project's Python."""
        manager = self.rerun_words[0] if self.rerun_words else ""
        adds = {"uv": "uv sync, or uv add --dev pytest", "poetry": "poetry install, or poetry add --group dev pytest"}
        return adds.get(manager) or shlex.join([*self.rerun_words[:-2], "-m", "pip", "install", "pytest"])

    def could_not_start(self, step: str, exit: Exit) -> None:
        said = self.last(step)
        if "No module named pytest" in said:
            said = f"pytest is not installed for {self.first.argv[0]}. Install it there: {self.install()}. Or give `command`.\n{said}"
        self.trouble(f"pytest could not start (status {exit.code}): {said}")


class Pytest:
    name = "pytest"

    def detect(self, project: Project) -> Sequence[Candidate]:
        folders = python_folders(project)
        found = [self.candidate(project, folder, folders) for folder in folders]
        return [one for one in found if one is not None]

    def candidate(self, project: Project, folder: str, folders: Sequence[str]) -> Candidate | None:
        """Evidence adds up: configuration, dependency, conftest.py, test files that need it."""
        files = files_of(project, folder, folders, TEST_FILES)
        reasons = [
            *([f"{inside(folder, config)} configures pytest"] if (config := configured(project, folder)) is not None else []),
            *([f"{inside(folder, where)} requires pytest"] if (where := required(project, folder)) is not None else []),
            *([f"{conftest[0]} is there"] if (conftest := files_of(project, folder, folders, ("**/conftest.py",))) else []),
        ]
        base = 92 if config is not None else 88 if where is not None else 80
        for file in files[:LOOKED_AT_MAX]:
            text = project.read(file, 1 << 16) or ""
            if _IMPORT.search(text) or (_FUNCTION.search(text) and "unittest" not in text):
                reasons.append(f"{file} has tests written for it")
                break
        if not reasons or (not files and config is None):
            return None
        if len(reasons) == 1 and reasons[0].endswith("written for it"):
            base = 70
        return Candidate(framework=self.name, confidence=min(98, base + 2 * (len(reasons) - 1)), reason="; ".join(reasons), folder=folder)

    def start(self, project: Project, request: Request) -> PytestRun:
        python = interpreter(project, request)
        asked = self.wanted(project, request)
        step = self.step(project, request, python, asked)
        run = PytestRun(project, request, asked, self.hint(), step)
        run.rerun_words = (*shlex.split(python.said), "-m", "pytest")
        return run

    def wanted(self, project: Project, request: Request) -> Wanted:
        """`test` is a part of ids, a file, or a whole id."""
        if request.test is None:
            return Wanted()
        file, parted, _ = request.test.partition("::")
        there = file.endswith(".py") and self.file_in(project, request, file) is not None
        if there and not parted:
            return Wanted(file=file)
        return Wanted(name=request.test, exact=request.exact or (there and self.is_whole(request.test)), file=None)

    def is_whole(self, test: str) -> bool:
        return test.rsplit("::", 1)[-1].partition("[")[0].isidentifier() and ("[" not in test or test.endswith("]"))

    def file_in(self, project: Project, request: Request, file: str) -> str | None:
        """A test's file, as seen from the folder that pytest runs in."""
        folder = relative(project.root, request.folder)
        if project.exists(inside(folder, file)):
            return file
        if folder != "." and file.startswith(folder + "/") and project.exists(file):
            return relative(folder, file)
        return None

    def step(self, project: Project, request: Request, python: Interpreter, asked: Wanted) -> Step:
        env: dict[str, str | None] = {}
        chosen: list[str] = []
        if asked.file is not None:
            chosen = [self.file_in(project, request, asked.file) or asked.file]
        elif asked.name is not None:
            file = asked.name.partition("::")[0]
            place = self.file_in(project, request, file) if "::" in asked.name else None
            text = asked.name if place is None else asked.name.replace(file, place, 1)
            chosen = [place] if place is not None else []
            env["STROBE_TEST_ONLY"] = json.dumps({"text": text, "exact": asked.exact})
        reporter = f"{request.reporters.rstrip('/')}/{REPORTER}"
        if request.command is not None:
            argv = self.command(project, request, python, reporter, env)
        else:
            levels = level_arguments(project, request, self.markers(project, request)) if request.level is not None else []
            argv = [*python.argv, reporter, *levels]
        return Step(TESTS, (*argv, *chosen), request.folder, surroundings(request, env), events=True)

    def command(self, project: Project, request: Request, python: Interpreter, reporter: str, env: dict[str, str | None]) -> list[str]:
        """A line that plainly calls pytest is called so, with the reporter; another is run by the shell, and pytest told by its variables."""
        line = request.command or ""
        try:
            words = shlex.split(line)
        except ValueError as broken:
            raise refuse(f"`command` is no shell line: {broken}.", "Close its quotes.", line) from broken
        if not set("|&;<>()$`\n*?") & set(line):
            for index, word in enumerate(words):
                if word.rsplit("/", 1)[-1] in ("pytest", "py.test"):
                    before = words[:index]
                    if before[-1:] == ["-m"]:
                        before = before[:-1]
                        given = self.python_named(project, request, before)
                        if given is not None:
                            return [*given, reporter, *words[index + 1 :]]
                    elif not before:
                        return [*python.argv, reporter, *words[1:]]
                    break
        env["PYTHONPATH"] = ":".join([request.reporters, *([request.env["PYTHONPATH"]] if request.env.get("PYTHONPATH") else [])])
        env["PYTEST_ADDOPTS"] = f"-p strobe_pytest {request.env.get('PYTEST_ADDOPTS', '')}".strip()
        return ["/bin/sh", "-c", line, "sh"]

    def python_named(self, project: Project, request: Request, words: Sequence[str]) -> list[str] | None:
        """`python3 -X dev` with its absolute path; None for anything that is not plainly an interpreter."""
        if not words or not re.fullmatch(r"python[\d.]*t?", words[0].rsplit("/", 1)[-1]):
            return None
        program = words[0] if words[0].startswith("/") else f"{request.folder}/{words[0]}" if "/" in words[0] else project.program(words[0])
        return [program, *words[1:]] if program is not None else None

    def markers(self, project: Project, request: Request) -> set[str]:
        """Names of the markers that the project declares."""
        found: set[str] = set()
        for place in upwards(relative(project.root, request.folder)):
            declared = toml(project, inside(place, "pyproject.toml")).get("tool", {}).get("pytest", {}).get("ini_options", {}).get("markers", [])
            lines = declared.splitlines() if isinstance(declared, str) else [str(one) for one in declared]
            for file, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
                lines += option(project, inside(place, file), section, "markers").splitlines()
            found.update(name for line in lines if (name := re.split(r"[:(]", line.strip())[0].strip()))
        return found

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "python"

    def hint(self) -> NoTests:
        return NoTests(project="Python", hint=f"No pytest tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if project.files("**/*.py", 1) or any(project.exists(name) for name in ("pyproject.toml", "setup.py")) else None


def option(project: Project, path: str, section: str, name: str) -> str:
    """Of a file of the old kind of settings; empty where there is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(project.read(path) or "")
    except configparser.Error:
        return ""
    return parser.get(section, name, fallback="")


def configured(project: Project, folder: str) -> str | None:
    """The file that configures pytest in a folder."""
    if project.exists(inside(folder, "pytest.ini")):
        return "pytest.ini"
    if "pytest" in toml(project, inside(folder, "pyproject.toml")).get("tool", {}):
        return "pyproject.toml"
    for file, section in (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")):
        if section in (project.read(inside(folder, file)) or ""):
            return file
    return None


def required(project: Project, folder: str) -> str | None:
    """The file that names pytest among what a project needs."""
    for file in ("pyproject.toml", "requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt", "requirements-test.txt", "requirements.txt",
                 "test-requirements.txt", "setup.cfg", "setup.py", "Pipfile"):  # fmt: skip
        if _REQUIRED.search(project.read(inside(folder, file)) or ""):
            return file
    return "uv.lock" if 'name = "pytest"' in (project.read(inside(folder, "uv.lock")) or "") else None
