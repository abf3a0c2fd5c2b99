"""In which namespaces and classes an entry stands. Entries do not point to their parents, so a unit is walked once, when first asked for."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.unit import Unit

_SCOPES: Final = frozenset({dw.NAMESPACE, dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})
_DEPTH_MAX: Final = 10_000


@dataclass(slots=True)
class Scopes:
    """Parallel lists, by position: where a scope begins and ends, and the index of the one around it (-1: none)."""

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)


def qualifier(unit: Unit, at: int) -> str:
    """`shop::` for an entry in namespace shop; "" outside of all. Inline namespaces are left out. Raises DwarfError."""
    if unit.scopes is None:
        unit.scopes = _walk(unit)
    scopes = unit.scopes
    index = bisect.bisect_right(scopes.begins, at - 1) - 1  # an entry is not its own scope
    while index >= 0 and scopes.ends[index] <= at:
        index = scopes.parents[index]
    return "" if index < 0 else _name(unit, scopes, index)


def _name(unit: Unit, scopes: Scopes, index: int) -> str:
    if index not in scopes.names:
        entry = unit.entry(scopes.begins[index])
        parent = scopes.parents[index]
        around = "" if parent < 0 else _name(unit, scopes, parent)
        own = entry.text(dw.NAME) if entry is not None else None
        inline = entry is not None and entry.has(dw.EXPORT_SYMBOLS)
        shown = "(anonymous namespace)" if own is None and entry is not None and entry.tag == dw.NAMESPACE else own
        scopes.names[index] = around if inline or shown is None else f"{around}{shown}::"
    return scopes.names[index]


def _walk(unit: Unit) -> Scopes:
    found = Scopes()
    data, at, end = unit.data, unit.first, unit.end
    leaves = {code: 1 + shape.fixed for code, shape in unit.table.items() if code < 128 and shape.fixed >= 0 and not shape.children}
    stack: list[int] = []  # index of the scope that each open entry is, or -1
    innermost = -1
    try:
        while at < end:
            size = leaves.get(data[at])
            if size is not None:
                at += size
                continue
            start = at
            at, sibling, shape = unit.skip(at)
            if shape is None:
                index = stack.pop() if stack else -1
                if index >= 0:
                    found.ends[index] = at
                    innermost = found.parents[index]
            elif shape.children and shape.tag in _SCOPES:
                found.begins.append(start)
                found.ends.append(end)
                found.parents.append(innermost)
                innermost = len(found.begins) - 1
                stack.append(innermost)
            elif sibling:
                at = sibling
            elif shape.children:
                stack.append(-1)
            if len(stack) > _DEPTH_MAX:
                raise DwarfError(f"unit at {unit.offset:#x} is nested too deep")
    except IndexError as error:
        raise DwarfError(f"unit at {unit.offset:#x} is cut short") from error
    return found
