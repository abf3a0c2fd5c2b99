"""Names of tests as they stand in JavaScript's test files, for runners that do not tell what they left out."""

from __future__ import annotations

import re
from typing import Final

from strobe.adapters.adapter import Project
from strobe.adapters.wanted import inside

NAMES_MAX: Final = 2000
FILES_MAX: Final = 200
FILE_BYTES: Final = 1 << 18
_PATTERNS: Final = ("**/*.test.*", "**/*.spec.*", "**/*_test.*", "**/test/**/*.*", "**/tests/**/*.*")
_NAMED: Final = re.compile(r"\b(?:it|test|Deno\.test|t\.step|specify)(?:\.(?!describe|step)\w+)*\(\s*(['\"`])((?:(?!\1).){1,200})\1")


def names_in_sources(project: Project, folder: str) -> list[str]:
    found: dict[str, None] = {}
    for pattern in _PATTERNS:
        for path in project.files(inside(folder, pattern), FILES_MAX):
            if re.search(r"\.[cm]?[jt]sx?$", path):
                text = project.read(path, FILE_BYTES) or ""
                found.update(dict.fromkeys(match[2] for match in _NAMED.finditer(text)))
        if len(found) > NAMES_MAX:
            break
    return list(found)
