"""The formatters of a session's project, read anew when their files changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from strobe.values.registry import Formatters

PROJECTS_MAX: Final = 8
FOLDER: Final = ".strobe/formatters"
Stamp = tuple[tuple[str, int, int], ...]


class FormatterShelf:
    """Used by all query threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Stamp, Formatters, list[str]]] = OrderedDict()

    def of(self, project_root: str) -> tuple[Formatters, list[str]]:
        """And what is wrong with the project's own."""
        stamp = _stamp(Path(project_root) / FOLDER)
        with self._lock:
            kept = self._kept.get(project_root)
            if kept is None or kept[0] != stamp:
                kept = stamp, *Formatters.of(Path(project_root))
                self._kept[project_root] = kept
            self._kept.move_to_end(project_root)
            while len(self._kept) > PROJECTS_MAX:
                self._kept.popitem(last=False)
            return kept[1], list(kept[2])


def _stamp(folder: Path) -> Stamp:
    try:
        found = [(entry.name, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in folder.iterdir()]
    except OSError:  # there is none, or it cannot be read: then the project has no formatters of its own
        return ()
    return tuple(sorted(found))


SHELF: Final = FormatterShelf()
