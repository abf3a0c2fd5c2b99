"""Where a mapped ELF file defines a function of a given name: .dynsym and .symtab, by numpy (System V gABI, chapters 4 and 5)."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

SHT_SYMTAB: Final = 2
SHT_DYNSYM: Final = 11
PT_LOAD: Final = 1
STT_OBJECT: Final = 1
STT_FUNC: Final = 2
PAGE: Final = 4096
SYMBOL: Final = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    value: int  # link-time address
    size: int


@dataclass(frozen=True, slots=True)
class Image:
    """What one file holds: `loads` are (link-time address, file offset, file bytes) of its PT_LOAD segments."""

    loads: tuple[tuple[int, int, int], ...]
    functions: tuple[Function, ...]

    def link_address(self, file_offset: int) -> int | None:
        """Link-time address of the page that was mapped from `file_offset`."""
        for address, offset, size in self.loads:
            first = offset & -PAGE
            if first <= file_offset < offset + size:
                return (address & -PAGE) + file_offset - first
        return None


def read_image(path: str, names: Iterable[str], kinds: tuple[int, ...] = (STT_FUNC,)) -> Image | None:
    """The functions of `names`, or symbols of `kinds`, that the file at `path` defines; None when it is no ELF64 file, or unreadable (unlinked since)."""
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return _read_image(path, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, tuple(names), kinds)


@lru_cache(maxsize=512)
def _read_image(path: str, device: int, inode: int, size: int, mtime_ns: int, names: tuple[str, ...], kinds: tuple[int, ...]) -> Image | None:
    del device, inode, mtime_ns  # only tell one version of the file from another
    if size < 64:
        return None
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[:6] != b"\x7fELF\x02\x01":
                return None
            return Image(_loads(content), tuple(_functions(content, names, kinds)))
    except (OSError, struct.error, ValueError):
        return None  # unreadable or damaged: nothing to be found in it


def _loads(content: mmap.mmap) -> tuple[tuple[int, int, int], ...]:
    table = struct.unpack_from("<Q", content, 32)[0]
    entry_bytes, count = struct.unpack_from("<HH", content, 54)
    found = []
    for n in range(count):
        kind, _flags, offset, address, _physical, size = struct.unpack_from("<IIQQQQ", content, table + n * entry_bytes)
        if kind == PT_LOAD:
            found.append((address, offset, size))
    return tuple(found)


def _functions(content: mmap.mmap, names: tuple[str, ...], kinds: tuple[int, ...]) -> list[Function]:
    table = struct.unpack_from("<Q", content, 40)[0]
    entry_bytes, count = struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + n * entry_bytes) for n in range(count)]
    found: dict[int, Function] = {}
    for section in sections:
        if section[1] in (SHT_SYMTAB, SHT_DYNSYM) and section[6] < count:
            strings = sections[section[6]]
            for function in _search(content, section[4:6], strings[4:6], names, kinds):
                found.setdefault(function.value, function)
    return list(found.values())


def _search(content: mmap.mmap, symbols: tuple[int, int], strings: tuple[int, int], names: tuple[str, ...], kinds: tuple[int, ...]) -> list[Function]:
    """A name is found in the string table first, then by its offset among the symbols: no symbol is decoded that is not asked for."""
    offset, size = symbols
    rows = np.frombuffer(content[offset : offset + size - size % SYMBOL.itemsize], SYMBOL)
    text = content[strings[0] : strings[0] + strings[1]]
    found = []
    for name in names:
        for at in _places(text, name.encode() + b"\0"):
            for row in rows[(rows["name"] == at) & (rows["section"] != 0) & np.isin(rows["info"] & 15, kinds)]:
                found.append(Function(name, int(row["value"]), int(row["size"])))
    return found


def _places(text: bytes, wanted: bytes) -> list[int]:
    """Every offset at which `wanted` stands: strings may share their ends, so the byte before need not be NUL."""
    places, at = [], text.find(wanted)
    while at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places
