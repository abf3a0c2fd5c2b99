"""Alignment of types: what debug info says only of those that have one of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strobe.model.type_nodes import Array, Complex, Enum, Float, Integer, MemberPointer, Node, Opaque, Pointer, Qualified, Record, Typedef, TypeId
from strobe.model.types import TypeTable

_NESTING_MAX: Final = 32
_MEMBERS_MAX: Final = 1000  # looked at, of one type with all that is in it
_MOST: Final = 16  # of scalars (System V ABI for x86_64 §3.1.2)


def alignment(table: TypeTable, number: TypeId, opaque: Callable[[str], tuple[int, int] | None] = lambda _: None) -> int:
    """A power of two; 1 where nothing tells. `opaque`: (size, alignment) of types that are declared only, by name."""
    return _Alignments(table, opaque).of(number, 0)


class _Alignments:
    def __init__(self, table: TypeTable, opaque: Callable[[str], tuple[int, int] | None]) -> None:
        self._table, self._opaque = table, opaque
        self._left = _MEMBERS_MAX

    def of(self, number: TypeId, nesting: int) -> int:
        self._left -= 1
        if nesting > _NESTING_MAX or self._left < 0 or not 0 <= number < len(self._table):
            return 1
        node = self._table.nodes[number]
        if isinstance(node, Typedef | Qualified):
            return self.of(node.target, nesting + 1)
        if isinstance(node, Array):
            return self.of(node.element, nesting + 1) if not node.vector else _power(node.size)
        if isinstance(node, Record):
            return self._record(node, nesting)
        if isinstance(node, Opaque):
            return known[1] if (known := self._opaque(node.name)) else 1
        return _scalar(node)

    def _record(self, record: Record, nesting: int) -> int:
        if record.alignment is not None and record.alignment > 0:
            return record.alignment
        inside = [member.type for member in record.members] + [base.type for base in record.bases]
        if record.variant_part is not None:
            part = record.variant_part
            inside += [member.type for variant in part.variants for member in variant.members]
            inside += [part.discriminant.type] if part.discriminant is not None else []
        most = max((self.of(one, nesting + 1) for one in inside), default=1)
        return max(most, 1 if record.vtable is None else 8)


def _scalar(node: Node) -> int:
    if isinstance(node, MemberPointer | Pointer):
        return 8
    if isinstance(node, Complex):
        return _power(node.size // 2)
    return _power(node.size) if isinstance(node, Integer | Float | Enum) else 1


def _power(size: int | None) -> int:
    return 1 if size is None or size < 1 else min(_MOST, 1 << (size.bit_length() - 1))
