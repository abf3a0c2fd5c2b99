"""The formatters that count for a project: those that Strobe has, and the project's own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.values.registry import Formatters

FOLDER: Final = Path(".strobe") / "formatters"
_FILES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ProjectFormatters:
    """`digest` changes when one of the project's own does; "" where it has none."""

    formatters: Formatters
    digest: str


def project_formatters(root: str | None) -> ProjectFormatters:
    folder = None if root is None else Path(root) / FOLDER
    if root is None or folder is None or not folder.is_dir():
        return ProjectFormatters(Formatters.built_in(), "")
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file())[:_FILES_MAX]:
        digest.update(f"{path};{path.stat().st_mtime_ns};{path.stat().st_size};".encode("utf-8", "surrogateescape"))
    formatters, _ = Formatters.of(Path(root))  # what is wrong with them is told where values are shown
    return ProjectFormatters(formatters, digest.hexdigest())
