"""Units that mention a name: found by searching for the bytes that stand for it, so that the others need not be read."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.quick_find import find
from actors.indexer.dwarf.unit import Unit

_SHORT: Final = 8  # compilers write names in entries themselves that are no longer than a reference to them would be, or all names
_STRINGS_MAX: Final = 64  # places in .debug_str where one name may end: linkers share endings


def mentions(file: DwarfFile, name: str, end: float) -> Iterator[tuple[Unit, list[bytes] | None]]:
    """(unit, bytes of which an entry of that name contains some; None: any entry may), until `end` on the monotonic clock. Each unit once.
    Raises DwarfError."""
    needle = name.encode() + b"\0"
    offsets = [at.to_bytes(4, "little") for at in _occurrences(file.elf.bytes_of(".debug_str"), needle)]
    plain = [*offsets, needle] if not offsets or len(needle) <= _SHORT else offsets
    seen: set[int] = set()
    for units, data in ((file.units, file.info), (file.old_type_units, file.elf.bytes_of(".debug_types"))):
        starts = [unit.offset for unit in units]
        for wanted in plain:
            for unit in _containing(units, starts, data, wanted):
                if time.monotonic() > end:
                    return
                if id(unit) not in seen:
                    seen.add(id(unit))
                    yield unit, None if unit.first < unit.end and unit.root.has(dw.STR_OFFSETS_BASE) else plain
    for unit in _by_index(file, offsets):
        if time.monotonic() > end:
            return
        if id(unit) not in seen:
            seen.add(id(unit))
            yield unit, None


def mentioning(file: DwarfFile, needle: bytes, end: float) -> Iterator[Unit]:
    """Units that have these bytes, those that were read before first, until `end` on the monotonic clock. Raises DwarfError."""
    known = {unit: None for unit in file.units if unit.is_known}
    for unit in known:
        if find(unit.data, needle, unit.first, unit.end) >= 0:
            yield unit
        if time.monotonic() > end:
            return
    for units, data in ((file.units, file.info), (file.old_type_units, file.elf.bytes_of(".debug_types"))):
        starts = [unit.offset for unit in units]
        for unit in _containing(units, starts, data, needle):
            if time.monotonic() > end:
                return
            if unit not in known:
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
    hit = find(data, wanted, 0, len(data))
    while hit >= 0:
        index = bisect.bisect_right(starts, hit) - 1
        if index < 0 or hit >= units[index].end:
            return
        yield units[index]
        hit = find(data, wanted, units[index].end, len(data))


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
