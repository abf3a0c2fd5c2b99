"""In which namespaces and classes an entry stands. Entries do not point to their parents: scopes are looked into from the unit down, each
when something inside it is first asked for."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.unit import Entry, Unit

_SCOPES: Final = frozenset({dw.NAMESPACE, dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})
_DEPTH_MAX: Final = 200


@dataclass(slots=True)
class Scope:
    """From the entry itself (`begin`) to past its last child (`end`); `prefix` is what it puts before the names in it. `declared_at`: the
    entry that the scope is declared with, inside its own scopes, until that has been looked at."""

    begin: int
    end: int
    prefix: str
    declared_at: int | None = None
    inner: list[Scope] | None = None


def scopes_of(entry: Entry) -> str:
    """Like `qualifier`, for a type or variable that is declared in its scope and defined elsewhere (DW_AT_specification): GCC's type units."""
    declared = entry.reference(dw.SPECIFICATION) or entry
    return qualifier(declared.unit, declared.offset)


def qualifier(unit: Unit, at: int, depth: int = 0) -> str:
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
        if scope.declared_at is not None and depth < _DEPTH_MAX:
            declared_at, scope.declared_at = scope.declared_at, None
            scope.prefix = qualifier(unit, declared_at, depth + 1) + scope.prefix
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
                declared_at = _declared_at(unit, start)
                found.append(Scope(start, at, (scope.prefix if declared_at is None else "") + _own(unit, start), declared_at))
    return found


def _declared_at(unit: Unit, at: int) -> int | None:
    entry = unit.entry(at)
    declared = entry.reference(dw.SPECIFICATION) if entry is not None else None
    return declared.offset if declared is not None and declared.unit is unit else None


def _own(unit: Unit, at: int) -> str:
    entry = unit.entry(at)
    if entry is None:
        return ""
    name = entry.text(dw.NAME)
    if name is None and entry.has(dw.SIGNATURE):
        full = entry.reference(dw.SIGNATURE)  # LLVM names a class only in its type unit
        name = full.text(dw.NAME) if full is not None else None
    if name is not None and entry.has(dw.EXPORT_SYMBOLS):
        return ""
    if name is None:
        return "(anonymous namespace)::" if entry.tag == dw.NAMESPACE else ""
    return f"{name}::"
