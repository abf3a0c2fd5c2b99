"""Structs, classes and unions as objects of their members; of a polymorphic class, those of its dynamic type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import Record, TypeId
from strobe.values.fields import Field, Layout, layout, unqualified
from strobe.values.memory import Missing
from strobe.values.scalars import EnumShape, IntegerShape
from strobe.values.view import BLOCK_MAX, CUT, MORE, NESTING_MAX, Json, Shape, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_WORD: Final = 8
_TOP: Final = -16  # from where a vtable pointer points: how far the whole object is from here (Itanium C++ ABI §2.5.2)
_BASES_MAX: Final = 1000


class RecordShape(Shape):
    __slots__ = ("_layout", "number", "record", "shapes")
    is_object = True

    def __init__(self, shapes: Shapes, number: TypeId, record: Record) -> None:
        super().__init__(record.size if record.size is not None and record.size >= 0 else None)
        self.shapes, self.number, self.record = shapes, number, record
        self._layout: Layout | None = None  # made when first shown: types refer to themselves

    @property
    def layout(self) -> Layout:
        if self._layout is None:
            self._layout = layout(self.shapes, self.record)
        return self._layout

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        if self.record.vtable is not None:
            return self._polymorphic(view, int.from_bytes(data[at + self.record.vtable : at + self.record.vtable + _WORD], "little"), address, depth, data, at)
        return self.members(view, {}, data, at, address, depth)

    def apart(self, view: View, address: int, depth: int, missing: Missing | None, /) -> Json:
        if missing is not None and missing.address == address and (self.size or 0) <= BLOCK_MAX:
            return str(missing)
        if self.record.vtable is not None:
            pointer = view.word(address + self.record.vtable)
            if not isinstance(pointer, Missing):
                return self._polymorphic(view, pointer, address, depth, None, 0)
        return self.members(view, {}, None, 0, address, depth)

    def members(self, view: View, found: dict[str, Json], data: bytes | None, at: int, address: int, depth: int) -> Json:
        """Added to `found`. `data` None: not all bytes are there."""
        if view.level >= NESTING_MAX:
            return CUT
        view.level += 1
        key = (address, self.number)
        is_first = key not in view.path
        view.path.add(key)
        own = self._layout or self.layout
        fields = own.fields
        if len(fields) > view.limits.members:
            fields = fields[: view.limits.members]
        if not view.spend(len(fields) + 1):
            found[MORE] = CUT
        elif data is None:
            self._piecewise(view, found, fields, address, depth)
        else:
            for field in fields:
                shape, offset = field.shape, field.offset
                if field.bits:
                    found[field.label] = of_bits(field, data[at + offset : at + offset + 17])
                elif shape.size is None:
                    found[field.label] = shape.apart(view, address + offset, depth, None)
                else:
                    found[field.label] = shape.show(view, data, at + offset, address + offset, depth)
        if own.virtual:
            self._virtual(view, found, own, address, depth)
        if len(own.fields) > len(fields):
            found[MORE] = f"{len(own.fields) - len(fields)} more"
        if is_first:
            view.path.discard(key)
        view.level -= 1
        return found

    def _piecewise(self, view: View, found: dict[str, Json], fields: list[Field], address: int, depth: int) -> None:
        """Member by member; those that are missing as a whole are told once."""
        for field in fields:
            start = address + field.offset
            size = (field.shift + field.bits + 7) // 8 if field.bits else field.shape.size
            if size is None:
                found[field.label] = field.shape.apart(view, start, depth, None)
                continue
            data = view.fetch(start, size)
            if isinstance(data, Missing):
                is_whole = data.address == start and size <= BLOCK_MAX
                if is_whole:
                    found.setdefault(MORE, str(data))
                else:
                    found[field.label] = str(data) if field.bits else field.shape.apart(view, start, depth, data)
            else:
                found[field.label] = of_bits(field, data) if field.bits else field.shape.show(view, data, 0, start, depth)

    def _virtual(self, view: View, found: dict[str, Json], own: Layout, address: int, depth: int) -> None:
        for base in own.virtual:
            shape = self.shapes.of(base.number)
            if not isinstance(shape, RecordShape):
                continue
            offset = self._virtual_offset(view, address + base.pointer, base.slot)
            inner: Json = str(offset)
            if not isinstance(offset, Missing):
                start = address + base.pointer + offset
                data = view.fetch(start, shape.size or 0)
                inner = str(data) if isinstance(data, Missing) else shape.members(view, {}, data, 0, start, depth)
            if not isinstance(inner, dict):
                if shape.layout.fields:
                    found[_short(shape)] = inner
                continue
            for name, value in inner.items():
                found[name if name not in found else f"{_short(shape)}::{name}"] = value

    def _virtual_offset(self, view: View, pointer_at: int, slot: int | None) -> int | Missing:
        pointer = view.word(pointer_at)
        if isinstance(pointer, Missing) or slot is None:
            return Missing("uncaptured", pointer_at)
        stored = view.word(pointer + slot)
        return stored if isinstance(stored, Missing) else _signed(stored)

    def _polymorphic(self, view: View, pointer: int, address: int, depth: int, data: bytes | None, at: int) -> Json:
        number = view.dynamic(pointer)
        shape = None if number is None else self.shapes.of(number)
        if not isinstance(shape, RecordShape):
            return self.members(view, {}, data, at, address, depth)
        named: dict[str, Json] = {"class": shape.record.name}
        if shape.number == self.number or shape.record.name == self.record.name:
            return self.members(view, named, data, at, address, depth)
        top = self._top(view, pointer, address, shape)
        whole = Missing("uncaptured", address) if top is None else view.fetch(top, shape.size or 0)
        if top is None or (isinstance(whole, Missing) and whole.address == top):
            return self.members(view, named, data, at, address, depth)
        return shape.members(view, named, None if isinstance(whole, Missing) else whole, 0, top, depth)

    def _top(self, view: View, pointer: int, address: int, whole: RecordShape) -> int | None:
        """Where the object begins that this one is a base of; None where neither vtable nor debug info tell."""
        offsets = base_offsets(self.shapes, whole.record, self.number)
        stored = view.word(pointer + _TOP)
        if not isinstance(stored, Missing):
            offset = -_signed(stored)
            return address - offset if 0 <= offset < (whole.size or 0) else None
        return address - offsets[0] if len(offsets) == 1 else None


def of_bits(field: Field, data: bytes) -> Json:
    shape = field.shape
    value = int.from_bytes(data, "little") >> field.shift & ((1 << field.bits) - 1)
    return shape.of_bits(value, field.bits) if isinstance(shape, IntegerShape | EnumShape) else CUT


def base_offsets(shapes: Shapes, record: Record, wanted: TypeId) -> list[int]:
    """Where in a record its bases of type `wanted` are, virtual ones left out."""
    found, waiting = [], [(record, 0)]
    for _ in range(_BASES_MAX):
        if not waiting:
            break
        whole, start = waiting.pop()
        for base in whole.bases:
            inner = shapes.node(base.type)
            if base.offset is None or not isinstance(inner, Record):
                continue
            if shapes.resolved(base.type) == wanted:
                found.append(start + base.offset)
            waiting.append((inner, start + base.offset))
    return found


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _short(shape: RecordShape) -> str:
    return unqualified(shape.record.name)
