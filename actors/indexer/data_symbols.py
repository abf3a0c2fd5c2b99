"""Variables as a file's symbol tables have them: where debug info says nothing, or not where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy
from numpy.typing import NDArray

from actors.indexer.binary import Binary
from actors.indexer.source_name import source_name
from actors.indexer.symbols import STT_OBJECT, STT_TLS, AddressMap, SymbolTable, read_table

_SHOWN_MAX: Final = 64
ANONYMOUS: Final = "(anonymous namespace)::"


@dataclass(frozen=True, slots=True)
class DataSymbol:
    name: str  # linkage name
    plain: str
    kind: Literal["address", "thread_local"]
    value: int  # link-time address, or offset in the module's thread-local block
    size: int


class DataSymbols:
    """Of one file. Looks like a Binary to `nearest_names`, of variables instead of functions."""

    def __init__(self, binary: Binary) -> None:
        self._binary = binary

    @cached_property
    def _by_kind(self) -> list[tuple[Literal["address", "thread_local"], SymbolTable]]:
        """Of `.dynsym` first: what is exported is what others mean."""
        found: list[tuple[Literal["address", "thread_local"], SymbolTable]] = []
        for elf in (self._binary.elf, self._binary.debug):
            for section in (".dynsym", ".symtab") if elf is not None else ():
                assert elf is not None
                objects, local = read_table(elf, section, (STT_OBJECT,)), read_table(elf, section, (STT_TLS,))
                found += [("address", objects)] if objects is not None else []
                found += [("thread_local", local)] if local is not None else []
        return found

    @property
    def tables(self) -> list[SymbolTable]:
        return [table for _, table in self._by_kind]

    @cached_property
    def starts(self) -> NDArray[numpy.uint64]:
        return numpy.concatenate([table.values for table in self.tables]) if self.tables else numpy.zeros(0, dtype=numpy.uint64)

    @cached_property
    def addresses(self) -> AddressMap:
        return AddressMap([table for kind, table in self._by_kind if kind == "address"])

    def named(self, name: str) -> DataSymbol | None:
        """By its whole plain name, else by its last parts."""
        found = list(self._named(name))
        return next((one for one in found if name in (one.plain, one.name)), found[0] if found else None)

    def exported(self, linkage_name: str) -> DataSymbol | None:
        """What this file puts in the place of other files' variable of that name (a copy relocation, or a definition that comes first)."""
        table = read_table(self._binary.elf, ".dynsym", (STT_OBJECT,))
        for row in table.containing(linkage_name.encode(), whole=False) if table is not None else ():
            assert table is not None
            if table.name(int(row)).partition("@")[0] == linkage_name and int(table.binds[row]):
                return DataSymbol(linkage_name, linkage_name, "address", int(table.values[row]), int(table.sizes[row]))
        return None

    def _named(self, name: str) -> Iterator[DataSymbol]:
        own = name if name.startswith(("_Z", "_R")) else name.rpartition("::")[2]
        for kind, table in self._by_kind:
            for row in table.containing(own.encode(), whole=True)[:_SHOWN_MAX]:
                raw = table.name(int(row)).partition("@")[0]
                plain = raw if raw == name else next((one for one in source_name(raw).plain if ends_in(one, name)), None)
                if plain is not None:
                    yield DataSymbol(raw, plain, kind, int(table.values[row]), int(table.sizes[row]))


def ends_in(full: str, wanted: str) -> bool:
    """Whether who writes `wanted` may mean `full`: scopes may be left out from the left, and those without a name everywhere."""
    named = full.replace(ANONYMOUS, "")
    return wanted in (full, named) or full.endswith(f"::{wanted}") or named.endswith(f"::{wanted}")
