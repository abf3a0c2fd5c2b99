"""How captured values become 64 bits in a column: one shape per kind and size of value, and the vectorised way from payload to bits."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.layout import SLOT_BYTES
from strobe.model.probe import Plan, Value

Ints = NDArray[np.int64]


class Shape(enum.IntEnum):
    NONE = 0  # nothing captured
    RAW64 = 1  # eight bytes as they are: i64, u64, f64, pointers
    I8 = 2
    I16 = 3
    I32 = 4
    U8 = 5
    U16 = 6
    U32 = 7
    F32 = 8
    TEXT = 9  # a string descriptor in the payload


_SIGNED: Final = {1: Shape.I8, 2: Shape.I16, 4: Shape.I32, 8: Shape.RAW64}
_UNSIGNED: Final = {1: Shape.U8, 2: Shape.U16, 4: Shape.U32, 8: Shape.RAW64}
_FLOAT: Final = {4: Shape.F32, 8: Shape.RAW64}
DTYPES: Final[dict[Shape, str]] = {
    Shape.RAW64: "<i8", Shape.I8: "i1", Shape.I16: "<i2", Shape.I32: "<i4", Shape.U8: "u1", Shape.U16: "<u2", Shape.U32: "<u4", Shape.F32: "<f4",
}  # fmt: skip


RAW_RESULT: Final = Value(name="result", type_name="raw", scalar="pointer", size=8, source="word")


def result_of(plan: Plan) -> Value | None:
    """What an exit's value is: by type where that is known, else rax as it was; None for a function that returns nothing."""
    return plan.result if plan.typed or plan.result is not None else RAW_RESULT


def is_signed(value: Value) -> bool:
    """C's plain char is signed on x86_64; an enum is signed when it has a negative name."""
    if value.scalar == "enum":
        return any(number < 0 for number in (value.enumerators or {}).values())
    return value.scalar in ("int", "char")


def shape_of(value: Value | None) -> Shape:
    if value is None or value.source == "none":
        return Shape.NONE
    if value.source == "word" and value.scalar == "opaque" and value.type is not None:
        return Shape.RAW64  # a small structure, in the register that returned it
    if value.scalar == "cstring":
        return Shape.TEXT
    table = _FLOAT if value.scalar == "float" else _SIGNED if is_signed(value) else _UNSIGNED
    return table.get(value.size, Shape.NONE)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value lies in an entry, and in what shape."""

    shape: Shape
    in_word: bool
    offset: int

    @classmethod
    def of(cls, value: Value | None) -> Source:
        shape = shape_of(value)
        if value is None or shape is Shape.NONE:
            return NOTHING
        return cls(shape, value.source == "word", value.offset)

    @property
    def slots_needed(self) -> int:
        """How many slots of payload it reaches into."""
        if self.in_word or self.shape is Shape.NONE:
            return 0
        size = 8 if self.shape is Shape.TEXT else np.dtype(DTYPES[self.shape]).itemsize
        return -(-(self.offset + size) // SLOT_BYTES)


NOTHING: Final = Source(Shape.NONE, False, 0)


def to_bits(values: NDArray[Any], shape: Shape) -> Ints:
    """Numbers of `shape` as the bits that are stored."""
    if shape is Shape.F32:
        return values.astype(np.float64).view(np.int64)
    if shape is Shape.RAW64:
        return values.view(np.int64)
    return values.astype(np.int64)


def word_bits(words: NDArray[np.uint64], shape: Shape) -> Ints:
    """The low bytes of 64-bit words, read as `shape`."""
    if shape is Shape.RAW64:
        return words.view(np.int64)
    dtype = np.dtype(DTYPES[shape])
    low = words.astype(f"<u{dtype.itemsize}")
    return to_bits(low.view(dtype), shape)
