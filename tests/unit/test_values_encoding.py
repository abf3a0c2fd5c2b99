"""What a caller writes, as bytes: read back by the values themselves, and refused with the reason where it can't be right."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.expression import Scalar, Unavailable
from strobe.model.type_nodes import Array, Complex, Enum, Float, Integer, Node, Pointer, Record, TypeId
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values.encoding import encoded, encoded_bytes
from strobe.values.memory import Missing
from strobe.values.registry import Formatters
from strobe.values.typed import TypedValue
from strobe.values.typed_world import World

INT, U8, BOOL, CHAR, FLOAT, DOUBLE, LONG_DOUBLE, HALF, COLOR, ACCESS, POINTER, LABEL, GRID, RECORD, I64, COMPLEX, CHAR32, QUAD, WIDE = range(2, 21)
NODES: tuple[Node, ...] = (
    *FIRST_NODES, Integer("int", "c", 4, True), Integer("u8", "", 1, False), Integer("bool", "c++", 1, False, "bool"), Integer("char", "c", 1, True, "char"),
    Float("float", "c", 4, "single"), Float("double", "c", 8, "double"), Float("long double", "c", 16, "x87"), Float("_Float16", "c", 2, "half"),
    Enum("Color", "c", 4, True, INT, (("Red", 0), ("Green", 7), ("Dark", -2))), Enum("Access", "c", 1, False, U8, (("Read", 1), ("Write", 2), ("Run", 4)),
    flags=True),
    Pointer("int *", "c", 8, INT), Array("char[6]", "c", 6, CHAR, (6,)), Array("int[2]", "c", 8, INT, (2,)), Record("Order", "c", "struct", 4, ()),
    Integer("long", "c", 8, True), Complex("complex", "c", 16, "double"), Integer("char32_t", "c++", 4, False, "utf"), Float("__float128", "c", 16, "quad"),
    Array("char32_t[4]", "c++", 16, CHAR32, (4,)),
)  # fmt: skip


class Nothing:
    def read(self, address: int, _size: int) -> bytes | Missing:
        return Missing("unreadable", address)


WORLD = World(TypeTable(NODES), Nothing(), Formatters.built_in())


def back(number: TypeId, given_: Any, bits: tuple[int, int] | None = None) -> object:
    """The value that the bytes mean."""
    data = encoded(WORLD, number, given_, bits)
    assert isinstance(data, bytes), data
    assert len(data) == WORLD.table.size(number)
    value = TypedValue(WORLD, number, None, data)
    text = value.text()
    scalar = value.scalar()
    if isinstance(text, str):
        return text
    assert isinstance(scalar, Scalar)
    return scalar.value


@pytest.mark.parametrize(("number", "value", "meant"), [
    (INT, 5, 5), (INT, "-7", -7), (INT, "0x7fffffff", 0x7FFFFFFF), (INT, 12.0, 12), (INT, " 0b101 ", 5), (INT, "010", 10), (U8, 255, 255),
    (I64, -(1 << 63), -(1 << 63)),
    (BOOL, True, True), (BOOL, 0, False), (BOOL, "true", True), (CHAR, "q", ord("q")), (CHAR, "'q'", ord("q")), (CHAR, 65, 65), (CHAR, "7", ord("7")),
    (CHAR32, "ß", ord("ß")),
    (FLOAT, 2.5, 2.5), (DOUBLE, "1e300", 1e300), (DOUBLE, "-inf", -math.inf), (FLOAT, 3, 3.0), (LONG_DOUBLE, 0.1, 0.1), (LONG_DOUBLE, -0.0, -0.0),
    (LONG_DOUBLE, "inf", math.inf),
    (LONG_DOUBLE, 5e-324, 5e-324), (HALF, 0.5, 0.5), (COLOR, "Green", 7), (COLOR, "Color::Dark", -2), (COLOR, 3, 3), (ACCESS, "Read|Run", 5),
    (ACCESS, "Write | 0x8", 10), (POINTER, None, 0),
    (POINTER, "0x7ffd00000010", 0x7FFD00000010), (POINTER, 16, 16), (LABEL, "hello", "hello"), (LABEL, "", ""), (WIDE, "ßä", "ßä"),
])  # fmt: skip
def test_written_and_read_back(number: TypeId, value: Any, meant: object) -> None:
    assert back(number, value) == meant


@pytest.mark.parametrize(("number", "value", "reason"), [
    (INT, 1 << 31, "out of range: `int` holds -2147483648 to 2147483647"), (U8, -1, "holds 0 to 255"), (INT, 1.5, "whole number"), (INT, "x",
    "whole number"), (INT, True, "whole number"),
    (INT, None, "whole number"), (INT, [1], "whole number"), (BOOL, 2, "true or false"), (BOOL, "yes", "true or false"), (CHAR, "ab",
    "a number or a character"), (CHAR, "ß", "a character"),
    (FLOAT, 1e39, "out of range"), (HALF, 1e6, "out of range"), (DOUBLE, "abc", "takes a number"), (DOUBLE, True, "takes a number"), (COLOR, "Pink",
    "it has Red, Green, Dark"),
    (COLOR, "Red|Green", "are not flags"), (ACCESS, "Read|Fly", "is no value"), (ACCESS, 256, "out of range"), (POINTER, "here", "takes an address"),
    (POINTER, -1, "no address"),
    (LABEL, "hello!", "room for 5"), (LABEL, 5, "takes a text"), (GRID, [1, 2], "element by element"), (RECORD, {}, "not written as a whole"),
    (COMPLEX, 1, "type bytes"), (QUAD, 1.0, "type bytes"),
])  # fmt: skip
def test_refused(number: TypeId, value: Any, reason: str) -> None:
    found = encoded(WORLD, number, value)
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def test_bitfields_hold_what_their_bits_hold() -> None:
    assert back(INT, -8, (4, 6)) == -8
    assert back(U8, 31, (5, 1)) == 31
    for number, value, bits in ((INT, 8, (4, 6)), (INT, -9, (4, 6)), (U8, 32, (5, 1)), (COLOR, 7, (3, 0))):
        found = encoded(WORLD, number, value, bits)
        assert isinstance(found, Unavailable)
        assert f"of {bits[0]} bits holds" in found.reason


def test_nan_stays_nan() -> None:
    for number in (FLOAT, DOUBLE, LONG_DOUBLE, HALF):
        assert math.isnan(float(str(back(number, "nan"))))


@given(st.floats(allow_nan=False))
def test_every_double_survives_as_a_long_double(value: float) -> None:
    assert back(LONG_DOUBLE, value) == value
    assert math.copysign(1, float(str(back(LONG_DOUBLE, value)))) == math.copysign(1, value)


@given(st.integers())
def test_integers_are_written_exactly_or_not_at_all(value: int) -> None:
    for number, low, high in ((INT, -(1 << 31), (1 << 31) - 1), (U8, 0, 255), (I64, -(1 << 63), (1 << 63) - 1)):
        if low <= value <= high:
            assert back(number, value) == value
        else:
            assert isinstance(encoded(WORLD, number, value), Unavailable)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_nothing_that_json_can_say_raises(value: Any) -> None:
    for number in range(len(NODES)):
        found = encoded(WORLD, number, value)
        assert isinstance(found, Unavailable) or len(found) == WORLD.table.size(number)
    found = encoded_bytes(value, None)
    assert isinstance(found, Unavailable | bytes)


@pytest.mark.parametrize(("value", "data"), [("0a0b", b"\n\x0b"), ("0x0a0b", b"\n\x0b"), ("0a 0b", b"\n\x0b"), ("base64:CgsM", b"\n\x0b\x0c")])
def test_bytes(value: str, data: bytes) -> None:
    assert encoded_bytes(value, None) == data
    assert encoded_bytes(value, len(data)) == data
    assert isinstance(encoded_bytes(value, len(data) + 1), Unavailable)


@pytest.mark.parametrize("value", ["", "0", "xy", "base64:!", "base64:", 5, None, "0x"])
def test_no_bytes(value: Any) -> None:
    assert isinstance(encoded_bytes(value, None), Unavailable)
