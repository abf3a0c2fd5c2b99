"""Which tests of a Python project are of a level: by the markers it declares, else by folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from strobe.adapters.adapter import Project, Request
from strobe.adapters.stepped import refuse
from strobe.adapters.wanted import inside, relative
from strobe.model.testing import Level

NAMES: Final[Mapping[Level, Sequence[str]]] = {
    "unit": ("unit", "unittest", "unit_test", "unit_tests"),
    "integration": ("integration", "integrations", "integration_test", "integration_tests", "system", "functional"),
    "e2e": ("e2e", "end_to_end", "endtoend", "acceptance", "e2e_tests"),
}
TEST_FOLDERS: Final = ("tests", "test", ".")


def level_folders(project: Project, folder: str) -> dict[Level, list[str]]:
    """Folders of each level, relative to the request's."""
    found: dict[Level, list[str]] = {}
    for level, names in NAMES.items():
        places = [inside(base, name) for base in TEST_FOLDERS for name in names]
        found[level] = [place for place in places if project.files(inside(folder, f"{place}/**/*.py"), 1)]
    return found


def level_arguments(project: Project, request: Request, markers: set[str]) -> list[str]:
    """Arguments of pytest. Errors: VALIDATION_ERROR where nothing is marked with the level."""
    level = request.level
    assert level is not None
    folders = level_folders(project, relative(project.root, request.folder))
    if folders[level]:
        return folders[level]
    marked = [name for name in NAMES[level] if name in markers]
    if marked:
        return ["-m", " or ".join(marked)]
    others = [name for one, names in NAMES.items() if one != level for name in names if name in markers]
    elsewhere = [place for one, places in folders.items() if one != level for place in places]
    if level == "unit":
        return [*(f"--ignore={place}" for place in elsewhere), *(["-m", f"not ({' or '.join(others)})"] if others else [])]
    raise no_level(level, [*others, *elsewhere])


def no_level(level: Level, there: Sequence[str]) -> Exception:
    known = f" Marked are: {', '.join(there)}." if there else ""
    names = ", ".join(NAMES[level])
    return refuse(f"No {level} tests: no folder and no marker of such a name ({names}).{known}", "Leave `level` out, or give `test` or `command`.", level)
