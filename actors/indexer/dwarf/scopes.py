"""In which namespaces and classes an entry stands. Entries do not point to their parents: scopes are looked into from the unit down, each
when something inside it is first asked for."""

from __future__ import annotations

import bisect
import operator
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.language import language_of
from actors.indexer.dwarf.line_files import declaring_file
from actors.indexer.dwarf.unit import Entry, Unit

_SCOPES: Final = frozenset({dw.NAMESPACE, dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})
_TYPES: Final = _SCOPES - {dw.NAMESPACE} | {dw.ENUMERATION_TYPE, dw.TYPEDEF}
_FUNCTIONS: Final = frozenset({dw.SUBPROGRAM, dw.LEXICAL_BLOCK, dw.INLINED_SUBROUTINE})
ANONYMOUS: Final = "(anonymous namespace)::"
_DEPTH_MAX: Final = 200
_PREFIXES_MAX: Final = 50_000


@dataclass(slots=True)
class Scope:
    """From the entry itself (`begin`) to past its last child (`end`); `prefix` is what it and those around it put before the names in it, once that was
    asked for. What is directly inside, up to `read`: `inner`, the scopes, `functions`, where functions begin and end, `starts`, where all entries begin."""

    begin: int
    end: int
    prefix: str | None = None
    read: int = 0
    inner: list[Scope] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("Q"))
    functions: list[tuple[int, int]] = field(default_factory=list)


def scopes_of(entry: Entry) -> str:
    """Like `qualifier`, for a type or variable that is declared in its scope and defined elsewhere (DW_AT_specification): GCC's type units."""
    declared = entry.reference(dw.SPECIFICATION) or entry
    kept, key = declared.unit.file.prefixes, _copy(declared)
    if key is None or key not in kept:
        prefix = qualifier(declared.unit, declared.offset)
        if key is None or "<" in prefix:
            return prefix
        if len(kept) >= _PREFIXES_MAX:
            kept.clear()
        kept[key] = prefix
    return kept[key]


def _copy(entry: Entry) -> tuple[object, ...] | None:
    """Equal for what other units have of the same C++ type: its name and its place in the source, which instances of a class template have in common.
    One line of Rust is many types and variables: what a macro writes has the macro's place."""
    raw = entry.attributes
    if entry.tag not in _TYPES or dw.NAME not in raw or dw.DECL_LINE not in raw or entry.unit.signature is not None or language_of(entry.unit) != "c++":
        return None
    return entry.tag, raw[dw.NAME], declaring_file(entry), *(raw.get(one, (0, 0))[1] for one in (dw.DECL_LINE, dw.DECL_COLUMN, dw.BYTE_SIZE))


def qualifier(unit: Unit, at: int, depth: int = 0) -> str:
    """`shop::` for an entry in namespace shop; "" outside of all. Inline namespaces are left out. Raises DwarfError."""
    prefix = ""
    for scope in _around(unit, at):
        if scope.prefix is None:
            scope.prefix = _prefix(unit, scope, prefix, depth)
        prefix = scope.prefix
    return prefix


def in_function(unit: Unit, at: int) -> bool:
    """Whether an entry stands in a function. Raises DwarfError."""
    innermost = list(_around(unit, at))[-1]
    index = bisect.bisect_left(innermost.functions, at, key=operator.itemgetter(0)) - 1
    return index >= 0 and at < innermost.functions[index][1]


def begins_outside(unit: Unit, at: int) -> bool:
    """Whether an entry begins there, in no function. Raises DwarfError."""
    starts = list(_around(unit, at))[-1].starts
    index = bisect.bisect_left(starts, at)
    return index < len(starts) and starts[index] == at


def _around(unit: Unit, at: int) -> Iterator[Scope]:
    """The scopes that an entry stands in, the unit's own first. An entry is not its own scope."""
    if unit.scope is None:
        unit.scope = Scope(unit.first, unit.end, "")
    scope = unit.scope
    for _ in range(_DEPTH_MAX):
        yield scope
        if scope.read <= at:
            _look_into(unit, scope, at)
        index = bisect.bisect_left(scope.inner, at, key=_begin) - 1
        if index < 0 or scope.inner[index].end <= at:
            return
        scope = scope.inner[index]
    raise DwarfError(f"entry at {at:#x} is nested too deep")


def _begin(scope: Scope) -> int:
    return scope.begin


def _look_into(unit: Unit, scope: Scope, until: int) -> None:
    """Reads what is directly inside, as far as that begins at `until` or before."""
    at = scope.read or unit.skip(scope.begin)[0]
    leaves, data, note = unit.leaves, unit.data, scope.starts.append
    while at < scope.end and at <= until:
        size = leaves.get(data[at])
        if size is not None:
            note(at)
            at += size
            continue
        start = at
        at, sibling, shape = unit.skip(at)
        if shape is None:
            at = scope.end
            break
        note(start)
        if shape.children:
            at = sibling or unit.past(at)
            if shape.tag in _SCOPES:
                scope.inner.append(Scope(start, at))
            elif shape.tag in _FUNCTIONS:
                scope.functions.append((start, at))
    scope.read = at


def _prefix(unit: Unit, scope: Scope, outer: str, depth: int) -> str:
    """A scope that is declared elsewhere (DW_AT_specification) stands in the scopes of its declaration."""
    entry = unit.entry(scope.begin)
    declared = entry.reference(dw.SPECIFICATION) if entry is not None else None
    if declared is not None and declared.unit is unit and depth < _DEPTH_MAX:
        outer = qualifier(unit, declared.offset, depth + 1)
    return outer + ("" if entry is None else _own(entry))


def _own(entry: Entry) -> str:
    name = entry.text(dw.NAME)
    if name is None and entry.has(dw.SIGNATURE):
        full = entry.reference(dw.SIGNATURE)  # LLVM names a class only in its type unit
        name = full.text(dw.NAME) if full is not None else None
    if name is not None and entry.has(dw.EXPORT_SYMBOLS):
        return ""
    if name is None:
        return ANONYMOUS if entry.tag == dw.NAMESPACE else ""
    return f"{name}::"
