"""Which variables are in scope at an address, function by function as they were inlined into each other (DWARF 5 §3.3, §3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.functions import FunctionFinder, functions_of, origins
from actors.indexer.dwarf.ranges import ranges_of, unit_map
from actors.indexer.dwarf.unit import Entry

_DEPTH_MAX: Final = 64
_ENTRIES_MAX: Final = 5000  # looked at for one frame
_IN_CHARGE: Final = ("__in_chrg", "__vtt_parm")  # which variant of a constructor is meant, and for which class: the compiler's own


@dataclass(slots=True)
class LiveScope:
    """One function's, `function` being its subprogram or inlined entry. Locals of inner blocks come first."""

    function: Entry
    arguments: list[Entry] = field(default_factory=list)
    locals: list[Entry] = field(default_factory=list)


def function_at(file: DwarfFile, finder: FunctionFinder, pc: int, start: int, linkage_name: str) -> Entry | None:
    """The function whose code is at `pc`, link-time, in the symbol that begins at `start`. Raises DwarfError."""
    found = finder.find(start, linkage_name)
    if found is not None:
        return found
    offset = unit_map(file).find(pc)  # a part that was moved away (`f.cold`) has a symbol of its own, but no entry
    if offset is None:
        return None
    unit = file.unit_at(offset)
    for places in functions_of(unit, complete=True).values():
        for at in places:
            entry = unit.entry(at)
            if entry is not None and _covers(entry, pc):
                return entry
    return None


def live_scopes(function: Entry, pc: int) -> list[LiveScope]:
    """The innermost inlined function first, `function` itself last. Raises DwarfError."""
    return _Look(pc).into(function)


def name_of(variable: Entry) -> str | None:
    return next((name for one in origins(variable) if (name := one.text(dw.NAME)) is not None), None)


class _Look:
    def __init__(self, pc: int) -> None:
        self._pc = pc
        self._left = _ENTRIES_MAX

    def into(self, function: Entry) -> list[LiveScope]:
        scope = LiveScope(function)
        inner = self._collect(function, scope, 0)
        return [*inner, scope]

    def _collect(self, holder: Entry, scope: LiveScope, depth: int) -> list[LiveScope]:
        """What `holder` holds goes to `scope`; answers the functions inlined at the address."""
        inlined: list[LiveScope] = []
        own: list[Entry] = []
        for child in holder.children():
            self._left -= 1
            if self._left < 0 or depth > _DEPTH_MAX:
                break
            if child.tag == dw.FORMAL_PARAMETER:
                if name_of(child) not in _IN_CHARGE:
                    scope.arguments.append(child)
            elif child.tag == dw.VARIABLE:
                own.append(child)
            elif child.tag == dw.LEXICAL_BLOCK and _covers(child, self._pc):
                inlined += self._collect(child, scope, depth + 1)
            elif child.tag == dw.INLINED_SUBROUTINE and _covers(child, self._pc):
                inner = LiveScope(child)
                inlined += [*self._collect(child, inner, depth + 1), inner]
        scope.locals += own
        return inlined


def _covers(entry: Entry, pc: int) -> bool:
    return any(low <= pc < high for low, high in ranges_of(entry))
