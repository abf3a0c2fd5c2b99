"""What a file's own run-time type information says: which class is derived from which, and where its vtables are (Itanium C++ ABI §2.5, §2.9.5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy
from numpy.typing import NDArray

from actors.indexer.elf import ElfFile
from actors.indexer.symbols import STT_OBJECT, SymbolTable, read_table

CLASSES_MAX: Final = 20_000
VTABLE_WORDS_MAX: Final = 2048
_BASES_MAX: Final = 64
_RELATIVE: Final = 8  # R_X86_64_RELATIVE
_ABSOLUTE: Final = 1  # R_X86_64_64
_RELOCATION: Final = numpy.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_SYMBOL_BYTES: Final = 24
_WORD: Final = 8
_FAR: Final = 1 << 24  # no object is so large that its parts are farther from its start
_TOP_AND_TYPE: Final = 2  # words before where objects point


class Inheritance:
    """Classes by their mangled names. Of files without symbols it knows nothing."""

    def __init__(self, elf: ElfFile, debug: ElfFile | None) -> None:
        self._elf = elf
        self._files = [one for one in (elf, debug) if one is not None]

    def derived(self, classes: set[str]) -> set[str]:
        """Those that are derived from one of `classes`, in however many steps."""
        found: set[str] = set()
        fresh = set(classes)
        while fresh:
            fresh = {name for name, bases in self._bases.items() if name not in found and not fresh.isdisjoint(bases)}
            found |= fresh
        return found - classes

    def pointed(self, name: str) -> list[tuple[int, int]]:
        """Where objects of the class, and the bases in them, point to in its vtable, and how far from the object's start they lie: the words before are an
        offset to the top and the class's type."""
        place, own = self._vtables.get(name), self._types.get(name)
        if place is None:
            return []
        address, size = place
        words = [self._word(address + at) for at in range(0, min(size, VTABLE_WORDS_MAX * _WORD), _WORD)]
        found = [at for at in range(1, len(words)) if own is not None and words[at] == own[0] and _is_near(words[at - 1])]
        tops = [(address + _WORD * (at + 1), -words[at - 1] % (1 << 64)) for at in found]
        return tops or [(address + _WORD * _TOP_AND_TYPE, 0)]

    @cached_property
    def _types(self) -> dict[str, tuple[int, int]]:
        """Type information: (address, size) by class."""
        return dict(self._objects(b"_ZTI"))

    @cached_property
    def _vtables(self) -> dict[str, tuple[int, int]]:
        return dict(self._objects(b"_ZTV"))

    @property
    def classes(self) -> list[str]:
        """All that are known here, and those of other files that they are derived from."""
        return list({*self._types, *self._vtables, *(base for bases in self._bases.values() for base in bases)})

    @cached_property
    def _bases(self) -> dict[str, list[str]]:
        """One base: its type information is the third word. Several, or virtual ones: flags and their number, then two words for each."""
        by_address = {address: name for name, (address, _) in self._types.items()}
        found: dict[str, list[str]] = {}
        for name, (address, size) in self._types.items():
            offsets = [16] if size == 24 else [24 + 16 * at for at in range(min((size - 24) // 16, _BASES_MAX))] if size > 24 else []
            bases = [by_address.get(self._word(address + offset)) or self._imported.get(address + offset, "") for offset in offsets]
            found[name] = [base for base in bases if base]
        return found

    def _objects(self, prefix: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
        for table in self._tables:
            rows = [int(row) for row in table.containing(prefix, whole=False)[:CLASSES_MAX]]
            for row in rows:
                raw = table.name(row).partition("@")[0]
                if raw.startswith(prefix.decode()):
                    yield raw[len(prefix) :], (int(table.values[row]), int(table.sizes[row]))

    @cached_property
    def _tables(self) -> list[SymbolTable]:
        tables = [read_table(elf, section, (STT_OBJECT,)) for elf in self._files for section in (".dynsym", ".symtab")]
        return [table for table in tables if table is not None]

    def _word(self, address: int) -> int:
        """As the loader leaves it, without the load bias."""
        if address in self._relocated:
            return self._relocated[address]
        offset = self._elf.file_offset(address)
        raw = b"" if offset is None else self._elf.data[offset : offset + _WORD]
        return int(struct.unpack("<Q", raw)[0]) if len(raw) == _WORD else 0

    @cached_property
    def _relocations(self) -> NDArray[numpy.void]:
        raw = self._elf.bytes_of(".rela.dyn")
        return numpy.frombuffer(raw, dtype=_RELOCATION, count=len(raw) // _RELOCATION.itemsize)

    @cached_property
    def _relocated(self) -> dict[int, int]:
        """What RELATIVE relocations put in the file's data, and those to symbols of its own."""
        rows = self._relocations
        relative = rows[rows["kind"] == _RELATIVE]
        found = dict(zip(relative["offset"].tolist(), relative["addend"].tolist(), strict=True))
        symbols = self._elf.bytes_of(".dynsym")
        for row in rows[rows["kind"] == _ABSOLUTE]:
            at = int(row["symbol"]) * _SYMBOL_BYTES + 8
            value = int.from_bytes(symbols[at : at + _WORD], "little")
            if value:
                found[int(row["offset"])] = value + int(row["addend"])
        return found

    @cached_property
    def _imported(self) -> dict[int, str]:
        """Where type information of other files' classes is put → the class."""
        section = self._elf.section(".dynsym")
        if section is None or section.link >= len(self._elf.sections):
            return {}
        names, symbols = self._elf.raw(self._elf.sections[section.link]), self._elf.bytes_of(".dynsym")
        found: dict[int, str] = {}
        for row in self._relocations[self._relocations["kind"] == _ABSOLUTE]:
            at = int(row["symbol"]) * _SYMBOL_BYTES
            start = int.from_bytes(symbols[at : at + 4], "little")
            if names.startswith(b"_ZTI", start):
                found[int(row["offset"])] = names[start + 4 : names.find(b"\0", start)].decode("utf-8", "replace")
        return found


def _is_near(word: int) -> bool:
    """An offset to the top of an object: 0, or negative and small."""
    return word == 0 or (1 << 64) - word < _FAR
