"""Where a C++ class is defined, as a rule: in the units that its own functions were compiled in. What else is in the file need not be searched then."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import numpy
from numpy.typing import NDArray

from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.quick_find import find
from actors.indexer.dwarf.ranges import unit_map
from actors.indexer.dwarf.scopes import ANONYMOUS
from actors.indexer.dwarf.unit import Unit
from actors.indexer.symbols import SymbolTable, read_table

_UNITS_MAX: Final = 4
_FUNCTIONS_MAX: Final = 64
_PART: Final = re.compile(r"\w+")
_UNNAMED: Final = "_GLOBAL__N_1"  # the anonymous namespace, in mangled names
_NESTED: Final = (b"_ZN", b"_ZNK")  # functions of classes, and those that are const


class Homes:
    """Of one file. Without symbols of its own it has none."""

    def __init__(self, file: DwarfFile) -> None:
        self._file = file

    def of(self, scopes: str, own: str) -> list[Unit]:
        """At most a few. `scopes`: as `scopes_of` has them; inline namespaces and arguments of templates around it are not found."""
        mangled = _mangled(scopes, own)
        if mangled is None or self._symbols is None:
            return []
        found: dict[int, Unit] = {}
        for address in self._functions(mangled):
            offset = unit_map(self._file).find(address)
            if offset is not None and len(found) < _UNITS_MAX:
                found.setdefault(offset, self._file.unit_at(offset))
        return list(found.values())

    def _functions(self, mangled: bytes) -> list[int]:
        table, (order, offsets) = self._symbols, self._by_name
        assert table is not None
        found: list[int] = []
        for prefix in _NESTED:
            wanted = b"\0" + prefix + mangled
            hit = find(table.names, wanted, 0, len(table.names))
            while hit >= 0 and len(found) < _FUNCTIONS_MAX:
                index = int(numpy.searchsorted(offsets, hit + 1))
                if index < len(offsets) and int(offsets[index]) == hit + 1:
                    found.append(int(table.values[order[index]]))
                hit = find(table.names, wanted, hit + 1, len(table.names))
        return found

    @cached_property
    def _symbols(self) -> SymbolTable | None:
        return read_table(self._file.elf, ".symtab")

    @cached_property
    def _by_name(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.uint32]]:
        """Rows of symbols by where their names are, and where that is."""
        assert self._symbols is not None
        order = numpy.argsort(self._symbols.offsets, kind="stable")
        return order, self._symbols.offsets[order]


def _mangled(scopes: str, own: str) -> bytes | None:
    """`3shop5Order` for `shop::` and `Order` (Itanium C++ ABI §5.1.2). None for what is no plain class."""
    parts = [_UNNAMED if part == ANONYMOUS[:-2] else part for part in scopes.split("::")[:-1]]
    head, arguments, _ = own.partition("<")
    parts.append(head)
    if not all(_PART.fullmatch(part) for part in parts):
        return None
    written = "".join("St" if index == 0 and part == "std" else f"{len(part.encode())}{part}" for index, part in enumerate(parts))
    return (written + ("I" if arguments else "")).encode()
