"""Python projects: their folders, their interpreter, the frames of their tracebacks, and what is worth tracing because of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strobe.adapters.adapter import Project, Request
from strobe.adapters.stepped import tool
from strobe.adapters.wanted import inside, relative
from strobe.model.testing import Frame

PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini")
TRACES_MAX: Final = 6
FILES_MAX: Final = 2000
_FOREIGN: Final = re.compile(r"(?:^|/)(?:site-packages|dist-packages|lib/python\d[\d.]*|lib64/python\d[\d.]*)/|^<")
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")
_WORDS_NO_ONE_TRACES: Final = frozenset({"test", "tests", "case", "it", "should", "when", "with", "and", "the", "fails", "works", "ok"})


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`argv` runs Python; `said` is how a person would call it from the project's folder."""

    argv: tuple[str, ...]
    said: str


def interpreter(project: Project, request: Request) -> Interpreter:
    """The project's own Python: its virtual environment, from the folder upwards, uv or poetry that know where theirs is, else the one on the PATH."""
    folder = relative(project.root, request.folder)
    for place in upwards(folder):
        for venv in (".venv", "venv", "env"):
            path = inside(place, f"{venv}/bin/python")
            if project.exists(path) and project.exists(inside(place, f"{venv}/pyvenv.cfg")):
                said = relative(folder, path) if folder != "." else path
                return Interpreter((f"{project.root.rstrip('/')}/{path}",), said)
        for lock, manager, options in (("uv.lock", "uv", ("run", "--no-sync", "python")), ("poetry.lock", "poetry", ("run", "python"))):
            program = project.program(manager)
            if program is not None and project.exists(inside(place, lock)):
                return Interpreter((program, *options), " ".join((manager, *options)))
    found = project.program("python") or project.program("python3")
    return Interpreter((found or tool(project, "python3", "Install Python."),), "python3" if project.program("python") is None else "python")


def upwards(folder: str) -> list[str]:
    """The folder and those around it, up to the project's own."""
    parts = [] if folder == "." else folder.split("/")
    return ["/".join(parts[:count]) or "." for count in range(len(parts), -1, -1)]


def python_folders(project: Project) -> list[str]:
    """The project's folder, and each that is a project by itself."""
    found = {"."}
    for name in PROJECT_FILES:
        found.update(path.rpartition("/")[0] or "." for path in project.files(f"**/{name}", 200))
    return sorted(found)


def files_of(project: Project, folder: str, folders: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Files of a folder, not of the projects within it; relative to the project."""
    nested = [one for one in folders if one != folder and (folder == "." or one.startswith(folder + "/"))]
    found: dict[str, None] = {}
    for pattern in patterns:
        for path in project.files(inside(folder, pattern), FILES_MAX):
            if not any(path.startswith(one + "/") for one in nested):
                found[path] = None
    return sorted(found)


def toml(project: Project, path: str) -> Mapping[str, Any]:
    """Empty where there is none, or a broken one: its owner will tell of that."""
    try:
        return tomllib.loads(project.read(path) or "")
    except tomllib.TOMLDecodeError:
        return {}


def is_foreign(file: str | None) -> bool:
    return file is None or bool(_FOREIGN.search(file))


def own_frames(frames: Sequence[Frame]) -> list[Frame]:
    """Those of the project: its files have relative paths."""
    return [frame for frame in frames if not is_foreign(frame.file) and not (frame.file or "/").startswith(("/", "../"))]


def suggested_traces(frames: Sequence[Frame], name: str, file: str | None) -> list[str]:
    """Functions of the project on the stack, innermost first, their sources, then what the test's name speaks of."""
    own = own_frames(frames)
    code = [frame for frame in reversed(own) if not _TEST_FILE.search(frame.file or "")]
    helpers = [frame for frame in reversed(own) if frame not in code and not (frame.function or "").startswith("test")]
    found = [f"**.{frame.function}" for frame in (*code, *helpers) if frame.function and frame.function.isidentifier()]
    found += [f"@file:{frame.file}" for frame in code]
    words = re.sub(r"\[.*", "", name.rsplit("::", 1)[-1].rsplit(".", 1)[-1]).removeprefix("test").strip("_")
    if words and words not in _WORDS_NO_ONE_TRACES:
        found.append(f"**.*{words}*")
    stem = re.sub(r"(?:^test_|_test$|^test)", "", (file or "").rsplit("/", 1)[-1].removesuffix(".py"))
    if stem and stem not in _WORDS_NO_ONE_TRACES and not code:
        found.append(f"@file:{stem}.py")
    return list(dict.fromkeys(found))[:TRACES_MAX]
