"""A program that says where its values are and what they should be shown as, and waits meanwhile: what it said, its memory and its symbols.

It prints `group|type|address`, then for each member `expect|name|JSON`, and `ready` at the end; it goes when its input ends.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from actors.indexer.codes import CodeSymbols
from actors.indexer.demangle import demangle
from actors.indexer.dwarf.type_graph import TypeGraph
from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.bundle import Code
from strobe.values.memory import Missing
from tests.harness.gdb import entries
from tests.harness.type_facts import Typed

READY_S: Final = 30
_VTABLE: Final = b"{vtable}"


@dataclass(frozen=True, slots=True)
class LiveMemory:
    """A process's memory, through /proc."""

    file: IO[bytes]

    def read(self, address: int, size: int) -> bytes | Missing:
        found = b""
        try:
            while len(found) < size:
                found += os.pread(self.file.fileno(), min(size - len(found), 4096 - (address + len(found)) % 4096), address + len(found))
        except (OSError, OverflowError):
            return Missing("unreadable", address + len(found))
        return found

    def prefix(self, address: int, size: int) -> bytes:
        """As many of the bytes as there are."""
        found = self.read(address, size)
        if isinstance(found, bytes):
            return found
        begin = self.read(address, found.address - address)
        return begin if isinstance(begin, bytes) else b""


@dataclass(frozen=True, slots=True)
class Group:
    type: str
    address: int
    expected: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Live:
    path: Path
    groups: list[Group]
    memory: LiveMemory
    bias: int


@contextmanager
def running(path: Path) -> Iterator[Live]:
    process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        groups: list[Group] = []
        for line in process.stdout:  # a program that hangs is ended by the test run's own limit
            kind, *rest = line.rstrip("\n").split("|", 2)
            if kind == "ready":
                break
            if kind == "group":
                groups.append(Group(rest[0], int(rest[1])))
            else:
                groups[-1].expected[rest[0]] = rest[1]
        else:
            raise AssertionError(f"{path} ended too early: {process.wait(READY_S)}")
        with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
            yield Live(path, groups, LiveMemory(memory), _bias(process.pid, path))
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(READY_S)
        finally:
            process.kill()


def _bias(pid: int, path: Path) -> int:
    """What is added to link-time addresses, of a position independent program."""
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return min(int(line[0].split("-")[0], 16) for line in lines if len(line) > 5 and line[5] == str(path.resolve()))


@dataclass(frozen=True, slots=True)
class LiveSymbols:
    functions: dict[int, str]
    types: dict[int, TypeId]

    def function(self, address: int, /) -> str | None:
        return self.functions.get(address)

    def dynamic(self, address: int, /) -> TypeId | None:
        return self.types.get(address)


@dataclass(frozen=True, slots=True)
class Types:
    """What debug info says of the groups: the number of each one's type, and Rust's vtables by address. `codes`: as plans have them."""

    table: TypeTable
    numbers: list[TypeId]
    symbols: LiveSymbols
    codes: tuple[Code, ...] = ()


def types_of(live: Live, *, names: bool = True) -> Types:
    typed = Typed.open(live.path)
    graph = typed.graph(nodes=20_000)
    numbers = [graph.named(group.type) for group in live.groups]
    vtables = [one for name in _ended_by(_VTABLE, typed.file.elf.bytes_of(".debug_str")) for one in graph.variables(name)]
    codes = codes_of(typed, graph)
    table = graph.table()
    types: dict[int, TypeId] = {}
    for vtable in vtables:
        node, at = table.stripped(vtable.type), vtable.location.value
        if isinstance(node, Record) and node.vtable_of is not None and isinstance(at, int) and vtable.location.kind == "address":
            types[live.bias + at] = node.vtable_of
    found = [number for number in numbers if number is not None]
    assert len(found) == len(live.groups), [group.type for group, number in zip(live.groups, numbers, strict=True) if number is None]
    assert not table.cut
    return Types(table, found, LiveSymbols(_functions(live) if names else {}, types), codes)


def codes_of(typed: Typed, graph: TypeGraph) -> tuple[Code, ...]:
    return CodeSymbols(typed.file.elf, None, typed.index).codes(graph, str(typed.path), math.inf)


def _functions(live: Live) -> dict[int, str]:
    return {live.bias + address: demangle(name).text for name, address in entries(live.path).items()}


def _ended_by(end: bytes, strings: bytes) -> set[str]:
    """Of 0-terminated strings those that end so."""
    found: set[str] = set()
    at = strings.find(end + b"\0")
    while at >= 0:
        found.add(strings[strings.rfind(b"\0", 0, at) + 1 : at + len(end)].decode())
        at = strings.find(end + b"\0", at + 1)
    return found
