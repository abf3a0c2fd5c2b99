"""Typed comparisons of captured values: what `equals`, `contains` and `isNull` mean for a parameter of a given type, as SQL over its bits."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any, Final

from actors.store.scalars import is_signed
from strobe.model.probe import Value

_WHOLE: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)")
# A cut text is shown with … at its end, and is asked for like that.
_TEXT_EQUALS: Final = "{c} IN (SELECT id FROM strings WHERE text || (CASE WHEN truncated THEN '…' ELSE '' END) = ?)"
_TRUTH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Condition:
    """`sql` with `{c}` for the column; `texts` are its parameters, in order."""

    sql: str
    texts: tuple[str, ...] = ()


def equals(value: Value, wanted: Any) -> Condition | None:
    """None: no value of this type can equal `wanted`."""
    if value.size == 0 and value.scalar != "cstring":
        return None
    if value.scalar == "cstring":
        return Condition(_TEXT_EQUALS, (wanted,)) if isinstance(wanted, str) else None
    if value.scalar == "bool":
        truth = _truth(wanted)
        return None if truth is None else Condition("{c} != 0" if truth else "{c} = 0")
    numbers = _numbers(value, wanted)
    if not numbers:
        return None
    return _one_of(numbers)


def _one_of(numbers: list[int]) -> Condition:
    return Condition(f"{{c}} = {numbers[0]}" if len(numbers) == 1 else f"{{c}} IN ({', '.join(map(str, numbers))})")


def contains(value: Value, wanted: str) -> Condition | None:
    """For texts and enumerator names."""
    if value.scalar == "cstring":
        return Condition("{c} IN (SELECT id FROM strings WHERE contains(text, ?))", (wanted,))
    if value.scalar == "enum":
        numbers = sorted({number for name, number in (value.enumerators or {}).items() if wanted in name})
        return _one_of(numbers) if numbers else None
    return None


def is_null(value: Value, wanted: bool) -> Condition | None:
    """For pointers and texts; other types have no null."""
    if value.scalar not in ("pointer", "cstring") or (value.size == 0 and value.scalar == "pointer"):
        return None
    return Condition("{c} = 0" if wanted else "{c} != 0")


def _numbers(value: Value, wanted: Any) -> list[int]:
    """Bits that equal `wanted`, as stored; empty if none can."""
    match value.scalar:
        case "float":
            return _float_bits(value, wanted)
        case "enum":
            return _enum_bits(value, wanted)
        case "char" if isinstance(wanted, str) and len(wanted) == 1 and not wanted.isdecimal():
            return _in_range(value, ord(wanted))
        case _:
            number = _whole(wanted)
            return [] if number is None else _in_range(value, number)


def _whole(wanted: Any) -> int | None:
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


def _in_range(value: Value, number: int) -> list[int]:
    bits = 8 * value.size
    if is_signed(value):
        return [number] if -(1 << bits - 1) <= number < 1 << bits - 1 else []
    return [number if number < 1 << 63 else number - (1 << 64)] if 0 <= number < 1 << bits else []


def _float_bits(value: Value, wanted: Any) -> list[int]:
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        return []
    try:
        number = float(wanted)
        if value.size == 4 and math.isfinite(number):
            number = struct.unpack("<f", struct.pack("<f", number))[0]
    except (ValueError, OverflowError):
        return []
    if number == 0:
        return [0, -(1 << 63)]  # 0.0 and -0.0
    return list(struct.unpack("<q", struct.pack("<d", number)))


def _truth(wanted: Any) -> bool | None:
    if isinstance(wanted, str):
        return _TRUTH.get(wanted.lower())
    return bool(wanted) if wanted in (0, 1) else None


def _enum_bits(value: Value, wanted: Any) -> list[int]:
    if isinstance(wanted, str):
        named = {number for name, number in (value.enumerators or {}).items() if name == wanted or name.rpartition("::")[2] == wanted.rpartition("::")[2]}
        if named:
            return sorted(named)
    number = _whole(wanted)
    return [] if number is None else _in_range(value, number)
