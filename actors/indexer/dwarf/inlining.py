"""Functions that debug info knows but the symbol table does not: inlined everywhere, only declared, or left out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import linkage_name_of
from actors.indexer.dwarf.mentions import mentions, written
from actors.indexer.dwarf.unit import Entry, Unit

_UNITS_MAX: Final = 16
_SITES_MAX: Final = 3
_INLINED: Final = (1, 3)  # DW_INL_inlined, DW_INL_declared_inlined


@dataclass(slots=True)
class Fate:
    """`sites`: (linkage name of the function it was inlined into, line of the call)."""

    kind: Literal["inlined", "declared", "eliminated"]
    sites: list[tuple[str, int | None]] = field(default_factory=list)


def fate_of(file: DwarfFile, name: str, end: float) -> Fate | None:
    """What became of the function called `name` (without scopes); None when debug info has no such function, or time is up first
    (`end`, on the monotonic clock). Raises DwarfError."""
    best: Fate | None = None
    for unit in islice(mentions(file, written(file, name), end), _UNITS_MAX):
        if time.monotonic() > end:
            break
        for entry in _named(unit, name):
            fate = _judged(unit, entry, end)
            if fate is not None and fate.kind == "inlined":
                return fate
            best = best if fate is None or (best is not None and best.kind == "eliminated") else fate
    return best


def _named(unit: Unit, name: str) -> list[Entry]:
    return [entry for entry in _all(unit, dw.SUBPROGRAM) if entry.text(dw.NAME) == name]


def _all(unit: Unit, tag: int) -> list[Entry]:
    found: list[Entry] = []
    at = unit.first
    while at < unit.end:
        start = at
        at, _, shape = unit.skip(at)
        if shape is not None and shape.tag == tag:
            entry = unit.entry(start)
            if entry is not None:
                found.append(entry)
    return found


def _judged(unit: Unit, entry: Entry, end: float) -> Fate | None:
    if entry.has(dw.LOW_PC) or entry.has(dw.RANGES):
        return None  # it has code: the symbol table lacks it for another reason
    if entry.number(dw.INLINE) in _INLINED:
        sites = _sites(unit, entry, end)
        return Fate("inlined", sites) if sites else Fate("eliminated")
    return Fate("declared") if entry.has(dw.DECLARATION) else Fate("eliminated")


def _sites(unit: Unit, abstract: Entry, end: float) -> list[tuple[str, int | None]]:
    """Where instances of `abstract` are, by walking the unit's concrete functions."""
    found: list[tuple[str, int | None]] = []
    enclosing: list[Entry | None] = []
    at = unit.first
    while at < unit.end and len(found) < _SITES_MAX and time.monotonic() < end:
        start = at
        at, _, shape = unit.skip(at)
        if shape is None:
            if enclosing:
                enclosing.pop()
            continue
        entry = unit.entry(start) if shape.tag in (dw.SUBPROGRAM, dw.INLINED_SUBROUTINE) else None
        if entry is not None and shape.tag == dw.INLINED_SUBROUTINE and _refers_to(entry, abstract):
            function = next((one for one in reversed(enclosing) if one is not None), None)
            found.append(((linkage_name_of(function) if function else None) or "?", entry.number(dw.CALL_LINE)))
        if shape.children:
            enclosing.append(entry if shape.tag == dw.SUBPROGRAM else None)
    return found


def _refers_to(entry: Entry, abstract: Entry) -> bool:
    form, value = entry.attributes.get(dw.ABSTRACT_ORIGIN, (0, 0))
    if isinstance(value, bytes):
        return False
    return (entry.unit.offset + value if form in dw.UNIT_REFERENCES else value) == abstract.offset
