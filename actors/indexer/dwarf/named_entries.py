"""Entries of a unit by their name, found by the bytes that stand for the name instead of by reading entry after entry.

Where DW_AT_name is in an entry follows from the entry's abbreviation, so bytes that stand for the name and the code before them tell where an entry may
begin. Other bytes may look the same by chance: what is found so is checked against what comes after it, or against the entries around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import Abbreviation, DwarfError
from actors.indexer.dwarf.quick_find import find
from actors.indexer.dwarf.scopes import begins_outside, in_function
from actors.indexer.dwarf.unit import Entry, Unit, Wanted
from actors.indexer.leb import encoded

_INLINE: Final = (dw.F_STRP, dw.F_STRING)


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """Codes of wanted entries, by (bytes between the end of the code and the name, bytes of the code)."""

    codes: dict[tuple[int, int], frozenset[bytes]]


def name_places(unit: Unit, tags: frozenset[int]) -> NamePlaces | None:
    """None: some wanted entries have their names where only reading them tells."""
    codes: dict[tuple[int, int], set[bytes]] = {}
    for code in unit.codes_of(Wanted(frozenset(), tags, dw.NAME)):
        at = attribute_at(unit.table[code], dw.NAME, _INLINE, unit.offset_bytes)
        if at is None:
            return None
        written = encoded(code)
        codes.setdefault((at, len(written)), set()).add(written)
    return NamePlaces({place: frozenset(found) for place, found in codes.items()})


def entries_at(unit: Unit, needles: list[bytes], places: NamePlaces, keep: Callable[[Entry], bool], *, inside_functions: bool) -> Iterator[Entry]:
    """Entries of wanted abbreviations that are to be kept and whose names are written as one of `needles`. Raises DwarfError."""
    for needle in needles:
        hit = find(unit.data, needle, unit.first, unit.end)
        while hit >= 0:
            for entry in _candidates(unit, hit, places):
                if keep(entry) and (_begins(unit, entry, inside_functions) if inside_functions or not _closes(entry) else not in_function(unit, entry.offset)):
                    yield entry
            hit = find(unit.data, needle, hit + 1, unit.end)


def _candidates(unit: Unit, hit: int, places: NamePlaces) -> Iterator[Entry]:
    for (between, length), codes in places.codes.items():
        start = hit - between - length
        if start <= unit.first or unit.data[start : start + length] not in codes:
            continue
        try:
            entry = unit.entry(start)
        except DwarfError:  # no entry: it only looked like one
            continue
        if entry is not None:
            yield entry


def _closes(entry: Entry) -> bool:
    """Whether its children end where it says that its sibling begins: no other bytes look like that."""
    sibling = entry.number(dw.SIBLING)
    if sibling is None or not entry.abbreviation.children:
        return False
    at = entry.unit.offset + sibling
    return entry.end < at < entry.unit.end and entry.unit.data[at - 1] == 0


def _begins(unit: Unit, entry: Entry, inside_functions: bool) -> bool:
    if not inside_functions:
        return begins_outside(unit, entry.offset)
    found = entry_around(unit, entry.offset)
    return found is not None and found.offset == entry.offset


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


def attribute_at(shape: Abbreviation, attribute: int, forms: tuple[int, ...], offset_bytes: int) -> int | None:
    """Bytes between the code and an attribute's value; None where that is not fixed, or the value has another form."""
    at = 0
    for one, form, _ in shape.attributes:
        if one == attribute:
            return at if form in forms else None
        size = offset_bytes if form in dw.SECTION_OFFSETS else dw.FIXED.get(form)
        if size is None:
            return None
        at += size
    return None
