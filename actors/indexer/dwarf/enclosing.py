"""What holds what, from outside in: the function that an entry stands in, the entry whose attributes have a byte."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.scopes import scopes_of
from actors.indexer.dwarf.unit import Entry, Unit

_DEPTH_MAX: Final = 200


def enclosing_function(entry: Entry) -> Entry | None:
    """The innermost one; None outside of all. Raises DwarfError."""
    unit, found = entry.unit, None
    at = unit.skip(unit.first)[0]
    for _ in range(_DEPTH_MAX):
        inside = _holding(entry, at)
        if inside is None:
            return found
        if inside.tag == dw.SUBPROGRAM:
            found = inside
        at = inside.end
    return found


def entry_around(unit: Unit, position: int) -> Entry | None:
    """The entry among whose attributes the byte at `position` is. Raises DwarfError."""
    at = unit.first
    while at <= position:
        start = at
        at, sibling, shape = unit.skip(at)
        if position < at:
            return unit.entry(start)
        if shape is not None and shape.children:
            after = sibling or unit.past(at)
            at = at if position < after else after
    return None


def _holding(entry: Entry, at: int) -> Entry | None:
    """Of the entry's siblings from `at` on, or its ancestors', the one that holds it."""
    unit = entry.unit
    while at < entry.offset:
        start = at
        at, sibling, shape = unit.skip(at)
        if shape is None:
            return None
        if shape.children:
            at = sibling or unit.past(at)
            if at > entry.offset:
                return unit.entry(start)
    return None


def function_name(function: Entry) -> str:
    """Qualified, without parameters."""
    chain = origins(function)
    named = next((one for one in chain if one.has(dw.NAME)), None)
    return "" if named is None else scopes_of(named) + (named.text(dw.NAME) or "")
