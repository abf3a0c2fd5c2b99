"""Which shape shows a type: made once for each type of a table, kept with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import (
    CUT,
    Array,
    Complex,
    Enum,
    Float,
    Function,
    Integer,
    MemberPointer,
    Node,
    Opaque,
    Pointer,
    Qualified,
    Record,
    Typedef,
    TypeId,
    Unspecified,
    Void,
)
from strobe.model.types import TypeTable
from strobe.values import floats, rust
from strobe.values.alignment import alignment
from strobe.values.arrays import COUNT_MAX, ArrayShape
from strobe.values.flexible import flexible
from strobe.values.formed import formed
from strobe.values.member_pointers import MemberPointerShape
from strobe.values.pointers import AddressShape, FunctionPointerShape, PointerShape
from strobe.values.records import RecordShape
from strobe.values.scalars import EnumShape, IntegerShape, NothingShape, RawShape
from strobe.values.texts import TextArrayShape, TextPointerShape
from strobe.values.view import Shape, Words

if TYPE_CHECKING:
    from strobe.values.registry import Formatters

_CHAIN_MAX: Final = 64
_WIDE: Final = {"wchar_t": 4, "char8_t": 1, "char16_t": 2, "char32_t": 4}  # C has them as typedefs of numbers
_SIZES: Final = range(1, 17)


class Shapes:
    """All lookups stand type numbers that are none: those are `CUT`."""

    def __init__(self, table: TypeTable, formatters: Formatters) -> None:
        self.table, self.formatters = table, formatters
        self._made: dict[TypeId, Shape] = {}
        self._resolved: dict[TypeId, TypeId] = {}

    def of(self, number: TypeId) -> Shape:
        shape = self._made.get(number)
        if shape is None:
            self._made[number] = Words("<cut>")  # of a type that needs itself to be made: only damaged ones do
            shape = self._made[number] = self._make(number)
        return shape

    def resolved(self, number: TypeId) -> TypeId:
        """The type behind typedefs and qualifiers."""
        if number not in self._resolved:
            self._resolved[number] = self.chain(number)[-1]
        return self._resolved[number]

    def checked(self, number: TypeId) -> TypeId:
        """CUT for what is no type's number."""
        return number if 0 <= number < len(self.table) else CUT

    def node(self, number: TypeId) -> Node:
        return self.table.nodes[self.resolved(number)]

    def name(self, number: TypeId) -> str:
        """As written: a typedef's own name."""
        return self.table.nodes[number].name if 0 <= number < len(self.table) else "…"

    def bytes_of(self, number: TypeId) -> int:
        """A type's size; 0 for what has none."""
        node = self.node(number)
        if isinstance(node, Opaque):
            return known[0] if (known := self.formatters.opaque(node.name)) else 0
        size = getattr(node, "size", None)
        return size if isinstance(size, int) and 0 < size < COUNT_MAX else 0

    def alignment(self, number: TypeId) -> int:
        return alignment(self.table, self.resolved(number), self.formatters.opaque)

    def unit(self, number: TypeId) -> int | None:
        """Bytes of a character, for types that are characters of texts."""
        for one in self.chain(number):
            node = self.table.nodes[one]
            if isinstance(node, Typedef) and node.name.removeprefix("std::") in _WIDE:
                unit = _WIDE[node.name.removeprefix("std::")]
                return unit if self.bytes_of(one) == unit else None
        is_character = isinstance(node, Integer) and node.encoding in ("char", "utf") and node.language != "rust"
        return node.size if isinstance(node, Integer) and is_character and node.size in (1, 2, 4) else None

    def flexible(self, node: Array, siblings: list[tuple[str, TypeId, int]]) -> Shape:
        """An array at a record's end; `siblings`: (name, type, how far from the array's start) of the record's other members."""
        return flexible(self, node, siblings)

    def chain(self, number: TypeId) -> list[TypeId]:
        """The type, and what is behind its typedefs and qualifiers, to the end."""
        chain = []
        for _ in range(_CHAIN_MAX):
            if not 0 <= number < len(self.table):
                break
            chain.append(number)
            node = self.table.nodes[number]
            if not isinstance(node, Typedef | Qualified):
                return chain
            number = node.target
        return [*chain, CUT]

    def _make(self, number: TypeId) -> Shape:
        form = self.formatters.form(self.table, number) if 0 <= number < len(self.table) else None
        if form is not None:
            return formed(self, self.resolved(number), form)
        node = self.node(number)
        if isinstance(node, Integer):
            return self._integer(number, node)
        if isinstance(node, Record):
            return self._record(self.resolved(number), node)
        if isinstance(node, Pointer):
            return self._pointer(node)
        if isinstance(node, Array):
            return self._array(node)
        return self._other(node)

    def _integer(self, number: TypeId, node: Integer) -> Shape:
        if node.size not in _SIZES:
            return Words("<cut>")
        if node.encoding == "number" and self.unit(number) is not None:
            return IntegerShape(Integer(node.name, node.language, node.size, node.signed, "utf"))
        return IntegerShape(node)

    def _record(self, number: TypeId, node: Record) -> Shape:
        if node.language == "rust":
            shape = rust.shape(self, number, node)
            if shape is not None:
                return shape
        return RecordShape(self, number, node)

    def _pointer(self, node: Pointer) -> Shape:
        if node.size not in _SIZES:
            return Words("<cut>")
        target = self.node(node.target)
        if isinstance(target, Function):
            return FunctionPointerShape(node.size)
        unit = self.unit(node.target)
        if unit is not None and node.form == "pointer":
            return TextPointerShape(unit)
        is_unknown = isinstance(target, Void | Opaque) or self.resolved(node.target) == CUT or (isinstance(target, Unspecified) and not target.size)
        is_alone = node.form != "pointer" or rust.is_owned_or_borrowed(node)
        if is_unknown and (self.of(node.target).size is None or not is_alone):
            return AddressShape(node.size, self.name(node.target) if isinstance(target, Opaque) else None)
        return PointerShape(self, node.size, node.target, self.name(node.target), alone=is_alone)

    def _array(self, node: Array) -> Shape:
        counts = tuple(count for count in node.counts if count is not None and 0 <= count < COUNT_MAX)
        size, elements = self.bytes_of(node.element), math.prod(map(int, counts))
        if len(counts) != len(node.counts) or not counts or (size == 0 and elements and self.of(node.element).size != 0) or size * elements > COUNT_MAX:
            return Words(f"<{node.name}>")
        unit = None if node.vector else self.unit(node.element)
        if unit is not None and len(counts) == 1:
            return TextArrayShape(counts[0], unit)
        return ArrayShape(self, node.element, counts, unit)

    def _other(self, node: Node) -> Shape:
        if isinstance(node, Enum):
            size = node.size if node.size is not None else self.bytes_of(node.underlying) if node.underlying is not None else 4
            return EnumShape(node, size) if size in _SIZES else Words("<cut>")
        if isinstance(node, Float) and node.size in _SIZES:
            return floats.FloatShape(node.size, node.format)
        if isinstance(node, Complex) and node.size // 2 in _SIZES:
            return floats.ComplexShape(node.size, 0, node.size // 2, floats.FloatShape(node.size // 2, node.format))
        if isinstance(node, MemberPointer) and node.size in _SIZES:
            return MemberPointerShape(self, node)
        if isinstance(node, Unspecified):
            is_one = not node.size or "nullptr" in node.name
            return NothingShape(node.size or 0) if is_one else RawShape(node.size) if node.size in _SIZES else Words(f"<{node.name}>")
        if isinstance(node, Void):
            return Words("<void>")
        return Words(f"<{node.name}>" if isinstance(node, Opaque | Function) else "<cut>")
