"""Rust's `dyn Trait`: as the type that its vtable stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Erased
from strobe.values.inside import FormShape, word_in
from strobe.values.owners import counted
from strobe.values.pointers import followed
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_ONES: Final = (1 << 64) - 1  # a Weak that never had an owner


class TraitObjectShape(FormShape):
    """`&dyn Trait` and `Box<dyn Trait>` show the object alone; shared ones and raw pointers its address too."""

    __slots__ = ("form", "trait")

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Erased) -> None:
        super().__init__(shapes, number, size)
        self.form, self.trait = form, _trait(self.name)

    def shown(self, view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        pointer = word_in(data, at + self.form.offset)
        if pointer in (0, _ONES):
            return None
        counts = counted(view, pointer, self.form.counts)
        if counts and next(iter(counts.values())) == 0:
            return "<expired>"
        number = view.dynamic(word_in(data, at + self.form.code))
        if number is None:
            return f"<{self.trait} at {self._behind(pointer, 1):#x}>"
        return self._concrete(view, number, pointer, depth, counts)

    def _concrete(self, view: View, number: TypeId, pointer: int, depth: int, counts: dict[str, Json]) -> Json:
        name = self.shapes.name(number)
        place = self._behind(pointer, max(1, self.shapes.alignment(number)))
        found = followed(view, place, self.shapes.resolved(number), depth, name, extra={**counts, "class": name})
        if isinstance(found, dict):
            if not counts and not self.name.startswith("*"):
                del found["@"]
            if not self.shapes.bytes_of(number):
                found.pop("*", None)  # its type has but one value
        return found

    def _behind(self, pointer: int, alignment: int) -> int:
        return pointer + -(-self.form.skip // alignment) * alignment


def _trait(name: str) -> str:
    """`dyn Shape` of `alloc::boxed::Box<dyn Shape>`."""
    start = max(0, name.find("dyn "))
    return name[start:].removesuffix(">" * name[:start].count("<"))
