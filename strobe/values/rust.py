"""Shapes of Rust's records: enums as the variant that their bytes mean, structs and closures as their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.type_nodes import Pointer, Record, TypeId, VariantPart
from strobe.values import rust_types
from strobe.values.memory import Missing
from strobe.values.records import RecordShape
from strobe.values.rust_types import form
from strobe.values.view import CUT, NESTING_MAX, Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

__all__ = ["VariantsShape", "form", "is_owned_or_borrowed", "shape"]


def shape(shapes: Shapes, number: TypeId, record: Record) -> Shape | None:
    """Of a record that has no form. None: shown as any other language's."""
    if record.form == "union":
        return None
    if record.variant_part is not None:
        return VariantsShape(shapes, record, record.variant_part)
    return RecordShape(shapes, number, rust_types.plain(shapes.table, record))


def is_owned_or_borrowed(pointer: Pointer) -> bool:
    """`&T`, `&mut T` and `Box<T>`: never null, and used like the value itself. Others are `*const T` and `*mut T`."""
    return pointer.language == "rust" and pointer.name.startswith(("&", "alloc::boxed::Box<"))


class VariantsShape(Shape):
    """`Idle` by its name, others as an object of the name and what is in it. An Option is null or its value, a Cow its value."""

    __slots__ = ("bare", "cases", "record", "shapes")

    def __init__(self, shapes: Shapes, record: Record, part: VariantPart) -> None:
        super().__init__(record.size)
        self.shapes, self.record = shapes, record
        self.cases = rust_types.cases_of(shapes.table, part)
        self.bare = record.name.startswith((rust_types.OPTION, *rust_types.TRANSPARENT))

    @property
    def is_object(self) -> bool:  # type: ignore[override]
        """Of one that is bare: whether what is in it is."""
        return not self.bare or any(one.payload is not None and self.shapes.of(one.payload.type).is_object for one in self.cases.cases)

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        if view.level >= NESTING_MAX:  # only damaged types are inside of themselves
            return CUT
        view.level += 1
        shown = self._shown(view, data, at, address, depth)
        view.level -= 1
        return shown

    def _shown(self, view: View, data: bytes, at: int, address: int, depth: int) -> Json:
        start = at + self.cases.offset
        case = self._case(int.from_bytes(data[start : start + self.cases.size], "little"))
        if isinstance(case, str):
            return case
        payload = self._payload(case)
        if payload is None:
            return self._said(case, None)
        shape, offset = payload
        fits = shape.size is not None and offset + shape.size <= (self.size or 0)
        return self._said(case, (shape.show(view, data, at + offset, address + offset, depth) if fits else shape.apart(view, address + offset, depth, None),))

    def apart(self, view: View, address: int, depth: int, missing: Missing | None, /) -> Json:
        if view.level >= NESTING_MAX:
            return CUT
        view.level += 1
        shown = self._apart(view, address, depth, missing)
        view.level -= 1
        return shown

    def _apart(self, view: View, address: int, depth: int, missing: Missing | None) -> Json:
        value = view.word(address + self.cases.offset, self.cases.size) if self.cases.size else 0
        if isinstance(value, Missing):
            return str(missing or value)
        case = self._case(value)
        if isinstance(case, str):
            return case
        payload = self._payload(case)
        if payload is None:
            return self._said(case, None)
        shape, offset = payload
        data = view.fetch(address + offset, shape.size or 0)
        inner = shape.apart(view, address + offset, depth, data) if isinstance(data, Missing) else shape.show(view, data, 0, address + offset, depth)
        return self._said(case, (inner,))

    def _case(self, value: int) -> rust_types.Case | str:
        found = self.cases.of(value)
        return found or (f"<no variant {value}>" if self.cases.size else "<no value>")

    def _payload(self, case: rust_types.Case) -> tuple[Shape, int] | None:
        """What a variant with fields holds, and where."""
        if case.payload is None:
            return None
        record = self.shapes.node(case.payload.type)
        if isinstance(record, Record) and not rust_types.fields(self.shapes.table, record):
            return None
        return self.shapes.of(case.payload.type), case.payload.offset

    def _said(self, case: rust_types.Case, payload: tuple[Json] | None) -> Json:
        if not self.bare:
            return case.name if payload is None else {case.name: payload[0]}
        if payload is None:
            return None if case.name == "None" else case.name
        # Some(None) is not None
        return {case.name: None} if payload[0] is None else payload[0]
