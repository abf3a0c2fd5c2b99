"""Everything known about one program or library, read when first asked for and kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy
from numpy.typing import NDArray

from actors.indexer import cache
from actors.indexer import lines as stage2
from actors.indexer.debug_files import find_debug_file, has_debug_info
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.elf import ElfFile, FileStamp
from actors.indexer.lines import Lines
from actors.indexer.pattern import Key
from actors.indexer.plan_book import PlanBook
from actors.indexer.symbols import AddressMap, Rows, SymbolTable, imported_names, read_table

BINARIES_MAX = 64
QUICK_BYTES = 256 << 10  # of .debug_info: at most some 20 ms


class Binary:
    """One file. Symbols come from `.symtab` (here or in the separate debug file), else from `.dynsym`."""

    def __init__(self, elf: ElfFile, debug: ElfFile | None) -> None:
        self.elf = elf
        self.debug = debug
        self.problems: list[str] = []
        self._lines: Lines | None = None
        self._marker: int | None = None  # of the cached lines last looked at

    @property
    def path(self) -> str:
        return self.elf.path

    @cached_property
    def tables(self) -> list[SymbolTable]:
        own = read_table(self.elf, ".symtab")
        if own is None and self.debug is not None:
            own = read_table(self.debug, ".symtab")
        exported = read_table(self.elf, ".dynsym")
        return [table for table in (own, exported) if table is not None]

    @property
    def from_system(self) -> bool:
        """Its debug info came with the distribution: none of it is the user's own code."""
        return self.debug is not None and self.debug.path.startswith("/usr/lib/debug/")

    @property
    def has_symbols(self) -> bool:
        return self.elf.has(".symtab") or (self.debug is not None and self.debug.has(".symtab"))

    @cached_property
    def starts(self) -> NDArray[numpy.uint64]:
        """Link-time addresses of all functions, sorted, each once."""
        values = [table.values for table in self.tables]
        return numpy.unique(numpy.concatenate(values)) if values else numpy.zeros(0, dtype=numpy.uint64)

    @cached_property
    def addresses(self) -> AddressMap:
        return AddressMap(self.tables)

    @cached_property
    def imports(self) -> frozenset[str]:
        return imported_names(self.elf)

    @cached_property
    def dwarf_file(self) -> ElfFile | None:
        """The file that holds `.debug_info`, or None."""
        for elf in (self.elf, self.debug):
            if elf is not None and has_debug_info(elf):
                return elf
        return None

    @cached_property
    def _folder(self) -> Path:
        return cache.folder_of(self.elf)

    @cached_property
    def dwarf(self) -> DwarfFile | None:
        return None if self.dwarf_file is None else DwarfFile(self.dwarf_file)

    @cached_property
    def finder(self) -> FunctionFinder | None:
        return None if self.dwarf is None else FunctionFinder(self.dwarf)

    @cached_property
    def types(self) -> TypeIndex | None:
        return None if self.dwarf is None else TypeIndex(self.dwarf)

    @cached_property
    def plans(self) -> PlanBook:
        """Stage 3."""
        return PlanBook(self._folder, self.elf, self.debug, self.finder, self.types)

    @property
    def quickly_indexed(self) -> bool:
        """Stage 2 takes a few milliseconds: a caller may wait for it."""
        section = self.dwarf_file.section(".debug_info") if self.dwarf_file is not None else None
        return section is not None and section.size <= QUICK_BYTES

    @property
    def lines(self) -> Lines | None:
        """Stage 2, when it has been built (by this or another process)."""
        if self._lines is None and self.dwarf_file is not None:
            marker = stage2.marker(self._folder)
            if marker is not None and marker != self._marker:
                self._marker = marker
                self._lines = stage2.load(self._folder, self.elf, self.debug)
        return self._lines

    def build_lines(self) -> Lines | None:
        """Stage 2, built now unless it is there already."""
        if self.lines is None and self.dwarf_file is not None:
            self._lines = stage2.build(self._folder, self.elf, self.debug, self.dwarf_file, self.starts, self.problems)
        return self._lines

    def names(self, key: Key | None) -> Iterator[tuple[SymbolTable, int, str]]:
        """Symbols whose linkage name contains `key` (all without one)."""
        for table in self.tables:
            rows: Rows | range = range(len(table)) if key is None else table.containing(key.text, whole=key.whole)
            for row in rows:
                yield table, int(row), table.name(int(row))

    def aliases(self, addresses: list[int]) -> list[tuple[SymbolTable, int]]:
        return [(table, int(row)) for table in self.tables for row in table.at(addresses)]

    def close(self) -> None:
        for elf in (self.elf, self.debug):
            if elf is not None:
                elf.close()


class Library:
    """The binaries in use, newest last; a file that changed on disk is read again."""

    def __init__(self) -> None:
        self._binaries: dict[tuple[str, str | None], tuple[FileStamp, Binary]] = {}

    def open(self, path: str, symbols_path: str | None = None) -> Binary:
        """Errors: VALIDATION_ERROR when the file cannot be read or is no x86-64 ELF file."""
        key = (path, symbols_path)
        stamp = FileStamp.of(path)
        kept = self._binaries.pop(key, None)
        if kept is not None and kept[0] == stamp:
            self._binaries[key] = kept
            return kept[1]
        elf = ElfFile.open(path)
        binary = Binary(elf, find_debug_file(elf, symbols_path))
        self._binaries[key] = (elf.stamp, binary)
        while len(self._binaries) > BINARIES_MAX:
            self._binaries.pop(next(iter(self._binaries)))
        return binary
