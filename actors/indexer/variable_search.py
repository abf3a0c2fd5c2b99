"""Variables of static storage of one file, by name: also those of functions, and Rust's thread-locals."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from actors.indexer.data_symbols import ends_in
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.enclosing import enclosing_function, function_name
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import VARIABLE_TAGS, TypeIndex, named_entries, split_scope, variable_name
from actors.indexer.dwarf.unit import Entry
from actors.indexer.dwarf.variables import location_of
from strobe.model.typed import TypedVariable

_FOUND_MAX: Final = 64
_LOOKED_MAX: Final = 2000  # entries of one name: ordinary locals are called `i` everywhere
_SHOWN_FUNCTIONS: Final = 3
_IN_FILE: Final = re.compile(r"(?P<file>.*\.\w{1,4})::(?P<name>.+)")
# thread_local! makes `NAME::{constant#0}::{closure#0}::VAL` of `NAME` (std::thread::local_impl)
_RUST_LOCALS: Final = ("__RUST_STD_INTERNAL_VAL", "VAL", "__KEY")
_UNNAMED: Final = re.compile(r"::\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


@dataclass(frozen=True, slots=True)
class Candidate:
    variable: TypedVariable
    file: str | None  # of its unit
    external: bool
    in_function: bool


class VariableSearch:
    """In one file, for one ask. Raises DwarfError."""

    def __init__(self, file: DwarfFile, index: TypeIndex, graph: TypeGraph, end: float) -> None:
        self._file = file
        self._index = index
        self._graph = graph
        self._end = end
        self.stack_of: dict[str, list[str]] = {}  # name → functions that have an ordinary variable of that name

    def find(self, name: str) -> list[Candidate]:
        """Those that have a place or a value; else those that are only declared. `file.c::name`: in units whose file that is."""
        in_file = _IN_FILE.fullmatch(name)
        wanted = in_file["name"] if in_file else name
        found = list(self._candidates(wanted)) or list(self._thread_locals(wanted))
        if in_file:
            found = [one for one in found if one.file is not None and f"/{one.file}".endswith(f"/{in_file['file']}")]
        placed = [one for one in found if one.variable.location.kind in ("address", "thread_local", "constant")]
        return placed or found

    def _candidates(self, wanted: str) -> Iterator[Candidate]:
        _, own = split_scope(wanted)
        seen: set[int] = set()
        looked = 0
        for declared in named_entries(self._file, own, VARIABLE_TAGS, self._end, inside_functions=True):
            looked += 1
            if looked > _LOOKED_MAX or len(seen) >= _FOUND_MAX:
                return
            if declared.tag == dw.MEMBER and not (declared.has(dw.EXTERNAL) or declared.has(dw.DECLARATION)):
                continue
            entry = self._index.variable_definition(declared)
            if entry.offset not in seen and (found := self._candidate(declared, entry, wanted)) is not None:
                seen.add(entry.offset)
                yield found

    def _candidate(self, declared: Entry, entry: Entry, wanted: str) -> Candidate | None:
        full = variable_name(declared)
        function = enclosing_function(declared) if ends_in(full, wanted) or "::" in wanted else None
        if function is not None:
            full = f"{function_name(function)}::{declared.text(dw.NAME)}"
        if not ends_in(full, wanted):
            return None
        kind = location_of(entry).kind
        if function is not None and kind not in ("address", "thread_local"):
            names = self.stack_of.setdefault(wanted, [])
            names += [function_name(function)] if len(names) < _SHOWN_FUNCTIONS else []
            return None
        return self._made(declared, entry, full, in_function=function is not None)

    def _thread_locals(self, wanted: str) -> Iterator[Candidate]:
        """Of Rust."""
        for own in _RUST_LOCALS:
            for entry in named_entries(self._file, own, VARIABLE_TAGS, self._end, inside_functions=True):
                if time.monotonic() > self._end:
                    return
                if location_of(entry).kind != "thread_local":
                    continue
                function = enclosing_function(entry)
                scope = variable_name(entry).rpartition("::")[0] if function is None else function_name(function)
                full = _UNNAMED.sub("", scope)
                if full and ends_in(full, wanted):
                    yield self._made(entry, entry, full, in_function=False)

    def _made(self, declared: Entry, entry: Entry, full: str, *, in_function: bool) -> Candidate:
        made = self._graph.variable(declared, entry)
        named = TypedVariable(full, made.type, made.location, made.linkage_name)
        file = entry.unit.root.text(dw.NAME)
        return Candidate(named, file, declared.has(dw.EXTERNAL) or entry.has(dw.EXTERNAL), in_function)
