"""What a program of tests/targets/types says about its own types, and a type graph compared with it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_index import TypeIndex
from actors.indexer.dwarf.type_numbering import Limits
from actors.indexer.elf import ElfFile
from strobe.model.type_nodes import Array, Enum, Record, TypeId
from strobe.model.typed import TypedFunction
from strobe.model.types import Found, TypeTable
from tests.harness.gdb import entries

RUN_S: Final = 30
LIMIT_S: Final = 60
_LAYOUT: Final = ("size", "align", "enum", "field", "bits", "extent")


@dataclass(slots=True)
class Typed:
    """One program's debug info, asked anew for each table."""

    path: Path
    file: DwarfFile
    index: TypeIndex

    @classmethod
    def open(cls, path: Path) -> Typed:
        file = DwarfFile(ElfFile.open(str(path)))
        return cls(path, file, TypeIndex(file))

    def graph(self, nodes: int = 4000) -> TypeGraph:
        return TypeGraph(self.index, Limits(nodes=nodes, end=time.monotonic() + LIMIT_S))

    def type(self, name: str) -> tuple[TypeTable, TypeId]:
        graph = self.graph()
        number = graph.named(name)
        assert number is not None, f"{self.path}: no type {name}"
        return graph.table(), number

    def function(self, symbol: str) -> tuple[TypeTable, TypedFunction]:
        entry = FunctionFinder(self.file).find(entries(self.path)[symbol], symbol)
        assert entry is not None
        graph = self.graph()
        found = graph.function(entry)
        return graph.table(), found


@cache
def facts(path: Path) -> list[list[str]]:
    """The lines that the program prints, split."""
    done = subprocess.run([str(path)], capture_output=True, text=True, timeout=RUN_S, check=True, stdin=subprocess.DEVNULL)
    return [line.split("|") for line in done.stdout.splitlines()]


def compare(typed: Typed) -> tuple[int, list[str]]:
    """(how many facts agreed, disagreements in words)."""
    agreed, wrong = 0, []
    tables: dict[str, tuple[TypeTable, TypeId]] = {}
    for kind, subject, *rest in facts(typed.path):
        if kind not in _LAYOUT:
            continue
        if subject not in tables:
            tables[subject] = typed.type(subject)
        theirs, ours = _pair(*tables[subject], kind, rest)
        if theirs == ours:
            agreed += 1
        else:
            wrong.append(f"{kind} {subject} {' '.join(rest)}: program {theirs}, graph {ours}")
    return agreed, wrong


def _pair(table: TypeTable, number: TypeId, kind: str, rest: list[str]) -> tuple[object, object]:
    """(what the program says, what the graph says)."""
    if kind == "size":
        return int(rest[0]), table.size(number)
    if kind == "align":
        record = table.stripped(number)
        return int(rest[0]), record.alignment if isinstance(record, Record) else None
    if kind == "enum":
        node = table.stripped(number)
        return int(rest[1]), dict(node.enumerators).get(rest[0]) if isinstance(node, Enum) else None
    found = member_at(table, number, rest[0])
    if found is None:
        return rest, None
    if kind == "field":
        return (int(rest[1]), int(rest[2])), (found.offset, table.size(found.type) or 0)
    if kind == "bits":
        return (int(rest[1]), int(rest[2])), (found.offset * 8 + found.bit_offset, found.bit_size)
    array = table.stripped(found.type)
    return int(rest[2]), array.counts[int(rest[1])] if isinstance(array, Array) else None


def member_at(table: TypeTable, number: TypeId, path: str) -> Found | None:
    """A member by a path like `inner.value`; `offset` counts from the outermost record."""
    offset, found = 0, None
    for name in path.split("."):
        found = table.member(number, name)
        if found is None:
            return None
        offset, number = offset + found.offset, found.type
    return None if found is None else Found(found.name, found.type, offset, found.bit_size, found.bit_offset)


def addresses(path: Path) -> dict[str, int]:
    return {name: int(value) for kind, name, value in (row for row in facts(path) if len(row) == 3) if kind == "address"}


