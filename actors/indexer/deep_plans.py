"""Plans with types: the functions of one ask and file share a type table, as far as its limits go."""

from __future__ import annotations

import time
from collections.abc import Iterator
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
from strobe.values.bundle import Bundle
from strobe.values.registry import Formatters
from strobe.values.walks import WalkCompiler

NODES_MAX: Final = 6000  # of one table; the functions after that get another one
NODES_ENOUGH: Final = 4500
_TYPES_SHARE: Final = 0.6  # of the time, for types; then comes what stands behind vtables
_CODES_SHARE: Final = 0.8  # the rest is for programs, and for finding functions that nothing else is done for


@dataclass
class Deep:
    """`plans` by address. `bundles`: by key, those that the plans count in. `late`: what there was no time for."""

    plans: dict[int, Plan] = field(default_factory=dict)
    bundles: dict[str, bytes] = field(default_factory=dict)
    late: dict[int, Found] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """`end`s on the monotonic clock."""

    formatters: Formatters
    depth: int
    types_end: float
    codes_end: float

    @classmethod
    def until(cls, end: float, formatters: Formatters, depth: int) -> Task:
        now = time.monotonic()
        return cls(formatters, depth, now + (end - now) * _TYPES_SHARE, now + (end - now) * _CODES_SHARE)


class DeepPlans:
    """Of one file. `module`: its path, which codes are found by."""

    def __init__(self, index: TypeIndex, symbols: CodeSymbols, module: str) -> None:
        self._index = index
        self._symbols = symbols
        self._module = module
        self._begun: dict[int, TypeGraph] = {}  # by depth: when time ran out; the next ask goes on with it

    def make(self, wanted: Iterator[tuple[int, Found]], task: Task) -> Deep:
        """As many as there is time for; what is left of `wanted` then was not looked at."""
        deep = Deep()
        while self._one_table(wanted, task, deep):
            pass
        return deep

    def _one_table(self, wanted: Iterator[tuple[int, Found]], task: Task, deep: Deep) -> bool:
        """False: there is nothing left, or no time."""
        graph = self._begun.pop(task.depth, None) or TypeGraph(self._index, Limits(nodes=NODES_MAX, pointers=task.depth, statics=False, pauses=True))
        typed: list[tuple[int, Outline, TypedFunction]] = []
        more = True
        while more and not (typed and graph.size >= NODES_ENOUGH):
            more = self._one_function(wanted, task, deep, graph, typed)
        if typed:
            self._assemble(typed, graph, task, deep)
        if graph.paused or (graph.size < NODES_ENOUGH and time.monotonic() > task.types_end):
            self._begun[task.depth] = graph
        return more

    def _one_function(
        self, wanted: Iterator[tuple[int, Found]], task: Task, deep: Deep, graph: TypeGraph, typed: list[tuple[int, Outline, TypedFunction]]
    ) -> bool:
        """False as for a table."""
        if time.monotonic() > task.types_end and (typed or deep.plans):
            return False
        address, found = next(wanted, (0, None))
        if found is None:
            return False
        graph.limit(task.types_end)
        function = _typed(graph, found)
        if graph.paused:
            deep.late[address] = found
            return False
        if function is None:
            deep.plans[address] = assemble(found.outline)
        else:
            typed.append((address, found.outline, function))
        return True

    def _assemble(self, typed: list[tuple[int, Outline, TypedFunction]], graph: TypeGraph, task: Task, deep: Deep) -> None:
        graph.limit(task.codes_end)
        codes = self._symbols.codes(graph, self._module, task.codes_end)
        table = graph.table()
        key, body = Bundle(table, codes).pack()
        deep.bundles[key] = body
        compilers = [WalkCompiler(table, task.formatters, codes=codes), WalkCompiler(table, task.formatters)]
        for address, outline, function in typed:
            deep.plans[address] = _assembled(compilers if codes else compilers[1:], outline, function, task.depth, key)


def _typed(graph: TypeGraph, found: Found) -> TypedFunction | None:
    """None: what debug info says of its types is damaged."""
    try:
        typed = graph.function(found.function)
    except DwarfError:
        return None
    return typed if len(typed.parameters) == len(found.outline.arguments) else None


def _assembled(compilers: list[WalkCompiler], outline: Outline, function: TypedFunction, depth: int, key: str) -> Plan:
    """Where the programs would be too many, with the next compiler, and then less deep."""
    while True:
        for compiler in compilers:
            plan = assemble(outline, typing := Typing(function, compiler.another(), depth, key))
            if typing.compiler.steps <= SECTION_STEPS_MAX:
                return plan
        if depth == 1:
            return plan
        depth -= 1
