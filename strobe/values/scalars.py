"""Numbers, characters and enumerators."""

from __future__ import annotations

import struct
from typing import Final

from strobe.model.type_nodes import Enum, Integer
from strobe.values.view import Json, Shape, View

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_JSON_INTEGERS: Final = range(-(1 << 63), 1 << 64)  # what every JSON reader here takes as a number


def number(value: int) -> Json:
    return value if value in _JSON_INTEGERS else str(value)


def character(value: int, size: int) -> Json:
    """`value` unsigned. A text of one character where it can be printed; None where not."""
    if size == 1 and value > 0x7E:
        return None  # a part of a character, in UTF-8
    return chr(value) if value < 0x110000 and not 0xD800 <= value < 0xE000 and chr(value).isprintable() else None


class IntegerShape(Shape):
    """`kind`: as Integer.encoding."""

    __slots__ = ("bits", "is_bool", "is_character", "signed", "unpack")
    size: int

    def __init__(self, node: Integer) -> None:
        super().__init__(node.size)
        self.bits = 8 * node.size
        self.signed = node.signed
        self.is_bool = node.encoding == "bool"
        self.is_character = node.encoding in ("char", "utf") and node.size <= 4
        code = _CODES.get(node.size)
        self.unpack = struct.Struct("<" + (code.lower() if node.signed else code)).unpack_from if code else None

    @property
    def is_key(self) -> bool:  # type: ignore[override]
        return not self.is_bool

    @property
    def plain(self) -> bool:
        """Whether every value is shown as the number that it is."""
        return self.unpack is not None and not self.is_bool and not self.is_character

    def show(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        value = self.unpack(data, at)[0] if self.unpack else int.from_bytes(data[at : at + self.size], "little", signed=self.signed)
        if self.is_bool:
            return bool(value) if value in (0, 1) else value
        if self.is_character:
            text = character(value & ((1 << self.bits) - 1), self.size)
            return value if text is None else text
        return value if self.unpack is not None else number(value)

    def of_bits(self, value: int, bits: int) -> Json:
        """A bit field's `bits` bits."""
        if self.is_bool:
            return bool(value) if value < 2 else value
        return number(value - (1 << bits) if self.signed and value >> (bits - 1) else value)


class EnumShape(Shape):
    __slots__ = ("names", "signed", "singles")
    is_key = True
    size: int

    def __init__(self, node: Enum, size: int) -> None:
        super().__init__(size)
        self.signed = node.signed
        self.names: dict[int, str] = {}
        for name, value in node.enumerators:
            self.names.setdefault(value, name)
        self.singles = sorted(value for value in self.names if value > 0) if node.flags else None

    def show(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        return self.said(int.from_bytes(data[at : at + self.size], "little", signed=self.signed))

    def of_bits(self, value: int, bits: int) -> Json:
        return self.said(value - (1 << bits) if self.signed and value >> (bits - 1) else value)

    def said(self, value: int) -> Json:
        name = self.names.get(value)
        if name is not None:
            return name
        if self.singles is None or value <= 0:
            return number(value)
        return self._flags(value)

    def _flags(self, value: int) -> Json:
        """Names of the single bits, lowest first; what has no name in hex."""
        assert self.singles is not None
        names, rest = [], value
        for single in self.singles:
            if single & (single - 1) == 0 and rest & single:
                names.append(self.names[single])
                rest &= ~single
        if not names:
            return number(value)
        return "|".join([*names, *([hex(rest)] if rest else [])])


class NothingShape(Shape):
    """nullptr_t, and Rust's `()`: types of one value."""

    __slots__ = ()

    def show(self, _view: View, _data: bytes, _at: int, _address: int, _depth: int, /) -> Json:
        return None


class RawShape(Shape):
    """Numbers of a kind that is not known here: their bytes, in hex, most significant first."""

    __slots__ = ()
    size: int

    def show(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        return "0x" + data[at : at + self.size][::-1].hex()
