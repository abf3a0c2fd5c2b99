"""What shapes of forms share: numbers in an object, and what is said of objects that can't be what their type says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values.arrays import more
from strobe.values.forms import Number
from strobe.values.memory import Missing
from strobe.values.view import CUT, MORE, NESTING_MAX, Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

WORD: Final = 8
_ALL: Final = (1 << 64) - 1


def number_in(number: Number, data: bytes, at: int) -> int:
    """Of the object that begins in `data` at `at`."""
    if number.size == 0:
        return number.fixed
    value = int.from_bytes(data[at + number.offset : at + number.offset + number.size], "little")
    if number.mask:
        value &= number.mask
    return ((value >> number.shift) * number.scale + number.plus) & _ALL


def word_in(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + WORD], "little")


class FormShape(Shape):
    """Its bytes are all that tells where its values are: without them nothing is shown."""

    __slots__ = ("name", "number", "shapes")
    size: int

    def __init__(self, shapes: Shapes, number: TypeId, size: int) -> None:
        super().__init__(size)
        self.shapes, self.number, self.name = shapes, number, shapes.name(number)

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        if view.level >= NESTING_MAX or not view.spend():
            return CUT
        view.level += 1
        value = self.shown(view, data, at, address, depth)
        view.level -= 1
        return value

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        raise NotImplementedError

    def invalid(self) -> str:
        """For an object that was never made, was destroyed already or is damaged."""
        return f"<invalid {self.name}>"

    def inner(self, view: View, number: TypeId, offset: int, data: bytes, at: int, address: int, depth: int) -> Json:
        """What lies in the object at `offset`."""
        shape = self.shapes.of(number)
        if shape.size is None:
            return shape.apart(view, address + offset, depth, None)
        if not 0 <= offset <= self.size - shape.size:
            return CUT
        return shape.show(view, data, at + offset, address + offset, depth)


def unread(missing: Missing, found: list[Json], count: int | None) -> list[Json]:
    """A list that ends where memory does. `count`: how many elements there are."""
    if missing.reason == "cut" and count is not None and count > len(found):
        return [*found, more(count - len(found))]
    return [*found, str(missing)]


def mapping(pairs: list[Json], key: Shape, rest: str | None) -> Json:
    """[key, value] lists as an object where that can be told apart. `rest`: what is not shown, in words."""
    if key.is_key and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        found = {pair[0] if isinstance(pair[0], str) else str(pair[0]): pair[1] for pair in pairs}
        if len(found) == len(pairs) and MORE not in found:
            if rest is not None:
                found[MORE] = rest.removeprefix(MORE).strip() or MORE
            return found
    return pairs if rest is None else [*pairs, rest]
