"""Entries of types and variables by their qualified names."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.homes import Homes
from actors.indexer.dwarf.language import language_of
from actors.indexer.dwarf.mentions import mentioning, mentions, written
from actors.indexer.dwarf.named_entries import NamePlaces, entries_at, name_places
from actors.indexer.dwarf.scopes import scopes_of
from actors.indexer.dwarf.template_names import tidy, tidy_rust
from actors.indexer.dwarf.unit import Entry, Unit

_AGGREGATES: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE, dw.ENUMERATION_TYPE})
TYPE_TAGS: Final = _AGGREGATES | {dw.TYPEDEF, dw.BASE_TYPE, dw.UNSPECIFIED_TYPE, dw.POINTER_TYPE}
_TYPEDEFS: Final = frozenset({dw.TYPEDEF})
VARIABLE_TAGS: Final = frozenset({dw.VARIABLE, dw.MEMBER})
_CLOSED: Final = frozenset({dw.SUBPROGRAM, dw.LEXICAL_BLOCK, dw.INLINED_SUBROUTINE})
_KEYWORD: Final = re.compile(r"^(?:struct|class|union|enum)\s+")
_SPELLINGS_MAX: Final = 2000
_KEPT_MAX: Final = 20_000


class TypeIndex:
    """Of one file. What was found is kept. Raises DwarfError throughout."""

    def __init__(self, file: DwarfFile) -> None:
        self._file = file
        self._homes = Homes(file)
        self._definitions: dict[tuple[str, int], Entry | None] = {}
        self._specified: dict[int, dict[int, int]] = {}  # unit → declaration → definition of variables

    @property
    def strings(self) -> bytes:
        return self._file.elf.bytes_of(".debug_str")

    def definition_of(self, declared: Entry, end: float) -> Entry | None:
        """The entry, in any unit, that defines the declared type; None where none was found before `end`, on the monotonic clock."""
        own = declared.text(dw.NAME)
        if own is None:
            return None
        name = scopes_of(declared) + own
        key = (name, _family(declared.tag))
        if key not in self._definitions:
            found = self._search_definition(declared, own, name, end)
            if found is None and time.monotonic() > end:
                return None
            if len(self._definitions) >= _KEPT_MAX:
                self._definitions.clear()
            self._definitions[key] = found
        return self._definitions[key]

    def types(self, name: str, end: float) -> Iterator[Entry]:
        """Types called `name`, fully qualified ones first; definitions before declarations. `struct name` is no typedef; in C, a `name`
        that is both is the typedef."""
        keyword = _KEYWORD.match(name.strip())
        found = self._types(name, _AGGREGATES if keyword else TYPE_TAGS, end)
        first = next(found, None)
        if first is None:
            return
        if not keyword and first.tag in _AGGREGATES and language_of(first.unit) == "c":
            yield from self._types(name, _TYPEDEFS, end)
        yield first
        yield from found

    def _types(self, name: str, tags: frozenset[int], end: float) -> Iterator[Entry]:
        wanted = _plain(_KEYWORD.sub("", name.strip()))
        scope, own = split_scope(wanted)
        near: list[Entry] = []
        for spelling in self._spellings(own, scope):
            for entry in named_entries(self._file, spelling, tags, end, first=self._homes.of(scope, own)):
                full = _plain(scopes_of(entry) + spelling)
                if full == wanted and not entry.has(dw.DECLARATION):
                    yield entry
                elif _ends_in(full, wanted):
                    near.append(entry)
        yield from sorted(near, key=lambda entry: entry.has(dw.DECLARATION))

    def variables(self, name: str, end: float) -> Iterator[Entry]:
        """Declarations and definitions of variables whose qualified name is `name` or ends in it."""
        _, own = split_scope(name)
        for entry in named_entries(self._file, own, VARIABLE_TAGS, end, inside_functions=True):
            if entry.tag == dw.MEMBER and not (entry.has(dw.EXTERNAL) or entry.has(dw.DECLARATION)):
                continue
            if _ends_in(variable_name(entry), name):
                yield entry

    def variable_definition(self, declared: Entry) -> Entry:
        """The entry that defines a variable declared in a class or namespace (DW_AT_specification), in its unit; else itself."""
        unit = declared.unit
        if unit.offset not in self._specified:
            self._specified[unit.offset] = _specifications(unit)
        at = self._specified[unit.offset].get(declared.offset)
        return (unit.entry(at) if at is not None else None) or declared

    def _search_definition(self, declared: Entry, own: str, name: str, end: float) -> Entry | None:
        for entry in entries_named_like(self._file, declared, own, _AGGREGATES, end, self._homes.of(scopes_of(declared), own)):
            if _family(entry.tag) == _family(declared.tag) and not entry.has(dw.DECLARATION) and scopes_of(entry) + own == name:
                return entry
        return None

    def _spellings(self, own: str, scope: str) -> list[str]:
        """How debug info may write a name: template arguments with the defaults that users leave out."""
        if "<" not in own:
            return [own]
        strings = self._file.elf.bytes_of(".debug_str")
        head = own[: own.index("<") + 1].encode()
        found = [own]
        at = strings.find(head)
        while at >= 0 and len(found) < _SPELLINGS_MAX:
            end = strings.find(b"\0", at)
            text = strings[at:end].decode("utf-8", "replace")
            if text != own and _plain(scope + text) in (scope + own, own):
                found.append(text)
            at = strings.find(head, at + 1)
        return found


def named_entries(
    file: DwarfFile, own: str, tags: frozenset[int], end: float, *, inside_functions: bool = False, first: Sequence[Unit] = ()
) -> Iterator[Entry]:
    """Entries of these tags whose DW_AT_name is `own`, until `end`; those in the units `first` are the first, and may come once more."""
    needles = written(file, own)
    for unit in first:
        yield from _named_in(unit, own, needles.of(unit), tags, end, inside_functions=inside_functions)
    for unit in mentions(file, needles, end):
        yield from _named_in(unit, own, needles.of(unit), tags, end, inside_functions=inside_functions)


def entries_named_like(file: DwarfFile, example: Entry, own: str, tags: frozenset[int], end: float, first: Sequence[Unit]) -> Iterator[Entry]:
    """Entries of these tags that define something called like `example`, until `end`. A linker keeps a text once: all of them refer to it alike."""
    form, value = example.attributes[dw.NAME]
    if form not in (dw.F_STRP, dw.F_STRING):
        yield from named_entries(file, own, tags, end, first=first)
        return
    needle = value + b"\0" if isinstance(value, bytes) else value.to_bytes(example.unit.offset_bytes, "little")
    for unit in chain(first, mentioning(file, needle, end)):
        yield from _named_in(unit, own, [needle], tags, end, defined_only=True)


def _named_in(
    unit: Unit, own: str, needles: list[bytes] | None, tags: frozenset[int], end: float, *, inside_functions: bool = False, defined_only: bool = False
) -> Iterator[Entry]:
    def keep(entry: Entry) -> bool:
        return entry.tag in tags and not (defined_only and entry.has(dw.DECLARATION)) and entry.text(dw.NAME) == own

    places = None if needles is None else _places(unit, tags)
    if needles is None or places is None:
        found = _read_through(unit, own, needles, tags, end, inside_functions)
    else:
        found = entries_at(unit, needles, places, keep, inside_functions=inside_functions)
    for entry in found:
        if time.monotonic() > end:
            return
        yield entry


def _places(unit: Unit, tags: frozenset[int]) -> NamePlaces | None:
    if tags not in unit.name_places:
        unit.name_places[tags] = name_places(unit, tags)
    return unit.name_places[tags]


def _read_through(unit: Unit, own: str, needles: list[bytes] | None, tags: frozenset[int], end: float, inside_functions: bool) -> Iterator[Entry]:
    data, at = unit.data, unit.first
    plain = {code: size for code, size in unit.leaves.items() if unit.table[code].tag not in tags}
    while at < unit.end:
        size = plain.get(data[at])
        if size is not None:
            at += size
            continue
        start = at
        at, sibling, shape = unit.skip(at)
        if shape is None:
            continue
        if shape.tag in tags and (needles is None or any(data.find(needle, start, at) >= 0 for needle in needles)):
            if time.monotonic() > end:
                return
            entry = unit.entry(start)
            if entry is not None and entry.text(dw.NAME) == own:
                yield entry
        if shape.children and not inside_functions and shape.tag in _CLOSED:
            at = sibling or unit.past(at)


def _specifications(unit: Unit) -> dict[int, int]:
    found: dict[int, int] = {}
    at = unit.first
    while at < unit.end:
        start = at
        at, sibling, shape = unit.skip(at)
        if shape is None:
            continue
        if shape.tag == dw.VARIABLE and any(attribute == dw.SPECIFICATION for attribute, _, _ in shape.attributes):
            entry = unit.entry(start)
            declared = entry.reference(dw.SPECIFICATION) if entry is not None else None
            if declared is not None:
                found[declared.offset] = start
        if shape.children and shape.tag in _CLOSED:
            at = sibling or unit.past(at)
    return found


def variable_name(entry: Entry) -> str:
    """Qualified by namespaces and classes."""
    return scopes_of(entry) + (entry.text(dw.NAME) or "")


def split_scope(name: str) -> tuple[str, str]:
    """(`shop::`, `Order<a::b>`) for `shop::Order<a::b>`. Rust's `<A as B>::{vtable}` is a name of its own."""
    if name.startswith("<"):
        return "", name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {">": 1, ")": 1, "<": -1, "(": -1}.get(name[at], 0)
        if depth == 0 and name[at - 1 : at + 1] == "::":
            return name[: at + 1], name[at + 1 :]
    return "", name


def _plain(name: str) -> str:
    return tidy(tidy_rust(name))


def _ends_in(full: str, wanted: str) -> bool:
    """Whether a user who writes `wanted` may mean `full`: scopes may be left out from the left, and those without a name everywhere."""
    named = full.replace("(anonymous namespace)::", "")
    return wanted in (full, named) or full.endswith(f"::{wanted}") or named.endswith(f"::{wanted}")


def _family(tag: int) -> int:
    """`struct` and `class` name the same type."""
    return dw.STRUCTURE_TYPE if tag == dw.CLASS_TYPE else tag
