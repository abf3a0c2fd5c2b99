"""C++'s pointers to members, by the name of the member (Itanium C++ ABI §2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import MemberPointer
from strobe.values.records import RecordShape
from strobe.values.view import Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


class MemberPointerShape(Shape):
    """To data: the owner's member at that offset. To a function: its name, or its place in the vtable."""

    __slots__ = ("node", "owner")
    size: int

    def __init__(self, shapes: Shapes, node: MemberPointer) -> None:
        super().__init__(node.size)
        self.node = node
        self.owner = "?" if node.owner is None else shapes.name(node.owner)

    def show(self, view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        first = int.from_bytes(data[at : at + min(8, self.size)], "little", signed=True)
        if self.node.to_function:
            return self._function(view, first & ((1 << 64) - 1))
        return None if first == -1 else self._member(view, first)

    def _member(self, view: View, offset: int) -> Json:
        shape = view.shapes.of(self.node.owner) if self.node.owner is not None else None
        fields = shape.layout.fields if isinstance(shape, RecordShape) else []
        named = [field for field in fields if field.offset == offset and not field.bits]
        target = view.shapes.resolved(self.node.target)
        field = next((one for one in named if view.shapes.resolved(one.number) == target), named[0] if named else None)
        return f"<member of {self.owner} at {offset}>" if field is None else f"&{self.owner}::{field.label}"

    def _function(self, view: View, pointer: int) -> Json:
        if pointer == 0:
            return None
        if pointer & 1:
            return f"<virtual function {pointer // 8} of {self.owner}>"
        name = view.symbols.function(pointer) if view.symbols else None
        return f"<function at {pointer:#x}>" if name is None else f"&{name}"
