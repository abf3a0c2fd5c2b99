"""Libraries that a target might load later: files beside the program and in the project that have what a pattern asks for."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

LIBRARY: Final = re.compile(r".+\.so(\.[0-9]+)*$")
IDENTIFIER: Final = re.compile(r"\w+")
DEPTH: Final = 4
ENTRIES_MAX: Final = 5000
BYTES_MAX: Final = 64 << 20
FILES_MAX: Final = 8
SKIPPED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})


def candidates(pattern: str, folders: Sequence[Path], loaded: frozenset[str]) -> list[Path]:
    """Files that are not in `loaded` and hold the longest word of `pattern`; the nearest first."""
    words = sorted(IDENTIFIER.findall(pattern), key=len)
    if pattern.startswith("@") or not words or len(words[-1]) < 3:
        return []
    found: list[Path] = []
    for path in libraries(folders):
        if str(path) not in loaded and _holds(path, words[-1].encode()):
            found.append(path)
            if len(found) == FILES_MAX:
                break
    return found


def libraries(folders: Sequence[Path]) -> Iterator[Path]:
    """Breadth first, without hidden folders; each file once."""
    seen: set[Path] = set()
    left = ENTRIES_MAX
    level = [folder for folder in dict.fromkeys(folders) if folder.is_absolute()]
    for _ in range(DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:  # not there, or not ours to read
                continue
            left -= len(entries)
            if left < 0:
                return
            below += [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and entry.name not in SKIPPED]
            for entry in entries:
                if LIBRARY.match(entry.name) and (real := Path(entry.path).resolve()) not in seen:
                    seen.add(real)
                    yield real
        level = below


def _holds(path: Path, word: bytes) -> bool:
    try:
        with path.open("rb") as file:
            if not 64 <= os.fstat(file.fileno()).st_size <= BYTES_MAX:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content[:5] == b"\x7fELF\x02" and content.find(word) >= 0
    except (OSError, ValueError):
        return False
