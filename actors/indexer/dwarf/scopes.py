"""In which namespaces and classes an entry stands. Entries do not point to their parents: scopes are looked into from the unit down, each
when something inside it is first asked for."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.unit import Unit

_SCOPES: Final = frozenset({dw.NAMESPACE, dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})
_DEPTH_MAX: Final = 200


@dataclass(slots=True)
class Scope:
    """From the entry itself (`begin`) to past its last child (`end`); `prefix` is what it puts before the names in it."""

    begin: int
    end: int
    prefix: str
    inner: list[Scope] | None = None


def qualifier(unit: Unit, at: int) -> str:
    """`shop::` for an entry in namespace shop; "" outside of all. Inline namespaces are left out. Raises DwarfError."""
    if unit.scope is None:
        unit.scope = Scope(unit.first, unit.end, "")
    scope = unit.scope
    for _ in range(_DEPTH_MAX):
        if scope.inner is None:
            scope.inner = _look_into(unit, scope)
        index = bisect.bisect_left(scope.inner, at, key=_begin) - 1  # an entry is not its own scope
        if index < 0 or scope.inner[index].end <= at:
            return scope.prefix
        scope = scope.inner[index]
    raise DwarfError(f"entry at {at:#x} is nested too deep")


def _begin(scope: Scope) -> int:
    return scope.begin


def _look_into(unit: Unit, scope: Scope) -> list[Scope]:
    """The scopes directly inside."""
    found: list[Scope] = []
    at, _, _ = unit.skip(scope.begin)
    while at < scope.end:
        start = at
        at, sibling, shape = unit.skip(at)
        if shape is None:
            break
        if shape.children:
            at = sibling or unit.past(at)
            if shape.tag in _SCOPES:
                found.append(Scope(start, at, scope.prefix + _own(unit, start)))
    return found


def _own(unit: Unit, at: int) -> str:
    entry = unit.entry(at)
    if entry is None:
        return ""
    name = entry.text(dw.NAME)
    if name is not None and entry.has(dw.EXPORT_SYMBOLS):
        return ""
    if name is None:
        return "(anonymous namespace)::" if entry.tag == dw.NAMESPACE else ""
    return f"{name}::"
