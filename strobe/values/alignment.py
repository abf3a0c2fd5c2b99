"""Alignment of types: what debug info says only of those that have one of their own."""

from __future__ import annotations

from typing import Final

from strobe.model.type_nodes import Array, Complex, Enum, Float, Integer, MemberPointer, Pointer, Qualified, Record, Typedef, TypeId
from strobe.model.types import TypeTable

_NESTING_MAX: Final = 32
_MEMBERS_MAX: Final = 1000  # looked at, of one type with all that is in it
_MOST: Final = 16  # of scalars (System V ABI for x86_64 §3.1.2)


def alignment(table: TypeTable, number: TypeId) -> int:
    """A power of two; 1 where nothing tells."""
    return _alignment(table, number, 0, [_MEMBERS_MAX])


def _alignment(table: TypeTable, number: TypeId, nesting: int, left: list[int]) -> int:
    left[0] -= 1
    if nesting > _NESTING_MAX or left[0] < 0 or not 0 <= number < len(table):
        return 1
    node = table.nodes[number]
    if isinstance(node, Typedef | Qualified):
        return _alignment(table, node.target, nesting + 1, left)
    if isinstance(node, Array):
        return _alignment(table, node.element, nesting + 1, left) if not node.vector else _power(node.size)
    if isinstance(node, Complex):
        return _power(node.size // 2)
    if isinstance(node, Record):
        return _record(table, node, nesting, left)
    if isinstance(node, MemberPointer | Pointer):
        return 8
    return _power(node.size) if isinstance(node, Integer | Float | Enum) else 1


def _record(table: TypeTable, record: Record, nesting: int, left: list[int]) -> int:
    if record.alignment is not None and record.alignment > 0:
        return record.alignment
    inside = [member.type for member in record.members] + [base.type for base in record.bases]
    if record.variant_part is not None:
        part = record.variant_part
        inside += [member.type for variant in part.variants for member in variant.members]
        inside += [part.discriminant.type] if part.discriminant is not None else []
    most = max((_alignment(table, one, nesting + 1, left) for one in inside), default=1)
    return max(most, 1 if record.vtable is None else 8)


def _power(size: int | None) -> int:
    return 1 if size is None or size < 1 else min(_MOST, 1 << (size.bit_length() - 1))
