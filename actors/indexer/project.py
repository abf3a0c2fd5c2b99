"""Which source files are the user's own: those under projectRoot."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

# Dependencies' sources that build tools put inside a project
_FOREIGN: Final = ("/.cargo/registry/", "/.cargo/git/", "/node_modules/", "/site-packages/")


class ProjectRoot:
    def __init__(self, root: str) -> None:
        self._roots = tuple({os.path.normpath(root) + os.sep, os.path.realpath(root) + os.sep})
        self.holds = lru_cache(maxsize=100_000)(self._holds)

    def _holds(self, file: str) -> bool:
        """`file` as debug info has it; a relative path (builds with a remapped folder) counts when the project has such a file."""
        if not file.startswith(os.sep):
            return any((Path(root) / file).is_file() for root in self._roots)
        path = os.path.normpath(file)
        if not path.startswith(self._roots):
            path = os.path.realpath(path)
        return path.startswith(self._roots) and not any(foreign in path for foreign in _FOREIGN)
