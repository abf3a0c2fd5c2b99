"""What the project's sources say about a name that the program lacks: whether the program was built from them as they are now."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

_SUFFIXES: Final = (".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".rs", ".m", ".mm", ".S", ".s")
_SKIPPED: Final = frozenset({"node_modules", "target", "build", "dist", "third_party", "vendor", "venv", "__pycache__"})  # and those that begin with a dot
_FILES_MAX: Final = 4000
_FILE_BYTES_MAX: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class Mention:
    """`line` of the file names the function, as its definition where that could be told."""

    file: Path
    line: int
    changed: float  # st_mtime


def mention_of(name: str, root: str, end: float) -> Mention | None:
    """Where a source file under `root` has `name`: the newest such file, its definition before its uses. `end`: on the monotonic clock."""
    if not name.isidentifier() or not root or Path(root).parent == Path(root):
        return None
    word = re.compile(rb"(?<![\w$])" + re.escape(name).encode() + rb"(?![\w$])")
    definition = re.compile(rb"^(?:[^\n/*#]*[\s*&:])?" + re.escape(name).encode() + rb"\s*(?:<[^\n;]*>)?\s*\([^;\n]*(?:\{|$)", re.MULTILINE)
    best: tuple[bool, float, Mention] | None = None
    for path in _sources(Path(root), end):
        found = _look(path, word, definition)
        if found is not None and (best is None or found[:2] > best[:2]):
            best = found
    return None if best is None else best[2]


def _look(path: Path, word: re.Pattern[bytes], definition: re.Pattern[bytes]) -> tuple[bool, float, Mention] | None:
    try:
        status = path.stat()
        content = path.read_bytes() if status.st_size <= _FILE_BYTES_MAX else b""
    except OSError:  # gone since it was listed
        return None
    first = word.search(content)
    if first is None:
        return None
    defined = definition.search(content)
    at = word.search(content, defined.start()) if defined is not None else first
    line = content.count(b"\n", 0, (at or first).start()) + 1
    return defined is not None, status.st_mtime, Mention(path, line, status.st_mtime)


def _sources(root: Path, end: float) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(_SUFFIXES):
                seen += 1
                if seen > _FILES_MAX or time.monotonic() > end:
                    return
                yield Path(folder) / name


def words_about(name: str, mention: Mention, root: str, program: Path) -> str:
    """What the mention proves about the program."""
    shown = f"{os.path.relpath(mention.file, root)}:{mention.line}"
    try:
        built = program.stat().st_mtime
    except OSError:
        return f"`{name}` is in {shown}."
    if mention.changed > built:
        return f"`{name}` is in {shown}, changed {_clock(mention.changed)}, after {program.name} was built ({_clock(built)}): build it again, then launch that."
    return f"`{name}` is in {shown}, but not in {program.name}: another program or library is built from that file, or the compiler left the function out."


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
