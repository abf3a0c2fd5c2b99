"""A project's folder as adapters look at it (strobe.adapters.adapter.Project)."""

from __future__ import annotations

import fnmatch
import mmap
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

SKIPPED: Final = frozenset((
    ".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox",
    ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".gradle", ".idea", "site-packages",
))  # fmt: skip
CARGO_TARGET: Final = "CACHEDIR.TAG"  # in cargo's target folder, and others that are no sources
FILES_MAX: Final = 50_000
DEPTH_MAX: Final = 12


class ProjectFolder:
    """The list of files is made once: a run looks at one moment's project."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._path = environment.get("PATH", os.defpath)
        self._files: list[str] | None = None

    @property
    def root(self) -> str:
        return str(self._root)

    def files(self, pattern: str, limit: int = 1000) -> Sequence[str]:
        matches = _matcher(pattern)
        found: list[str] = []
        for path in self._all():
            if matches.fullmatch(path):
                found.append(path)
                if len(found) == limit:
                    break
        return found

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        try:
            with (self._root / path).open("rb") as stream:
                return stream.read(limit).decode(errors="replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def program(self, name: str) -> str | None:
        return shutil.which(name, path=self._path)

    def has_bytes(self, path: str, needle: bytes) -> bool:
        try:
            with (self._root / path).open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(needle) >= 0
        except (OSError, ValueError):  # ValueError: an empty file
            return False

    def _all(self) -> list[str]:
        if self._files is None:
            found: list[str] = []
            for folder, names, files in os.walk(self._root):
                relative = os.path.relpath(folder, self._root)
                depth = 0 if relative == "." else relative.count("/") + 1
                names[:] = sorted(name for name in names if name not in SKIPPED and depth < DEPTH_MAX)
                if CARGO_TARGET in files and depth:
                    names.clear()
                    continue
                found += (name if relative == "." else f"{relative}/{name}" for name in files)
                if len(found) >= FILES_MAX:
                    break
            self._files = sorted(found)
        return self._files


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    """`**/` any folders, `*` and `?` within one name."""
    parts = re.split(r"(\*\*/|\*\*)", pattern)
    text = "".join({"**/": "(?:.*/)?", "**": ".*"}.get(part) or _name(part) for part in parts)
    return re.compile(text)


def _name(part: str) -> str:
    translated = fnmatch.translate(part)
    inner = re.fullmatch(r"\(\?s:(.*)\)\\Z", translated, re.DOTALL)
    assert inner is not None, translated
    return inner[1].replace(".*", "[^/]*").replace("(?>", "(?:")
