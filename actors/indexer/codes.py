"""What only a program's code tells of types: whose vtable an object points to, what a std::any holds. For the types of one table."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from actors.indexer.demangle import itanium
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.dwarf.types import type_of
from actors.indexer.dwarf.variables import location_of
from actors.indexer.elf import ElfFile
from actors.indexer.inheritance import Inheritance
from actors.indexer.symbols import read_table
from strobe.model.type_nodes import Record, TypeId
from strobe.values.behind import DYN, names_trait
from strobe.values.bundle import Code

CLASSES_MAX: Final = 400
VTABLES_MAX: Final = 20_000
MANAGERS_MAX: Final = 200
_TYPE: Final = "typeinfo for "
_RUST_VTABLE: Final = re.compile(rb"<[^\0]{1,500} as ([^\0]{1,300})>::\{vtable\}(?=\0)")
_LIBRARY: Final = ("std::", "__gnu_cxx::", "__cxxabiv1::")  # its own classes behind its own: what they hold is shown by forms
_ANY: Final = ("std::any", "std::__1::any")
_SMALL: Final = {True: "any", False: "boxed any"}
_MANAGED: Final = tuple((f"std::any::_Manager_{kind}ternal<", ">::_S_manage", _SMALL[kind == "in"]) for kind in ("in", "ex"))
_HANDLED: Final = tuple(
    (f"std::{version}__any_imp::_{size}Handler<", ">::__handle", _SMALL[size == "Small"]) for version in ("", "__1::") for size in ("Small", "Large")
)


class CodeSymbols:
    """Of one file; `elf` and `debug` are where its symbols are."""

    def __init__(self, elf: ElfFile, debug: ElfFile | None, index: TypeIndex) -> None:
        self._files = [one for one in (elf, debug) if one is not None]
        self._index = index
        self._inheritance = Inheritance(elf, debug)

    def codes(self, graph: TypeGraph, module: str, end: float) -> tuple[Code, ...]:
        """Adds to the graph the types that may stand behind its own, as many as there is time for until `end`. Raises nothing on damaged debug info."""
        records = {node.name: number for number, node in enumerate(graph.table().nodes) if isinstance(node, Record)}
        others = {**self._held(graph, records, end), **self._concrete(graph, records, end)}
        found = [Code(module, address, number, role) for address, (number, role) in others.items()]
        found += [Code(module, address, number, top=top) for address, (number, top) in self._classes(graph, records, end).items()]
        return tuple(sorted(found, key=lambda code: code.address))

    def _classes(self, graph: TypeGraph, records: dict[str, TypeId], end: float) -> dict[int, tuple[TypeId, int]]:
        """Where objects of a class point to in its vtable → the class, and where in the object; of the graph's polymorphic ones and those derived from them."""
        nodes = graph.table().nodes
        dynamic = {name: number for name, number in records.items() if isinstance(node := nodes[number], Record) and node.polymorphic}
        mangled = {raw: name for raw, name in self._class_names.items() if name in dynamic} if dynamic else {}
        found: dict[int, tuple[TypeId, int]] = {}
        for raw in [*mangled, *sorted(self._inheritance.derived(set(mangled)))[:CLASSES_MAX]]:
            if not (places := self._inheritance.pointed(raw)):
                continue
            name = self._class_names.get(raw, "")
            number = dynamic.get(name)
            if number is None and not name.startswith(_LIBRARY) and time.monotonic() < end:
                number = _named(graph, name)
            if number is not None:
                found.update({place: (number, top) for place, top in places})
        return found

    def _held(self, graph: TypeGraph, records: dict[str, TypeId], end: float) -> dict[int, tuple[TypeId, str]]:
        """Manager function of std::any → what is in it, and whether it lies in it."""
        found: dict[int, tuple[TypeId, str]] = {}
        for address, name, role in self._managers if any(name in records for name in _ANY) else ():
            if time.monotonic() < end and (number := _named(graph, name)) is not None:
                found[address] = number, role
        return found

    def _concrete(self, graph: TypeGraph, records: dict[str, TypeId], end: float) -> dict[int, tuple[TypeId, str]]:
        """Rust's vtables, each described as a variable → what they are for; of the traits that the graph has objects of."""
        objects = [name for name in records if DYN in name]
        traits = {trait for trait in {trait for _, trait in self._rust_vtables} if any(names_trait(one, trait) for one in objects)} if objects else set()
        wanted = [(name, trait) for name, trait in self._rust_vtables if trait in traits] if traits else []
        found: dict[int, tuple[TypeId, str]] = {}
        for name, trait in wanted[:CLASSES_MAX]:
            if time.monotonic() > end:
                break
            for entry in self._index.variables(name, end):
                location, kind = location_of(entry), type_of(entry)
                concrete = None if kind is None else kind.reference(dw.CONTAINING_TYPE)
                if location.kind == "address" and isinstance(location.value, int) and concrete is not None:
                    found[location.value] = graph.type(concrete), DYN + trait
        return found

    @cached_property
    def _rust_vtables(self) -> list[tuple[str, str]]:
        """(name of the variable, trait)."""
        strings = self._index.strings
        found = {match[0].decode("utf-8", "replace"): match[1].decode("utf-8", "replace") for match in _RUST_VTABLE.finditer(strings)}
        return list(found.items())[:VTABLES_MAX]

    @cached_property
    def _class_names(self) -> dict[str, str]:
        """Of all classes with vtables or type information here, by their mangled names."""
        names = {raw: itanium.demangle(f"_ZTI{raw}") for raw in self._inheritance.classes}
        return {raw: name.removeprefix(_TYPE) for raw, name in names.items() if name is not None and name.startswith(_TYPE)}

    @cached_property
    def _managers(self) -> list[tuple[int, str, str]]:
        """(address, what is in the std::any, role)."""
        found: dict[int, tuple[str, str]] = {}
        for part in (b"_S_manage", b"8__handle"):
            for address, raw in self._symbols(part):
                name = (itanium.demangle(raw) or "").partition("(")[0]
                for before, after, role in (*_MANAGED, *_HANDLED):
                    if name.startswith(before) and name.endswith(after):
                        found[address] = name[len(before) : -len(after)].rstrip(), role
        return [(address, *told) for address, told in found.items()][:MANAGERS_MAX]

    def _symbols(self, part: bytes) -> Iterator[tuple[int, str]]:
        """Functions whose mangled names have `part`."""
        tables = (read_table(elf, section) for elf in self._files for section in (".symtab", ".dynsym"))
        for table in [one for one in tables if one is not None]:
            for row in table.containing(part, whole=False):
                raw = table.name(int(row)).partition("@")[0]
                if raw.startswith("_Z"):
                    yield int(table.values[row]), raw


def _named(graph: TypeGraph, name: str) -> TypeId | None:
    try:
        return graph.named(name)
    except DwarfError:
        return None  # damaged debug info tells of no class
