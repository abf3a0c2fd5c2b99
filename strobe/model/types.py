"""Types of one request, numbered: what deep values, memory reads and expressions are decoded by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from strobe.model import type_wire
from strobe.model.type_nodes import (
    CUT,
    VOID,
    Array,
    Complex,
    Cut,
    Enum,
    Float,
    Integer,
    MemberPointer,
    Node,
    Pointer,
    Qualified,
    Record,
    Typedef,
    TypeId,
    Unspecified,
    Void,
)
from strobe.model.type_nodes import Member as Member

_CHAIN_MAX: Final = 64
_NESTING_MAX: Final = 16
FIRST_NODES: Final[tuple[Node, ...]] = (Void("void", ""), Cut("…", ""))


@dataclass(frozen=True, slots=True)
class Found:
    """A member of a record or of what is nested in it without a name. `offset` counts from the record that was asked."""

    name: str
    type: TypeId
    offset: int
    bit_size: int | None = None
    bit_offset: int = 0


@dataclass(frozen=True, slots=True)
class TypeTable:
    """`nodes[VOID]` and `nodes[CUT]` are always there. `cut`: how many references to types, members or enumerators a limit left out."""

    nodes: tuple[Node, ...] = FIRST_NODES
    cut: int = 0

    def __getitem__(self, number: TypeId) -> Node:
        return self.nodes[number]

    def __len__(self) -> int:
        return len(self.nodes)

    def stripped(self, number: TypeId) -> Node:
        """What is behind typedefs and qualifiers."""
        for _ in range(_CHAIN_MAX):
            node = self.nodes[number]
            if not isinstance(node, Typedef | Qualified):
                return node
            number = node.target
        return self.nodes[CUT]  # only damaged debug info has such chains

    def size(self, number: TypeId) -> int | None:
        """Bytes; None for what has none: functions, void, opaque types, arrays without a bound."""
        node = self.stripped(number)
        if isinstance(node, Integer | Float | Complex | Enum | Pointer | MemberPointer | Array | Record | Unspecified):
            return node.size
        return None

    def named(self, name: str) -> Iterator[TypeId]:
        """Types of exactly this name."""
        return (number for number, node in enumerate(self.nodes) if node.name == name and number > CUT)

    def members(self, number: TypeId, nesting: int = 0) -> Iterator[Found]:
        """All non-static members by name: the record's own, those of anonymous members, then those of bases at a fixed offset."""
        record = self.stripped(number)
        if not isinstance(record, Record) or nesting > _NESTING_MAX:
            return
        for member in record.members:
            if member.name:
                yield Found(member.name, member.type, member.offset, member.bit_size, member.bit_offset)
            else:
                yield from self._within(member.type, member.offset, nesting)
        for base in record.bases:
            if base.offset is not None:
                yield from self._within(base.type, base.offset, nesting)

    def member(self, number: TypeId, name: str) -> Found | None:
        return next((found for found in self.members(number) if found.name == name), None)

    def to_wire(self) -> list[Any]:
        """Lists, strings, numbers and bytes only, for msgpack."""
        return [type_wire.VERSION, self.cut, [type_wire.to_wire(node) for node in self.nodes]]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> TypeTable:
        """Raises ValueError on what is no table, or one of a later version."""
        if not isinstance(wire, list) or len(wire) != 3 or wire[0] != type_wire.VERSION:
            raise ValueError("not a type table of this version")
        table = cls(tuple(type_wire.from_wire(row) for row in wire[2]), wire[1])
        if table.nodes[: len(FIRST_NODES)] != FIRST_NODES:
            raise ValueError("a type table without its first nodes")
        return table

    def _within(self, number: TypeId, offset: int, nesting: int) -> Iterator[Found]:
        for found in self.members(number, nesting + 1):
            yield Found(found.name, found.type, found.offset + offset, found.bit_size, found.bit_offset)


assert isinstance(FIRST_NODES[VOID], Void) and isinstance(FIRST_NODES[CUT], Cut)
