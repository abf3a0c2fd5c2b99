"""What a record is shown as: its members, flat, each under a name of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import Array, Record, TypeId
from strobe.values.scalars import EnumShape, IntegerShape
from strobe.values.view import CUT, Shape, Words

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

FIELDS_MAX: Final = 4096
_NESTING_MAX: Final = 16
_RECORDS_MAX: Final = 1000  # a record is made of; only damaged ones contain themselves
_FLEXIBLE_MAX: Final = 200  # members of a record in which something is looked for that counts a flexible array
_PATH_MAX: Final = 4  # bases in a label


@dataclass(frozen=True, slots=True)
class Field:
    """`bits` of a bit field, from the `shift`-th of the byte at `offset` on; 0 for others."""

    label: str
    shape: Shape
    number: TypeId
    offset: int
    bits: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class VirtualBase:
    """Where its offset stands: at `slot` from what the vtable pointer at `pointer` points to; it counts from `pointer`."""

    number: TypeId
    pointer: int
    slot: int | None


@dataclass(slots=True)
class _Named:
    path: tuple[str, ...]  # bases' names from the record on
    name: str
    number: TypeId
    offset: int
    bits: int
    shift: int


@dataclass(slots=True)
class Layout:
    fields: list[Field]
    virtual: list[VirtualBase]


class _Walk:
    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.found: list[_Named] = []
        self.virtual: dict[TypeId, VirtualBase] = {}
        self.records = 0

    def record(self, record: Record, start: int, path: tuple[str, ...], nesting: int, *, virtual_too: bool) -> None:
        self.records += 1
        if nesting > _NESTING_MAX or self.records > _RECORDS_MAX:
            return
        for base in record.bases:
            inner = self.shapes.node(base.type)
            if base.virtual and virtual_too:
                self.virtual.setdefault(self.shapes.resolved(base.type), VirtualBase(base.type, start, base.slot))
            elif isinstance(inner, Record) and base.offset is not None:
                self.record(inner, start + base.offset, (*path, unqualified(inner.name)), nesting + 1, virtual_too=virtual_too)
        for member in record.members:
            if len(self.found) >= FIELDS_MAX:
                return
            inner = self.shapes.node(member.type)
            if not member.name and isinstance(inner, Record) and member.bit_size is None:
                self.record(inner, start + member.offset, path, nesting + 1, virtual_too=virtual_too)
            elif not member.artificial and (member.name or member.bit_size is None):
                self.found.append(_Named(path, member.name or "?", member.type, start + member.offset, member.bit_size or 0, member.bit_offset))


def layout(shapes: Shapes, record: Record) -> Layout:
    walk = _Walk(shapes)
    walk.record(record, 0, (), 0, virtual_too=True)
    labels = _labels(walk.found)
    fields = []
    for label, one in zip(labels, walk.found, strict=True):
        shape = _shape(shapes, record, walk.found, one)
        bits = one.bits if isinstance(shape, IntegerShape | EnumShape) else 0
        fields.append(Field(label, shape, one.number, one.offset, bits, one.shift))
    return Layout(fields, list(walk.virtual.values()))


def _labels(found: list[_Named]) -> list[str]:
    """A base's member whose name another one has is called after its base, or after all bases on the way to it."""
    names = Counter(one.name for one in found)
    short = [f"{one.path[-1]}::{one.name}" if one.path and names[one.name] > 1 else one.name for one in found]
    counts = Counter(short)
    return ["::".join((*one.path[-_PATH_MAX:], one.name)) if counts[label] > 1 else label for one, label in zip(found, short, strict=True)]


def _shape(shapes: Shapes, record: Record, found: list[_Named], one: _Named) -> Shape:
    shape = shapes.of(one.number)
    if one.bits:
        is_sound = isinstance(shape, IntegerShape | EnumShape) and 0 < one.bits <= 128 and 0 <= one.shift < 8
        last = one.offset + (one.shift + one.bits + 7) // 8
        return shape if is_sound and one.offset >= 0 and (record.size is None or last <= record.size) else Words(CUT, 0)
    node = shapes.node(one.number)
    if isinstance(node, Array) and shape.size is None and len(found) <= _FLEXIBLE_MAX:
        return shapes.flexible(node, [(other.name, other.number, other.offset - one.offset) for other in found if not other.bits and not other.path])
    last = one.offset + (shape.size or 0)
    return shape if one.offset >= 0 and (record.size is None or last <= record.size) else Words(CUT, 0)


@lru_cache(1024)
def unqualified(name: str) -> str:
    """`Left` of `shop::Left`; what is between brackets is left alone."""
    depth, start = 0, 0
    for at, mark in enumerate(name):
        if mark in "<([{":
            depth += 1
        elif mark in ">)]}":
            depth -= 1
        elif mark == ":" and depth == 0:
            start = at + 1
    return name[start:].removeprefix("struct ").removeprefix("union ").removeprefix("class ") or name
