"""Pointers and references: what they point to, as far as `depth` allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import TypeId
from strobe.values.memory import Missing
from strobe.values.view import Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


class AddressShape(Shape):
    """`void *`, and pointers to what is not known. `name`: of a type that is only declared, or that was left out because it lies beyond depth."""

    __slots__ = ("name",)
    size: int

    def __init__(self, size: int, name: str | None = None) -> None:
        super().__init__(size)
        self.name = name

    def show(self, _view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        value = int.from_bytes(data[at : at + self.size], "little")
        if value == 0:
            return None
        return f"<{self.name} at {value:#x}>" if depth <= 0 and self.name is not None else f"{value:#x}"


class FunctionPointerShape(Shape):
    __slots__ = ()
    size: int

    def show(self, view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        return view.function(int.from_bytes(data[at : at + self.size], "little"))


class PointerShape(Shape):
    """`alone`: a reference, which is shown as what it refers to."""

    __slots__ = ("alone", "name", "shapes", "target")
    size: int

    def __init__(self, shapes: Shapes, size: int, target: TypeId, name: str, *, alone: bool) -> None:
        super().__init__(size)
        self.shapes, self.target, self.name, self.alone = shapes, shapes.resolved(target), name, alone

    def show(self, view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        return followed(view, int.from_bytes(data[at : at + self.size], "little"), self.target, depth, self.name, alone=self.alone)


def followed(view: View, address: int, target: TypeId, depth: int, name: str, *, alone: bool = False, extra: dict[str, Json] | None = None) -> Json:
    """What a pointer to an object of type `target`, called `name`, is shown as. `extra`: goes after "@"."""
    if address == 0:
        return None
    if depth <= 0:
        return f"<{name} at {address:#x}>"
    if (address, target) in view.path:
        return f"<circular ref to {address:#x}>"
    shape = view.shapes.of(target)
    if shape.size is None:
        value = shape.apart(view, address, depth - 1, None)
    else:
        data = view.fetch(address, shape.size)
        if isinstance(data, Missing):
            if data.reason == "unreadable" and data.address == address:
                return str(data)
            value = shape.apart(view, address, depth - 1, data)
        else:
            value = shape.show(view, data, 0, address, depth - 1)
    if alone:
        return value
    head = {"@": f"{address:#x}", **(extra or {})}
    if shape.is_object and isinstance(value, dict):
        head.update(value)
        return head
    return {**head, "*": value}
