"""Where debug info lives when it is not in the file itself: `symbolsPath`, build-id folders, `.gnu_debuglink` (GDB manual, "Separate Debug Files")."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from actors.indexer.elf import ElfFile
from strobe.errors import StrobeError

_SYSTEM: Final = Path("/usr/lib/debug")


def has_debug_info(elf: ElfFile) -> bool:
    return elf.has(".debug_info") or elf.has(".zdebug_info")


def find_debug_file(elf: ElfFile, symbols_path: str | None) -> ElfFile | None:
    """The separate debug file of `elf`, checked by build-id or by the link's CRC; None when it needs none or none is found."""
    if has_debug_info(elf):
        return None
    link = _debug_link(elf)
    for path in _candidates(elf, symbols_path, link[0] if link else None):
        found = _open(path)
        if found is None:
            continue
        if _belongs(elf, found, link) and (has_debug_info(found) or found.has(".symtab")):
            return found
        found.close()
    return None


def _candidates(elf: ElfFile, symbols_path: str | None, link: str | None) -> Iterator[Path]:
    own = Path(elf.path)
    roots = []
    if symbols_path:
        given = Path(symbols_path)
        if given.is_file():
            yield given
        else:
            roots.append(given)
            yield from (given / name for name in dict.fromkeys([link, own.name, f"{own.name}.debug"]) if name)
    for root in [*roots, _SYSTEM]:
        if elf.build_id:
            yield root / ".build-id" / elf.build_id[:2] / f"{elf.build_id[2:]}.debug"
            yield root / elf.build_id[:2] / f"{elf.build_id[2:]}.debug"
        yield Path(f"{root}{own}.debug")
    if link:
        yield own.parent / link
        yield own.parent / ".debug" / link
        yield Path(f"{_SYSTEM}{own.parent}") / link


def _debug_link(elf: ElfFile) -> tuple[str, int] | None:
    """(file name, CRC-32 of the file)."""
    raw = elf.bytes_of(".gnu_debuglink")
    end = raw.find(b"\0")
    if end <= 0 or len(raw) < 8:
        return None
    name = raw[:end].decode("utf-8", "surrogateescape")
    return (name, int.from_bytes(raw[-4:], "little")) if "/" not in name and name not in (".", "..") else None


def _open(path: Path) -> ElfFile | None:
    try:
        return ElfFile.open(str(path)) if path.is_file() else None
    except (StrobeError, OSError):  # a candidate that cannot be read is not the one
        return None


def _belongs(elf: ElfFile, found: ElfFile, link: tuple[str, int] | None) -> bool:
    if found.stamp.inode == elf.stamp.inode and found.stamp.device == elf.stamp.device:
        return False
    if elf.build_id and found.build_id:
        return elf.build_id == found.build_id
    return link is not None and zlib.crc32(found.data) == link[1]
