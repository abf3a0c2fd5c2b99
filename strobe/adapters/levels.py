"""Which test files of a JavaScript package are of a level: by folder and by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from strobe.adapters.adapter import Project
from strobe.adapters.wanted import inside, relative
from strobe.errors import Code, StrobeError
from strobe.model.testing import Level

FILES_MAX: Final = 2000
TEST_NAMES: Final = ("**/*.test.*", "**/*.spec.*", "**/__tests__/**/*.*")
_CODE: Final = re.compile(r"\.[cm]?[jt]sx?$")
_LEVELS: Final[dict[Level, re.Pattern[str]]] = {
    "unit": re.compile(r"(?:^|[/._-])units?(?:[/._-])", re.I),
    "integration": re.compile(r"(?:^|[/._-])(?:integration|int)(?:[/._-])", re.I),
    "e2e": re.compile(r"(?:^|[/._-])(?:e2e|end-?to-?end|acceptance|playwright|cypress)(?:[/._-])", re.I),
}


def test_files(project: Project, folder: str, patterns: Sequence[str] = TEST_NAMES) -> list[str]:
    """Relative to the folder, sorted."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for path in project.files(inside(folder, pattern), FILES_MAX):
            if _CODE.search(path) and not path.endswith(".d.ts"):
                found[path if folder == "." else relative(folder, path)] = None
    return sorted(found)


def files_of_level(files: Sequence[str], level: Level) -> list[str] | None:
    """None: no file is marked, so that `unit` is all of them. Errors: VALIDATION_ERROR where there are none of the level."""
    marked = {one: [file for file in files if pattern.search(file)] for one, pattern in _LEVELS.items()}
    if marked[level]:
        return marked[level]
    if level == "unit":
        others = {file for found in marked.values() for file in found}
        return [file for file in files if file not in others] if others else None
    there = ", ".join(one for one, found in marked.items() if found) or "none is marked with a level"
    raise StrobeError(
        Code.VALIDATION_ERROR, f"No {level} tests: neither a script of that name nor test files in a folder or with a name that says so ({there}).",
        f"Leave `level` out, or give `test` a file or `command` the line that runs the {level} tests.", value=level,
    )  # fmt: skip
