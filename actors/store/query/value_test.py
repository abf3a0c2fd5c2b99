"""Whether a value as it is shown meets the conditions of a ValueFilter."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from actors.store.query.bit_ranges import bounds_of, whole
from strobe.model.query import ValueFilter

_UNKNOWN: Final = re.compile(r"<(not captured|cut|unreadable 0x[0-9a-f]+)>")
_ADDRESS: Final = re.compile(r"(0x[0-9a-f]+)(?: <.*>)?|<[^<>]* at (0x[0-9a-f]+)>", re.DOTALL)
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def meets(shown: Any, number: int | None, wanted: ValueFilter) -> bool:
    """`shown`: as JSON; `number`: an enum's. What was not captured meets nothing."""
    if isinstance(shown, str) and _UNKNOWN.fullmatch(shown):
        return False
    if wanted.is_null is not None and (shown is None) is not wanted.is_null:
        return False
    if wanted.equals is not None and not _equal(shown, number, wanted.equals):
        return False
    if wanted.ne is not None and _equal(shown, number, wanted.ne):
        return False
    if wanted.contains is not None and not _contains(shown, wanted.contains):
        return False
    return all(_compares(shown, number, name, bound) for name, bound in bounds_of(wanted))


def _equal(shown: Any, number: int | None, wanted: Any) -> bool:
    if shown is None:
        return whole(wanted) == 0  # a null pointer
    if isinstance(shown, bool):
        return _truth(wanted) is shown
    if isinstance(shown, int | float):
        other = _number(wanted)
        return other is not None and shown == other
    if number is not None:
        last = str(wanted).rpartition("::")[2]
        return whole(wanted) == number or (isinstance(wanted, str) and str(shown).rpartition("::")[2] == last)
    if isinstance(shown, str) and isinstance(wanted, str) and shown == wanted:
        return True
    address = _address(shown)
    return (address is not None and whole(wanted) == address) or (isinstance(wanted, dict | list) and bool(shown == wanted))


def _compares(shown: Any, number: int | None, name: str, bound: int | float | str) -> bool:
    compare = _OPERATORS[name]
    if isinstance(shown, bool) or shown is None:
        return False
    left = shown if isinstance(shown, int | float) else number if number is not None else None
    if left is None and isinstance(bound, str) and isinstance(shown, str) and not _ADDRESS.fullmatch(shown):
        return compare(shown, bound)
    if left is None:
        left = _address(shown)
    right = _number(bound)
    return left is not None and right is not None and compare(left, right)


def _contains(shown: Any, part: str) -> bool:
    """A text: somewhere in it; a list: in one of its elements, which are texts."""
    if isinstance(shown, list):
        return any(isinstance(one, str) and part in one for one in shown)
    return isinstance(shown, str) and part in shown


def _address(shown: Any) -> int | None:
    """Of a pointer, followed or not."""
    text = shown.get("@") if isinstance(shown, dict) else shown
    found = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
    return int(found[1] or found[2], 16) if found else None


def _number(wanted: Any) -> int | float | None:
    if isinstance(wanted, bool):
        return None
    if isinstance(wanted, int | float):
        return wanted
    number = whole(wanted)
    if number is None and isinstance(wanted, str):
        try:
            return float(wanted)
        except ValueError:
            return None
    return number


def _truth(wanted: Any) -> bool | None:
    if isinstance(wanted, str):
        return {"true": True, "false": False}.get(wanted.lower())
    return bool(wanted) if wanted in (0, 1) else None
