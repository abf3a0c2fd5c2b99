"""Values around others: what is shown is what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Choice, Either, Inner, Maybe, Parts
from strobe.values.inside import FormShape, number_in
from strobe.values.memory import Missing
from strobe.values.view import CUT, NESTING_MAX, Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes


class InnerShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Inner) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    @property
    def is_object(self) -> bool:  # type: ignore[override]
        return self.form.type != self.number and self.shapes.of(self.form.type).is_object

    @property
    def is_key(self) -> bool:  # type: ignore[override]
        return self.form.type != self.number and self.shapes.of(self.form.type).is_key

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        return self.inner(view, self.form.type, self.form.offset, data, at, address, depth)

    def apart(self, view: View, address: int, depth: int, _missing: Missing | None, /) -> Json:
        if view.level >= NESTING_MAX:
            return CUT
        view.level += 1
        value = view.place(self.form.type, address + self.form.offset, depth)
        view.level -= 1
        return value


class PartsShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Parts) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        parts = self.form.parts[: view.limits.members]
        return [self.inner(view, number, offset, data, at, address, depth) for number, offset in parts] if view.spend(len(parts)) else CUT

    def apart(self, view: View, address: int, depth: int, missing: Missing | None, /) -> Json:
        if view.level >= NESTING_MAX or not view.spend(len(self.form.parts)):
            return CUT
        if missing is not None and missing.address == address:
            return str(missing)
        view.level += 1
        found = [view.place(number, address + offset, depth) for number, offset in self.form.parts[: view.limits.members]]
        view.level -= 1
        return found


class MaybeShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Maybe) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        if not number_in(self.form.there, data, at):
            return None
        value = self.inner(view, self.form.type, self.form.offset, data, at, address, depth)
        return {"Some": None} if value is None else value


class ChoiceShape(FormShape):
    __slots__ = ("form",)
    is_object = False

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Choice) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        index = number_in(self.form.index, data, at)
        if index == self.form.none:
            return "<valueless>"
        if index >= len(self.form.types):
            return self.invalid()
        number = self.form.types[index]
        return {self.shapes.name(number): self.inner(view, number, self.form.offset, data, at, address, depth)}


class EitherShape(Shape):
    __slots__ = ("form", "otherwise", "then")
    size: int

    def __init__(self, size: int, form: Either, then: Shape, otherwise: Shape) -> None:
        super().__init__(size)
        self.form, self.then, self.otherwise = form, then, otherwise

    @property
    def is_key(self) -> bool:  # type: ignore[override]
        return self.then.is_key and self.otherwise.is_key

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        chosen = self.then if self.form.low <= number_in(self.form.test, data, at) <= self.form.high else self.otherwise
        return chosen.show(view, data, at, address, depth)
