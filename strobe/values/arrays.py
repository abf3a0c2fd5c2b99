"""Rows of elements: arrays, vectors, and what containers hold in a row."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values import texts
from strobe.values.memory import Missing
from strobe.values.scalars import IntegerShape
from strobe.values.view import CUT, MORE, NESTING_MAX, Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
COUNT_MAX: Final = 1 << 48  # more elements than any memory has: a damaged number


def more(count: int) -> str:
    return f"{MORE} {count} more"


def row(view: View, number: TypeId, address: int, count: int, stride: int, depth: int, data: bytes | None = None, at: int = 0) -> list[Json]:
    """`count` elements of type `number` from `address` on, as far as limits and memory allow; `data` has them at `at` where they were read already."""
    shown = max(0, min(count, view.limits.elements))
    if not view.spend(shown + 1):
        return [CUT]
    missing: Missing | None = None
    if data is None:
        data, missing = view.prefix(address, _bytes(view, number, shown, stride))
        at = 0
        if missing is not None:
            shown = len(data) // stride if stride else 0
    shape = view.shapes.of(number)
    if shape.size is None:
        return [shape.apart(view, address, depth, None)]
    size = shape.size
    if size > stride or at + (shown - 1) * stride + size > len(data):
        shown, missing = 0, missing or Missing("cut", address)  # only damaged types say so
    found = plain_row(shape, data, at, shown) if stride == size else None
    if found is None:
        found = [shape.show(view, data, at + index * stride, address + index * stride, depth) for index in range(shown)]
    if missing is not None:
        found.append(str(missing))
    if count > shown and (missing is None or missing.reason == "cut"):
        found[len(found) - (missing is not None) :] = [more(count - shown)]
    return found


def _bytes(view: View, number: TypeId, count: int, stride: int) -> int:
    """The last element need not fill its stride."""
    return (count - 1) * stride + (view.shapes.of(number).size or 0) if count else 0


def plain_row(shape: Shape, data: bytes, at: int, count: int) -> list[Json] | None:
    """All at once where elements are shown as the numbers that they are."""
    if not isinstance(shape, IntegerShape) or not shape.plain:
        return None
    code = _CODES[shape.size]
    return list(struct.unpack_from(f"<{count}{code.lower() if shape.signed else code}", data, at))


class ArrayShape(Shape):
    """`counts`: of the dimensions, outermost first; `unit`: bytes of a character where the innermost rows are texts."""

    __slots__ = ("counts", "element", "shapes", "steps", "unit")
    size: int

    def __init__(self, shapes: Shapes, element: TypeId, counts: tuple[int, ...], unit: int | None) -> None:
        self.shapes, self.element, self.counts, self.unit = shapes, element, counts, unit
        step = shapes.bytes_of(element)
        steps = []
        for count in reversed(counts):
            steps.append(step)
            step *= count
        super().__init__(step)
        self.steps = steps[::-1]

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        return self._nested(view, data, at, address, depth)

    def apart(self, view: View, address: int, depth: int, missing: Missing | None, /) -> Json:
        if missing is not None and missing.address == address and missing.reason != "cut":
            return str(missing)
        return self._nested(view, None, 0, address, depth)

    def _nested(self, view: View, data: bytes | None, at: int, address: int, depth: int) -> Json:
        """Damaged types have arrays that are their own elements."""
        if view.level >= NESTING_MAX:
            return CUT
        view.level += 1
        found = self._dimension(view, 0, data, at, address, depth)
        view.level -= 1
        return found

    def _dimension(self, view: View, index: int, data: bytes | None, at: int, address: int, depth: int) -> Json:
        count, step = self.counts[index], self.steps[index]
        last = index == len(self.counts) - 1
        if last and self.unit is not None:
            text = texts.TextArrayShape(count, self.unit)
            return text.apart(view, address, depth, None) if data is None else text.show(view, data, at, address, depth)
        if last:
            return row(view, self.element, address, count, step, depth, data, at)
        shown = min(count, view.limits.elements)
        if not view.spend(shown + 1):
            return [CUT]
        found = [self._dimension(view, index + 1, data, at + i * step, address + i * step, depth) for i in range(shown)]
        return found if shown == count else [*found, more(count - shown)]
