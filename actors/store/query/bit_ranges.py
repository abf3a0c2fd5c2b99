"""`lt`, `lte`, `gt`, `gte` of numbers as ranges of stored bits: what DuckDB compares fastest, and skips whole row groups by.

Bits are signed 64-bit integers: integers as they are (unsigned ones of 64 bits in two's complement), floats as the bits of a double.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from actors.store.scalars import is_signed
from strobe.model.probe import Value
from strobe.model.query import ValueFilter

_WHOLE: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)")
_LEAST: Final = -(1 << 63)
_HALF: Final = 1 << 63
_INFINITE: Final = 0x7FF << 52  # bits of +inf; those of -inf are _LEAST + _INFINITE
Ranges = list[tuple[int, int]]  # both ends included


def bounds_of(wanted: ValueFilter) -> Iterator[tuple[str, int | float | str]]:
    for operator, bound in (("<", wanted.lt), ("<=", wanted.lte), (">", wanted.gt), (">=", wanted.gte)):
        if bound is not None:
            yield operator, bound


def whole(wanted: Any) -> int | None:
    """An integer said as a number or as text (decimal or 0x…)."""
    if isinstance(wanted, bool):
        return None
    if isinstance(wanted, int):
        return wanted
    if isinstance(wanted, float):
        return int(wanted) if wanted.is_integer() else None
    if isinstance(wanted, str) and _WHOLE.fullmatch(wanted.strip()):
        text = wanted.strip().lower()
        return int(text, 16) if "x" in text else int(text)
    return None


def bit_ranges(value: Value, operator: str, bound: int | float | str) -> Ranges:
    """Empty: no value of this type is there, or `bound` is none that it can be compared with."""
    if value.size == 0 or value.scalar == "bool":
        return []
    number = _number(value, bound)
    if number is None or math.isnan(number):
        return []
    return _floats(value, operator, number) if value.scalar == "float" else _integers(value, operator, number)


def _number(value: Value, bound: int | float | str) -> int | float | None:
    if isinstance(bound, str):
        if value.scalar == "enum" and bound in (value.enumerators or {}):
            return (value.enumerators or {})[bound]
        if value.scalar == "char" and len(bound) == 1 and not bound.isdecimal():
            return ord(bound)
        return whole(bound) if value.scalar != "float" else _real(bound)
    return bound


def _real(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _integers(value: Value, operator: str, number: int | float) -> Ranges:
    bits = 8 * value.size
    signed = is_signed(value)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(number):
        number = most + 1 if number > 0 else least - 1
    match operator:
        case "<":
            most = min(most, math.ceil(number) - 1)
        case "<=":
            most = min(most, math.floor(number))
        case ">":
            least = max(least, math.floor(number) + 1)
        case _:
            least = max(least, math.ceil(number))
    # Unsigned ones from 2⁶³ on are stored as negative numbers.
    parts = [(least, min(most, _HALF - 1)), (max(least, _HALF) - 2 * _HALF, most - 2 * _HALF)]
    return [(low, high) for low, high in parts if low <= high and low >= _LEAST]


def _floats(value: Value, operator: str, number: int | float) -> Ranges:
    """Negative doubles are stored as _LEAST + the bits of their absolute value: the larger, the lower the value. NaN is in no range."""
    bits = _bits(value, number)
    if bits is None:
        return []
    strict = operator in ("<", ">")
    negative, positive = (_LEAST, _LEAST + _INFINITE), (0, _INFINITE)
    if number == 0:
        zeros = [] if strict else [(_LEAST, _LEAST), (0, 0)]
        return [(_LEAST + 1, negative[1]), *zeros] if operator in ("<", "<=") else [(1, _INFINITE), *zeros]
    if operator in ("<", "<="):
        return [negative, (0, bits - strict)] if bits > 0 else [(bits + strict, negative[1])]
    found = [(bits + strict, _INFINITE)] if bits > 0 else [(_LEAST, bits - strict), positive]
    return [(low, high) for low, high in found if low <= high]


def _bits(value: Value, number: int | float) -> int | None:
    """A float of 4 bytes is compared as it is shown: with the nearest float to the number."""
    try:
        exact = float(number)
        if value.size == struct.calcsize("<f") and math.isfinite(exact):
            exact = struct.unpack("<f", struct.pack("<f", exact))[0]
    except OverflowError:
        return None
    return int(struct.unpack("<q", struct.pack("<d", exact))[0])
