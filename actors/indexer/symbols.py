"""Stage 1: the functions of one file, straight from `.symtab` and `.dynsym` through numpy (gABI, Symbol Table).

Nothing is demangled here and no name is decoded before it is asked for: 100k functions take about 15 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy
from numpy.typing import NDArray

from actors.indexer.elf import ElfFile

_SYMBOL: Final = numpy.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
STT_OBJECT: Final = 1
_STT_FUNC: Final = 2
STT_TLS: Final = 6
_STT_GNU_IFUNC: Final = 10
FUNCTIONS: Final = (_STT_FUNC, _STT_GNU_IFUNC)
_SHN_UNDEF: Final = 0
FEW: Final = 256  # hits whose rows are taken one by one
_SHN_ABS: Final = 0xFFF1

Rows = NDArray[numpy.int64]


@dataclass(slots=True)
class SymbolTable:
    """Function symbols of one table, in file order. `names` is its string table; `offsets` point into it."""

    names: bytes
    offsets: NDArray[numpy.uint32]
    values: NDArray[numpy.uint64]
    sizes: NDArray[numpy.uint64]
    binds: NDArray[numpy.uint8]  # 0 local, 1 global, 2 weak
    indirect: NDArray[numpy.bool_]  # STT_GNU_IFUNC: the address is of a resolver, not of the function
    _order: Rows | None = None  # rows by name offset

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def mangled(self) -> bool:
        """Some names are C++ ones."""
        return b"\0_Z" in self.names

    def name(self, row: int) -> str:
        start = int(self.offsets[row])
        return self.names[start : self.names.find(b"\0", start)].decode("utf-8", "surrogateescape")

    def containing(self, text: bytes, *, whole: bool) -> Rows:
        """Rows whose raw name contains `text`; with `whole`, as an identifier: after its length (Itanium, Rust), before Rust's `$LT$`, or at
        the name's end. Linkers share string tails, so a symbol may start anywhere in the string before a hit."""
        hits = self._hits(text)
        if whole:
            hits = [hit for hit in hits if self._is_whole(hit, text)]
        if not hits:
            return _none()
        if self._order is None:
            self._order = numpy.argsort(self.offsets, kind="stable")
        ordered = self.offsets[self._order]
        begins = [self.names.rfind(b"\0", 0, hit) + 1 for hit in hits]
        low = numpy.searchsorted(ordered, numpy.array(begins, dtype=numpy.uint32), "left")
        high = numpy.searchsorted(ordered, numpy.array(hits, dtype=numpy.uint32), "right")
        if len(hits) <= FEW:
            return numpy.unique(numpy.concatenate([self._order[start:end] for start, end in zip(low, high, strict=True)]))
        marks = numpy.zeros(len(ordered) + 1, dtype=numpy.int64)
        numpy.add.at(marks, low, 1)
        numpy.add.at(marks, high, -1)
        return numpy.sort(self._order[numpy.flatnonzero(numpy.cumsum(marks[:-1]) > 0)])

    def _hits(self, text: bytes) -> list[int]:
        """Where it begins: `find` takes a fifth of the time of a regular expression."""
        found: list[int] = []
        at = self.names.find(text)
        while at >= 0:
            found.append(at)
            at = self.names.find(text, at + len(text))
        return found

    def _is_whole(self, hit: int, text: bytes) -> bool:
        after = hit + len(text)
        if self.names[after] in b"\0.@" or self.names.startswith(b"$LT$", after):
            return True
        length = str(len(text)).encode()
        return self.names.endswith((length, length + b"_"), max(0, hit - 8), hit)

    def at(self, addresses: Sequence[int]) -> Rows:
        wanted = numpy.array(addresses, dtype=numpy.uint64)
        return numpy.flatnonzero(numpy.isin(self.values, wanted))


def _none() -> Rows:
    return numpy.zeros(0, dtype=numpy.int64)


def read_table(elf: ElfFile, section_name: str, kinds: Sequence[int] = FUNCTIONS) -> SymbolTable | None:
    """The function symbols (or those of other `kinds`) of `.symtab` or `.dynsym`; None when the file has no such table, or only a damaged one."""
    section = elf.section(section_name)
    if section is None or section.entry_size not in (0, _SYMBOL.itemsize) or section.link >= len(elf.sections):
        return None
    raw = elf.raw(section)
    names = elf.raw(elf.sections[section.link])
    if not raw or not names:
        return None
    symbols = numpy.frombuffer(raw, dtype=_SYMBOL, count=len(raw) // _SYMBOL.itemsize)
    kind = symbols["info"] & 15
    wanted = numpy.isin(kind, kinds) & (symbols["section"] != _SHN_UNDEF) & (symbols["section"] != _SHN_ABS) & (symbols["name"] < len(names))
    wanted &= (symbols["value"] != 0) | (kind == STT_TLS)  # the first thread-local variable is at 0
    found = symbols[wanted]
    return SymbolTable(
        names if names.endswith(b"\0") else names + b"\0",
        numpy.ascontiguousarray(found["name"]),
        numpy.ascontiguousarray(found["value"]),
        numpy.ascontiguousarray(found["size"]),
        numpy.ascontiguousarray(found["info"] >> 4),
        numpy.ascontiguousarray((found["info"] & 15) == _STT_GNU_IFUNC),
    )


def imported_names(elf: ElfFile) -> frozenset[str]:
    """Functions that the file takes from other modules: undefined names of `.dynsym`."""
    section = elf.section(".dynsym")
    if section is None or section.link >= len(elf.sections):
        return frozenset()
    names = elf.raw(elf.sections[section.link])
    raw = elf.raw(section)
    symbols = numpy.frombuffer(raw, dtype=_SYMBOL, count=len(raw) // _SYMBOL.itemsize)
    starts = symbols["name"][(symbols["section"] == _SHN_UNDEF) & (symbols["name"] > 0) & (symbols["name"] < len(names))].tolist()
    return frozenset(names[start : names.find(b"\0", start)].decode("utf-8", "surrogateescape") for start in starts)


class AddressMap:
    """Address → the function symbol that covers it. Used where there is no debug info, and for offsets in functions."""

    def __init__(self, tables: Sequence[SymbolTable]) -> None:
        self._tables = tables
        values = [table.values for table in tables]
        owners = [numpy.full(len(table), index, dtype=numpy.int64) for index, table in enumerate(tables)]
        rows = [numpy.arange(len(table), dtype=numpy.int64) for table in tables]
        self._values = numpy.concatenate(values) if values else numpy.zeros(0, dtype=numpy.uint64)
        order = numpy.argsort(self._values, kind="stable")
        self._values = self._values[order]
        self._owners = numpy.concatenate(owners)[order] if owners else _none()
        self._rows = numpy.concatenate(rows)[order] if rows else _none()

    def find(self, address: int) -> tuple[str, int] | None:
        """(raw name, offset of `address` in it). A symbol without a size covers everything up to the next one."""
        index = int(numpy.searchsorted(self._values, numpy.uint64(address), "right")) - 1
        if index < 0:
            return None
        start = int(self._values[index])
        best: tuple[bool, int, str] | None = None
        while index >= 0 and int(self._values[index]) == start:
            table, row = self._tables[int(self._owners[index])], int(self._rows[index])
            size = int(table.sizes[row])
            if size == 0 or address < start + size:
                name = table.name(row).partition("@")[0]
                rank = (int(table.binds[row]) == 0, len(name), name)
                best = rank if best is None else min(best, rank)
            index -= 1
        return None if best is None else (best[2], address - start)
