"""Bytes of basic types as the expression language's scalars, and the basic types that need no debug info."""

from __future__ import annotations

import math
import struct
from typing import Final

from strobe.expression import Scalar
from strobe.model.type_nodes import Enum, Float, FloatFormat, Integer, Node, Pointer
from strobe.values.memory import Memory, Missing

_STRUCTS: Final[dict[FloatFormat, str]] = {"half": "<e", "single": "<f", "double": "<d"}
TEXT_BYTES_MAX: Final = 1 << 16
_PAGE: Final = 4096
ENCODINGS: Final = {1: "utf-8", 2: "utf-16-le", 4: "utf-32-le"}


def _number(name: str, size: int, signed: bool) -> tuple[str, Node]:
    return name, Integer(name, "", size, signed)


# What `type` may name without debug info: debug_memory's own names (SPEC §4), and C's on x86-64 (System V psABI, figure 3.1).
BASIC: Final[dict[str, Node]] = dict([
    *(_number(f"{'i' if signed else 'u'}{8 * size}", size, signed) for size in (1, 2, 4, 8, 16) for signed in (True, False)),
    ("f32", Float("f32", "", 4, "single")), ("f64", Float("f64", "", 8, "double")), ("bool", Integer("bool", "", 1, False, "bool")),
    ("char", Integer("char", "c", 1, True, "char")),
    ("signed char", Integer("signed char", "c", 1, True, "byte")), ("unsigned char", Integer("unsigned char", "c", 1, False, "byte")),
    *(_number(name, size, True) for name, size in (("short", 2), ("int", 4), ("long", 8), ("long long", 8), ("ssize_t", 8), ("intptr_t", 8))),
    *(_number(f"unsigned {name}", size, False) for name, size in (("short", 2), ("int", 4), ("long", 8), ("long long", 8))),
    *(_number(name, 8, False) for name in ("size_t", "uintptr_t", "usize")), _number("isize", 8, True), _number("unsigned", 4, False),
    *(_number(f"{'' if signed else 'u'}int{bits}_t", bits // 8, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    ("float", Float("float", "c", 4, "single")), ("double", Float("double", "c", 8, "double")), ("long double", Float("long double", "c", 16, "x87")),
    ("pointer", Pointer("void *", "c", 8, 0)),
])  # fmt: skip


def scalar_of(node: Node, raw: bytes) -> Scalar | None:
    """Of a number, a truth, a character or an enum; None for anything else."""
    if isinstance(node, Integer):
        number = int.from_bytes(raw, "little", signed=node.signed)
        if node.encoding == "bool":
            return Scalar(number != 0)
        return Scalar(number, unsigned=not node.signed, bits=8 * len(raw))
    if isinstance(node, Enum):
        return Scalar(int.from_bytes(raw, "little", signed=node.signed), unsigned=not node.signed, bits=8 * len(raw))
    if isinstance(node, Float):
        value = float_of(node.format, raw)
        return None if value is None else Scalar(value)
    return None


def float_of(kind: FloatFormat, raw: bytes) -> float | None:
    """None: a format that is not read (decimal). What a double cannot hold is rounded, or infinite."""
    form = _STRUCTS.get(kind)
    if form is not None:
        number: float = struct.unpack(form, raw)[0] if len(raw) == struct.calcsize(form) else math.nan
        return number
    if kind == "bfloat":
        return float(struct.unpack("<f", b"\0\0" + raw[:2])[0])
    if kind == "x87":  # Intel SDM volume 1, §4.2.2: the integer bit is explicit
        return _scaled(int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:10], "little"), 63, explicit=True)
    if kind == "quad":
        bits = int.from_bytes(raw[:16], "little")
        return _scaled(bits & ((1 << 112) - 1), bits >> 112, 112, explicit=False)
    return None


def _scaled(fraction: int, head: int, digits: int, *, explicit: bool) -> float:
    """`head`: sign and a 15-bit exponent."""
    sign = -1.0 if head & 0x8000 else 1.0
    exponent = head & 0x7FFF
    if exponent == 0x7FFF:
        below = fraction & ((1 << digits) - 1)
        return math.nan if below else sign * math.inf
    if not explicit and exponent:
        fraction |= 1 << digits
    try:
        return sign * math.ldexp(fraction, max(exponent, 1) - 16383 - digits)
    except OverflowError:
        return sign * math.inf


def text_at(memory: Memory, address: int, unit: int) -> str | Missing:
    """The text up to its 0, or TEXT_BYTES_MAX of it. No page is read that the text does not reach."""
    found = bytearray()
    while len(found) < TEXT_BYTES_MAX:
        at = address + len(found)
        size = max(unit, min(_PAGE - at % _PAGE, TEXT_BYTES_MAX - len(found)) // unit * unit)
        piece = memory.read(at, size)
        if isinstance(piece, Missing):  # an image holds what was copied, not whole pages
            piece = memory.read(at, unit)
        if isinstance(piece, Missing):
            return piece
        found += piece
        end = text_end(found, unit)
        if end is not None:
            return decoded(bytes(found[:end]), unit)
    return decoded(bytes(found), unit)


def text_end(data: bytes | bytearray, unit: int) -> int | None:
    """Where the 0 is that ends a text."""
    if unit == 1:
        end = data.find(0)
        return None if end < 0 else end
    return next((at for at in range(0, len(data) - unit + 1, unit) if not any(data[at : at + unit])), None)


def decoded(data: bytes, unit: int) -> str:
    """What is no character becomes surrogate escapes (bytes) or U+FFFD."""
    return data.decode(ENCODINGS[unit], "surrogateescape" if unit == 1 else "replace")
