"""Plans with types: the functions of one ask and file share a type table, as far as its limits go."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from actors.indexer.assembly import SECTION_STEPS_MAX, Outline, Typing, assemble
from actors.indexer.codes import CodeSymbols
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.dwarf.type_numbering import Limits
from actors.indexer.planner import Found
from strobe.model.probe import Plan
from strobe.model.typed import TypedFunction
from strobe.model.types import TypeTable
from strobe.values.bundle import Bundle
from strobe.values.registry import Formatters
from strobe.values.walks import WalkCompiler

NODES_MAX: Final = 6000  # of one table; the functions after that get another one
NODES_ENOUGH: Final = 4500
_TYPES_SHARE: Final = 0.6  # of the time, for types; the rest is for what stands behind vtables, and for programs
_CODES_SHARE: Final = 0.75


@dataclass
class Deep:
    """`plans` by address. `bundles`: by key, those that the plans count in. `complete`: the deadline left none out."""

    plans: dict[int, Plan] = field(default_factory=dict)
    bundles: dict[str, bytes] = field(default_factory=dict)
    complete: bool = True


class DeepPlans:
    """Of one file. `module`: its path, which codes are found by."""

    def __init__(self, index: TypeIndex, symbols: CodeSymbols, module: str) -> None:
        self._index = index
        self._symbols = symbols
        self._module = module

    def make(self, wanted: dict[int, Found], formatters: Formatters, depth: int, end: float) -> Deep:
        """As many as there is time for until `end`, on the monotonic clock, and at least one."""
        deep = Deep()
        left = list(wanted.items())
        while left and deep.complete:
            left = self._one_table(left, formatters, depth, end, deep)
        return deep

    def _one_table(self, wanted: list[tuple[int, Found]], formatters: Formatters, depth: int, end: float, deep: Deep) -> list[tuple[int, Found]]:
        """What did not fit in the table is left."""
        begin = time.monotonic()
        types_end = begin + (end - begin) * _TYPES_SHARE
        graph = TypeGraph(self._index, Limits(nodes=NODES_MAX, end=types_end, pointers=depth, statics=False))
        typed: list[tuple[int, Outline, TypedFunction]] = []
        done = 0
        for address, found in wanted:
            if typed and graph.size >= NODES_ENOUGH:
                break
            function = _typed(graph, found)
            if time.monotonic() > types_end and (typed or deep.plans):
                deep.complete = False
                break
            done += 1
            if function is not None:
                typed.append((address, found.outline, function))
            else:
                deep.plans[address] = assemble(found.outline)
        codes = self._symbols.codes(graph, self._module, begin + (end - begin) * _CODES_SHARE)
        table = graph.table()
        key, body = Bundle(table, codes).pack()
        deep.bundles[key] = body
        for address, outline, function in typed:
            deep.plans[address] = _assembled(table, formatters, outline, function, depth, key)
        return wanted[done:]


def _typed(graph: TypeGraph, found: Found) -> TypedFunction | None:
    """None: what debug info says of its types is damaged."""
    try:
        typed = graph.function(found.function)
    except DwarfError:
        return None
    return typed if len(typed.parameters) == len(found.outline.arguments) else None


def _assembled(table: TypeTable, formatters: Formatters, outline: Outline, function: TypedFunction, depth: int, key: str) -> Plan:
    """Less deep where the programs would be too many."""
    while True:
        plan = assemble(outline, typing := Typing(function, WalkCompiler(table, formatters), depth, key))
        if typing.compiler.steps <= SECTION_STEPS_MAX or depth == 1:
            return plan
        depth -= 1
