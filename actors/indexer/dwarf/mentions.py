"""Units that mention a name: found by searching for the bytes that stand for it, so that the others need not be read."""

from __future__ import annotations

import bisect
import operator
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.quick_find import find
from actors.indexer.dwarf.unit import Unit

_SHORT: Final = 8  # compilers write names in entries themselves that are no longer than a reference to them would be, or all names
_STRINGS_MAX: Final = 64  # places in .debug_str where one name may end: linkers share endings


@dataclass(frozen=True, slots=True)
class Needles:
    """How entries have one name: `offsets`, references to its text; `plain`, all that may be in the entry itself."""

    offsets: list[bytes]
    plain: list[bytes]

    def of(self, unit: Unit) -> list[bytes] | None:
        """Bytes of which an entry of that name contains some; None: any entry may. Raises DwarfError."""
        return None if unit.first < unit.end and unit.root.has(dw.STR_OFFSETS_BASE) else self.plain


def written(file: DwarfFile, name: str) -> Needles:
    needle = name.encode() + b"\0"
    strings = file.elf.bytes_of(".debug_str")
    once = find(strings, b"\0" + needle, 0, len(strings)) if file.texts_once else -1
    found = [once + 1] if once >= 0 else _occurrences(strings, needle)
    offsets = [at.to_bytes(4, "little") for at in found]
    return Needles(offsets, [*offsets, needle] if not offsets or len(needle) <= _SHORT else offsets)


def mentions(file: DwarfFile, name: Needles, end: float) -> Iterator[Unit]:
    """Units whose entries may have the name, until `end` on the monotonic clock. Each unit once. Raises DwarfError."""
    seen: set[int] = set()
    for units, data in ((file.units, file.info), (file.old_type_units, file.elf.bytes_of(".debug_types"))):
        starts = [unit.offset for unit in units]
        for wanted in name.plain:
            for unit in _containing(units, starts, data, wanted):
                if time.monotonic() > end:
                    return
                if id(unit) not in seen:
                    seen.add(id(unit))
                    yield unit
    for unit in _by_index(file, name.offsets):
        if time.monotonic() > end:
            return
        if id(unit) not in seen:
            seen.add(id(unit))
            yield unit


def mentioning(file: DwarfFile, needle: bytes, end: float) -> Iterator[Unit]:
    """Units that may have these bytes: first those that were read before, then others that do have them, until `end` on the monotonic clock.
    Raises DwarfError."""
    known = [unit.is_known for unit in file.units]
    for unit in [unit for unit, read in zip(file.units, known, strict=True) if read]:
        yield unit
        if time.monotonic() > end:
            return
    runs = [[unit for unit, _ in run] for read, run in groupby(zip(file.units, known, strict=True), key=operator.itemgetter(1)) if not read]
    for units, data in [*((run, file.info) for run in runs), (file.old_type_units, file.elf.bytes_of(".debug_types"))]:
        for unit in _containing(units, [unit.offset for unit in units], data, needle):
            if time.monotonic() > end:
                return
            yield unit


def _occurrences(strings: bytes, needle: bytes) -> list[int]:
    found: list[int] = []
    at = find(strings, needle, 0, len(strings))
    while at >= 0 and len(found) < _STRINGS_MAX:
        found.append(at)
        at = find(strings, needle, at + 1, len(strings))
    whole = [one for one in found if one == 0 or strings[one - 1] == 0]
    return whole or found  # a linker that shares endings keeps no text of its own for one that is another's ending


def _containing(units: list[Unit], starts: list[int], data: bytes, wanted: bytes) -> Iterator[Unit]:
    """The units are next to each other."""
    if not units:
        return
    hit = find(data, wanted, units[0].first, units[-1].end)
    while hit >= 0:
        unit = units[bisect.bisect_right(starts, hit) - 1]
        yield unit
        hit = find(data, wanted, unit.end, units[-1].end)


def _by_index(file: DwarfFile, offsets: list[bytes]) -> Iterator[Unit]:
    """Units whose part of `.debug_str_offsets` has the string: their entries hold indexes into it."""
    table = file.elf.bytes_of(".debug_str_offsets")
    if not table or not offsets:
        return
    for unit in file.units:
        base = unit.root.number(dw.STR_OFFSETS_BASE) if unit.first < unit.end else None
        if base is None or not 8 <= base <= len(table):
            continue
        stop = base - 4 + int.from_bytes(table[base - 8 : base - 4], "little")
        if unit.offset_bytes == 8 or any(_aligned(table, wanted, base, stop) for wanted in offsets):
            yield unit


def _aligned(table: bytes, wanted: bytes, base: int, stop: int) -> bool:
    at = table.find(wanted, base, stop)
    while at >= 0 and (at - base) % 4:
        at = table.find(wanted, at + 1, stop)
    return at >= 0
