"""Typed comparisons of captured values: what the conditions of a ValueFilter mean for a parameter of a given type, as SQL over its bits."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.query.bit_ranges import bit_ranges, bounds_of, whole
from actors.store.scalars import is_signed
from actors.store.strings import UNREADABLE_ID
from strobe.model.probe import Value
from strobe.model.query import ValueFilter

# A cut text is shown with … at its end, and is asked for like that.
_TEXT_EQUALS: Final = "{c} IN (SELECT id FROM strings WHERE text || (CASE WHEN truncated THEN '…' ELSE '' END) = ?)"
_TRUTH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Condition:
    """`sql` with `{c}` for the column; `texts` are its parameters, in order."""

    sql: str
    texts: tuple[str, ...] = ()


def condition(value: Value, wanted: ValueFilter) -> Condition | None:
    """All that is asked for, together; None when no value of this type can meet it."""
    found: list[Condition | None] = []
    if wanted.equals is not None:
        found.append(equals(value, wanted.equals))
    if wanted.ne is not None:
        found.append(differs(value, wanted.ne))
    if wanted.contains is not None:
        found.append(contains(value, wanted.contains))
    if wanted.is_null is not None:
        found.append(is_null(value, wanted.is_null))
    found += [bounded(value, operator, bound) for operator, bound in bounds_of(wanted)]
    sure = [one for one in found if one is not None]
    if len(sure) < len(found):
        return None
    if not sure:
        return Condition("{c} IS NOT NULL")
    return Condition(" AND ".join(one.sql for one in sure), tuple(text for one in sure for text in one.texts))


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


def differs(value: Value, wanted: Any) -> Condition | None:
    """None: there is nothing to compare. What was not captured or could not be read does not differ."""
    same = equals(value, wanted)
    if value.scalar == "cstring":
        return Condition(f"{{c}} != {UNREADABLE_ID}" + ("" if same is None else f" AND NOT ({same.sql})"), () if same is None else same.texts)
    if value.size == 0:
        return None
    return Condition("{c} IS NOT NULL" if same is None else f"NOT ({same.sql})")


def bounded(value: Value, operator: str, bound: int | float | str) -> Condition | None:
    """`operator` is one of < <= > >=. Numbers, addresses, enums by number; texts by their characters."""
    if value.scalar == "cstring":
        return Condition(f"{{c}} IN (SELECT id FROM strings WHERE text {operator} ?)", (bound,)) if isinstance(bound, str) else None
    ranges = bit_ranges(value, operator, bound)
    if not ranges:
        return None
    return Condition("(" + " OR ".join(f"{{c}} BETWEEN {low} AND {high}" for low, high in ranges) + ")")


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
            number = whole(wanted)
            return [] if number is None else _in_range(value, number)


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
        wanted = _combined(value, wanted)
    if isinstance(wanted, str):
        named = {number for name, number in (value.enumerators or {}).items() if name == wanted or name.rpartition("::")[2] == wanted.rpartition("::")[2]}
        if named:
            return sorted(named)
    number = whole(wanted)
    return [] if number is None else _in_range(value, number)


def _combined(value: Value, wanted: str) -> str | int:
    """`Read|Write` as its number; anything else as it is."""
    names = value.enumerators or {}
    parts = [part.strip() for part in wanted.split("|")]
    if len(parts) < 2 or not all(part in names for part in parts):
        return wanted
    number = 0
    for part in parts:
        number |= names[part]
    return number


def tells_bits(value: Value, wanted: ValueFilter) -> bool:
    """The bits alone decide, as `holds_for` does; not where a value is shown as text that they do not have."""
    if wanted.contains is not None and value.scalar != "enum":
        return False
    given = [one for one in (wanted.equals, wanted.ne) if one is not None]
    compared = [*given, *(bound for _, bound in bounds_of(wanted))]
    match value.scalar:
        case "pointer":
            return all(whole(one) is not None for one in compared)
        case "enum":
            return wanted.contains is None and all(isinstance(one, str | int | float) for one in compared)
        case _:
            return wanted.is_null is None and all(isinstance(one, str | int | float) for one in compared)


def holds_for(value: Value, bits: NDArray[np.int64], wanted: ValueFilter) -> NDArray[np.bool_]:
    """Which of the numbers meet all conditions. Only where `tells_bits`."""
    met = np.ones(bits.size, dtype=np.bool_)
    if wanted.equals is not None:
        met &= _equal_bits(value, bits, wanted.equals)
    if wanted.ne is not None:
        met &= ~_equal_bits(value, bits, wanted.ne)
    if wanted.is_null is not None:
        met &= ((bits == 0) if value.scalar == "pointer" else np.False_) == wanted.is_null
    for operator, bound in bounds_of(wanted):
        ranges = bit_ranges(value, operator, bound)
        met &= np.logical_or.reduce([(bits >= low) & (bits <= high) for low, high in ranges]) if ranges else np.False_
    return met


def _equal_bits(value: Value, bits: NDArray[np.int64], wanted: Any) -> NDArray[np.bool_]:
    if value.scalar == "bool":
        truth = _truth(wanted)
        return np.zeros(bits.size, dtype=np.bool_) if truth is None else (bits != 0) == truth
    return np.isin(bits, np.array(_numbers(value, wanted), dtype=np.int64))
