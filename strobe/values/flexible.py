"""Flexible arrays, `struct { int count; struct item items[]; }`: as many elements as a member beside them says, where one says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import Array, Integer, TypeId
from strobe.values import texts
from strobe.values.arrays import COUNT_MAX, row
from strobe.values.memory import Missing
from strobe.values.view import Json, Shape, View, Words

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_COUNTS: Final = frozenset({"count", "counts", "len", "length", "n", "num", "number", "nr", "size", "nitems", "nelems", "elements"})
_BYTES_MAX: Final = 1 << 32  # a count that means more is none


class FlexibleShape(Shape):
    """`count_at`: where the count is, from the array's start on; of `count_size` bytes."""

    __slots__ = ("count_at", "count_size", "element", "name", "shapes", "stride", "unit")

    def __init__(self, shapes: Shapes, node: Array, count_at: int, count_size: int) -> None:
        super().__init__(None)
        self.shapes, self.element, self.name = shapes, node.element, node.name
        self.stride, self.unit = shapes.bytes_of(node.element), shapes.unit(node.element)
        self.count_at, self.count_size = count_at, count_size

    def apart(self, view: View, address: int, depth: int, _missing: Missing | None, /) -> Json:
        count = view.word(address + self.count_at, self.count_size)
        if isinstance(count, Missing) or count * self.stride > _BYTES_MAX:
            return f"<{self.name}>"
        if self.unit is not None:
            return texts.at_pointer(view, address, self.unit, count)
        return row(view, self.element, address, count, self.stride, depth)


def flexible(shapes: Shapes, node: Array, siblings: list[tuple[str, TypeId, int]]) -> Shape:
    """`siblings`: (name, type, how far from the array's start) of the record's other members."""
    stride = shapes.bytes_of(node.element)
    named = [(at, found.size) for name, number, at in siblings if _is_count(name) and isinstance(found := shapes.node(number), Integer) and at < 0]
    is_simple = len(node.counts) == 1 and 0 < stride < COUNT_MAX
    if len(named) != 1 or not is_simple or named[0][1] not in (1, 2, 4, 8):
        return Words(f"<{node.name}>")
    return FlexibleShape(shapes, node, *named[0])


def _is_count(name: str) -> bool:
    """`count`, `n_items`, `item_count`; a `size` may count bytes, so only elements of one byte are counted by it (see flexible)."""
    plain = name.strip("_").lower()
    return plain in _COUNTS or plain.endswith(("_count", "_len", "_length")) or plain.startswith(("n_", "num_", "nr_", "count_"))
