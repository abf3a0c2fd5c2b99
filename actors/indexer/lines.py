"""Stage 2: address → function, file:line and inlined calls, by `symbolic`'s symcache; and the source file of each function.

Built once per file (about 0.7 s for 62 MB of debug info), kept on disk, read from there in a few ms.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy
from numpy.typing import NDArray
from symbolic.debuginfo import Archive
from symbolic.exceptions import SymbolicError
from symbolic.symcache import SymCache

from actors.indexer import cache
from actors.indexer.elf import ElfFile

SYMCACHE: Final = "symcache"
SOURCES: Final = "sources"
_SIZES: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Location:
    """One level at an address; `raw` is the linkage name (or the DWARF name where there is none)."""

    raw: str
    file: str | None
    line: int | None


@dataclass(slots=True)
class Sources:
    """Where each function begins: its address, an index into `files` (-1: unknown) and the line."""

    addresses: NDArray[numpy.uint64]
    indexes: NDArray[numpy.int32]
    lines: NDArray[numpy.uint32]
    files: list[str]

    def of(self, address: int) -> tuple[str, int] | None:
        at = int(numpy.searchsorted(self.addresses, numpy.uint64(address)))
        if at >= len(self.addresses) or int(self.addresses[at]) != address or self.indexes[at] < 0:
            return None
        return self.files[int(self.indexes[at])], int(self.lines[at])

    def defined_in(self, belongs: Callable[[str], bool]) -> list[int]:
        """Addresses of the functions whose file `belongs`."""
        wanted = [index for index, file in enumerate(self.files) if belongs(file)]
        found: list[int] = self.addresses[numpy.isin(self.indexes, numpy.array(wanted, dtype=numpy.int32))].tolist()
        return found

    def to_bytes(self) -> bytes:
        names = json.dumps(self.files).encode()
        arrays = self.addresses.tobytes() + self.indexes.tobytes() + self.lines.tobytes()
        return _SIZES.pack(len(self.addresses), len(names)) + arrays + names

    @classmethod
    def from_bytes(cls, body: bytes) -> Sources:
        count, names = _SIZES.unpack_from(body, 0)
        at = _SIZES.size
        addresses = numpy.frombuffer(body, dtype="<u8", count=count, offset=at)
        indexes = numpy.frombuffer(body, dtype="<i4", count=count, offset=at + 8 * count)
        lines = numpy.frombuffer(body, dtype="<u4", count=count, offset=at + 12 * count)
        start = at + 16 * count
        return cls(addresses, indexes, lines, json.loads(body[start : start + names]))


class Lines:
    """Stage 2 of one file."""

    def __init__(self, symcache: Any, sources: Sources) -> None:
        self._symcache = symcache
        self.sources = sources

    def at(self, address: int) -> list[Location]:
        """Levels at a link-time address, innermost first; the last is the function itself. Empty where nothing is known."""
        return [Location(found.symbol, found.full_path, found.line or None) for found in self._symcache.lookup(address)]


_from_bytes: Final[Callable[[bytes], Any]] = SymCache.from_bytes  # symbolic's own types are partial


def _stamp(elf: ElfFile, debug: ElfFile | None) -> bytes:
    return cache.stamp_of(elf, debug, extra="lines")


def marker(folder: Path) -> int | None:
    """Changes when lines are built; None when there are none. Cheap."""
    try:
        return (folder / SOURCES).stat().st_mtime_ns  # written last
    except OSError:
        return None


def load(folder: Path, elf: ElfFile, debug: ElfFile | None) -> Lines | None:
    """From the cache; None when it was not built yet, or what is there is stale or damaged."""
    stamp = _stamp(elf, debug)
    body = cache.read(folder / SYMCACHE, stamp)
    sources = cache.read(folder / SOURCES, stamp) if body is not None else None
    if body is None or sources is None:
        return None
    try:
        return Lines(_from_bytes(body), Sources.from_bytes(sources))
    except (SymbolicError, struct.error, ValueError):
        return None


def build(
    folder: Path, elf: ElfFile, debug: ElfFile | None, dwarf: ElfFile, addresses: NDArray[numpy.uint64], problems: list[str]
) -> Lines | None:
    """Reads `dwarf` (one of the two) and caches what it says about the functions at `addresses` (sorted). None when it cannot be read:
    `problems` says why."""
    try:
        symcache: Any = Archive.open(dwarf.path).get_object(arch="x86_64").make_symcache()
    except (SymbolicError, LookupError) as error:
        problems.append(f"debug info of {dwarf.path} cannot be read: {error}")
        return None
    sources = _sources(symcache, addresses)
    body = io.BytesIO()
    symcache.dump_into(body)
    stamp = _stamp(elf, debug)
    try:
        cache.write(folder / SYMCACHE, stamp, body.getvalue())
        cache.write(folder / SOURCES, stamp, sources.to_bytes())
    except OSError as error:
        problems.append(f"the index of {elf.path} cannot be cached: {error}")
    return Lines(symcache, sources)


def _sources(symcache: Any, addresses: NDArray[numpy.uint64]) -> Sources:
    indexes = numpy.full(len(addresses), -1, dtype=numpy.int32)
    lines = numpy.zeros(len(addresses), dtype=numpy.uint32)
    files: dict[str, int] = {}
    for at, address in enumerate(addresses.tolist()):
        levels = symcache.lookup(address)
        if levels and levels[-1].full_path:
            indexes[at] = files.setdefault(levels[-1].full_path, len(files))
            lines[at] = levels[-1].line
    return Sources(addresses, indexes, lines, list(files))
