"""Type tables from debug info, built as far as they are asked for."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.parameters import parameter_entries
from actors.indexer.dwarf.type_index import TypeIndex, variable_name
from actors.indexer.dwarf.type_kinds import describe, name_only
from actors.indexer.dwarf.type_numbering import Limits, Numbering
from actors.indexer.dwarf.unit import Entry
from actors.indexer.dwarf.variables import location_of
from strobe.model.type_nodes import CUT, Array, Node, Opaque, Pointer, TypeId
from strobe.model.typed import TypedFunction, TypedParameter, TypedVariable
from strobe.model.types import TypeTable

VARIABLES_MAX: Final = 64
_DECLARATOR: Final = re.compile(r"(?:\*|(?:\[\d{1,9}\])+)\s*$")
_COUNT: Final = re.compile(r"\d+")
_MARKS_MAX: Final = 8
_NOT_YET: Final = Opaque("?", "", "unknown")
_IN_CHARGE: Final = "__in_chrg"  # which of a constructor's variants is meant; each variant is a function of its own, without it


class TypeGraph:
    """One request's types: ask for what is wanted, then for the `table`. Types that several answers share are in it once.

    What is malformed becomes an `Opaque` node with its problem where it is inside a type, and DwarfError where it was asked for itself.
    """

    def __init__(self, index: TypeIndex, limits: Limits | None = None) -> None:
        self._index = index
        self._limits = limits or Limits()
        self._numbering = Numbering(self._limits, index)

    def type(self, entry: Entry | None) -> TypeId:
        """Of a type's own entry; None is void."""
        number = self._numbering.number(entry)
        self._describe_waiting()
        return number

    def function(self, function: Entry) -> TypedFunction:
        """Of the entry that FunctionFinder finds. Parameters as the planner has them."""
        chain = origins(function)
        parameters: list[TypedParameter] = []
        for index, found in enumerate(parameter_entries(chain)):
            parameter = self._parameter(found, f"arg{index}")
            if not (parameter.artificial and parameter.name == _IN_CHARGE):
                parameters.append(parameter)
        result = next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None)
        variadic = any(child.tag == dw.UNSPECIFIED_PARAMETERS for one in chain for child in one.children())
        return TypedFunction(tuple(parameters), self.type(result), variadic)

    def named(self, name: str) -> TypeId | None:
        """Of the type called `name`: qualified or, where no type is called just that, its last parts. After it there may be `*` and `[4]`.
        None: there is none."""
        plain, declarator = _split_declarator(name)
        entry = next(iter(self._index.types(plain, self._limits.search_end)), None)
        if entry is None and plain != "void":
            return None
        number = self.type(entry)
        for mark in declarator:
            number = self._derived(number, mark)
        return number

    def variables(self, name: str) -> list[TypedVariable]:
        """Global, static and thread-local variables called `name`: those that have a place or value first."""
        found: dict[tuple[int, bool], TypedVariable] = {}
        for declared in self._index.variables(name, self._limits.end):
            entry = self._index.variable_definition(declared)
            found.setdefault((entry.offset, False), self.variable(declared, entry))
            if len(found) >= VARIABLES_MAX:
                self._numbering.cut += 1
                break
        placed = [one for one in found.values() if one.location.kind not in ("removed", "other")]
        distinct = list(dict.fromkeys(placed)) or list(dict.fromkeys(found.values()))
        return sorted(distinct, key=lambda one: one.name != name)

    def variable(self, declared: Entry, entry: Entry) -> TypedVariable:
        """`entry` defines what `declared` declares; they may be one."""
        chain = [*origins(entry), declared]
        kind = next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None)
        linkage = next((name for one in chain if (name := self._numbering.linkage_name(one)) is not None), None)
        location = location_of(entry)
        if location.kind == "removed" and declared.has(dw.CONST_VALUE):
            location = location_of(declared)
        return TypedVariable(variable_name(declared), self.type(kind), location, linkage)

    def limit(self, end: float) -> None:
        """From now on until `end`, on the monotonic clock."""
        self._limits = self._numbering.limits = replace(self._limits, end=end)

    @property
    def size(self) -> int:
        """Nodes so far."""
        return len(self._numbering.nodes)

    @property
    def paused(self) -> bool:
        """Whether types that were asked for, or lead on from there, are not described yet; the next that is asked goes on with them."""
        return self._numbering.waits

    def table(self) -> TypeTable:
        return TypeTable(tuple(_NOT_YET if node is None else node for node in self._numbering.nodes), self._numbering.cut)

    def _parameter(self, chain: list[Entry], unnamed: str) -> TypedParameter:
        name = next((text for one in chain if (text := one.text(dw.NAME)) is not None), unnamed)
        found = next((one.reference(dw.TYPE) for one in chain if one.has(dw.TYPE)), None)
        return TypedParameter(name, self.type(found), any(one.has(dw.ARTIFICIAL) for one in chain))

    def _describe_waiting(self) -> None:
        while (waiting := self._numbering.next()) is not None:
            number, entry = waiting
            self._numbering.nodes[number] = self._described(number, entry)
            if self._limits.pauses and time.monotonic() > self._limits.end:
                self._numbering.pause()
                return

    def _derived(self, target: TypeId, mark: str) -> TypeId:
        """A pointer to the type, or an array of it, that debug info need not have."""
        if len(self._numbering.nodes) >= self._limits.nodes:
            self._numbering.cut += 1
            return CUT
        table = self.table()
        node = table[target]
        if mark == "*":
            space = "" if node.name.endswith("*") else " "
            return self._numbering.add(Pointer(f"{node.name}{space}*", node.language, 8, target))
        counts = tuple(int(count) for count in _COUNT.findall(mark))
        element = table.size(target)
        return self._numbering.add(Array(node.name + mark, node.language, None if element is None else element * math.prod(counts), target, counts))

    def _described(self, number: TypeId, entry: Entry) -> Node:
        try:
            return name_only(entry, self._numbering) if self._numbering.is_far(number, entry) else describe(entry, self._numbering)
        except DwarfError as error:
            return Opaque("?", "", "unknown", str(error))


def _split_declarator(name: str) -> tuple[str, list[str]]:
    """(`Order`, [`*`, `[4]`]) for `Order *[4]`: innermost first."""
    marks: list[str] = []
    name = name.strip()
    while len(marks) < _MARKS_MAX and (match := _DECLARATOR.search(name)) and match.start():
        marks.append(match.group().strip())
        name = name[: match.start()].rstrip()
    return name, marks[::-1]
