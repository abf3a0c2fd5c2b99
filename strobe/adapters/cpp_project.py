"""C and C++ projects: where they were built, by what, and which of the built programs hold tests of a framework."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.stepped import refuse, surroundings, tool
from strobe.adapters.wanted import inside, relative
from strobe.model.testing import Candidate

BUILD: Final = "build"
FILES_MAX: Final = 5000
PROGRAMS_MAX: Final = 200
USUAL_BUILDS: Final = ("build", "out", "_build", "builddir", "cmake-build-debug", "cmake-build-release", "build/debug", "build/release", "bin", "tests", "test")
_NO_PROGRAM: Final = re.compile(
    r"(?:^|/)(?:CMakeFiles|\.git|_deps)/"
    r"|\.(?:o|a|so|d|c|cc|cpp|cxx|h|hh|hpp|cmake|txt|ninja|json|xml|log|py|sh|md|make|rs|go|js|ts)(?:\.\d+)*$"
)


def build_folders(project: Project) -> list[str]:
    """Those that CMake made."""
    found = {path.rpartition("/")[0] or "." for path in project.files("**/CMakeCache.txt", 100)}
    found.update(folder for folder in USUAL_BUILDS if project.exists(f"{folder}/CMakeCache.txt"))
    return sorted(found)


def cmake_folders(project: Project) -> list[str]:
    """Each CMakeLists.txt that begins a project."""
    found = []
    for path in project.files("**/CMakeLists.txt", 200):
        if re.search(r"^\s*project\s*\(", project.read(path) or "", re.M | re.I):
            found.append(path.rpartition("/")[0] or ".")
    return found


def source_folder(project: Project, build: str) -> str | None:
    """The sources of a build folder, relative to the project where they lie in it."""
    match = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", project.read(inside(build, "CMakeCache.txt"), 1 << 22) or "", re.M)
    return relative(project.root, match[1]) if match else None


def programs(project: Project, folder: str, needles: Sequence[bytes]) -> list[str]:
    """Built programs under a folder that hold one of these texts; relative to the project."""
    return holding(project, project.files(inside(folder, "**/*"), FILES_MAX), needles)


def holding(project: Project, paths: Sequence[str], needles: Sequence[bytes]) -> list[str]:
    found: list[str] = []
    for path in paths:
        if _NO_PROGRAM.search(path) or (project.read(path, 4) or "")[:4] != "\x7fELF":
            continue
        if any(project.has_bytes(path, needle) for needle in needles):
            found.append(path)
            if len(found) == PROGRAMS_MAX:
                break
    return found


def candidates(project: Project, framework: str, needles: Sequence[bytes], words: re.Pattern[str], base: int) -> list[Candidate]:
    """Build folders with such programs, folders with such programs that CMake did not build, and sources that use it and were not built yet."""
    found: list[Candidate] = []
    if not any(project.files(f"**/*.{ending}", 1) for ending in ("cpp", "cc", "cxx", "hpp")):
        return found  # to look at every file costs something
    builds = build_folders(project)
    taken: set[str] = set()
    for build in builds:
        held = programs(project, build, needles)
        taken.update(held)
        uses = uses_it(project, source_folder(project, build) or ".", words)
        if held:
            reason = f"{held[0]} is a program with its tests" + (f", {len(held) - 1} more" if len(held) > 1 else "") + (f"; {uses} uses it" if uses else "")
            found.append(Candidate(framework=framework, confidence=base + (3 if uses else 0), reason=reason, folder=build))
        elif uses is not None:
            found.append(Candidate(framework=framework, confidence=base - 8, reason=f"{uses} uses it; not built yet", folder=build))
    others = [path for path in programs(project, ".", needles) if path not in taken]
    for folder in dict.fromkeys(path.rpartition("/")[0] or "." for path in others):
        held = [path for path in others if (path.rpartition("/")[0] or ".") == folder]
        found.append(Candidate(framework=framework, confidence=base - 2, reason=f"{held[0]} is a program with its tests", folder=folder))
    sources = {source_folder(project, build) for build in builds}
    for folder in cmake_folders(project):
        if folder not in sources and (uses := uses_it(project, folder, words)) is not None:
            found.append(Candidate(framework=framework, confidence=base - 25, reason=f"{uses} uses it; not configured yet", folder=folder))
    return found


def uses_it(project: Project, folder: str, words: re.Pattern[str]) -> str | None:
    """The CMakeLists.txt that names the framework."""
    for path in project.files(inside(folder, "**/CMakeLists.txt"), 50):
        if words.search(project.read(path) or ""):
            return path
    return None


def build_step(project: Project, request: Request) -> Step | None:
    """Builds what CMake knows how to build. Errors: VALIDATION_ERROR for sources without a build."""
    folder = relative(project.root, request.folder)
    if project.exists(inside(folder, "CMakeCache.txt")):
        argv = (tool(project, "cmake", "Install CMake."), "--build", request.folder)
        return Step(BUILD, argv, request.folder, surroundings(request), phase="compiling")
    if project.exists(inside(folder, "CMakeLists.txt")) and not programs(project, folder, (b"",)):
        where = "" if folder == "." else f"cd {folder} && "
        raise refuse(f"{folder} is not configured: no build folder.", f"Run: {where}cmake -S . -B build && cmake --build build", folder)
    return None


def compiler_errors(lines: Sequence[str]) -> str:
    """Of a build's output: from the first error on."""
    for index, line in enumerate(lines):
        if re.search(r"\berror\b[: ]|undefined reference|CMake Error|No rule to make", line):
            return "\n".join(lines[max(0, index - 1) :])
    return "\n".join(lines[-20:])
