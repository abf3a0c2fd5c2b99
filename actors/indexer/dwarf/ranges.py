"""Address ranges of units and functions: `.debug_aranges`, `.debug_ranges` (DWARF 4), `.debug_rnglists` (DWARF 5 §2.17, §7.25)."""

from __future__ import annotations

import struct
from typing import Final

import numpy
from numpy.typing import NDArray

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.leb import unsigned

_RANGES_MAX: Final = 1_000_000
Range = tuple[int, int]


def ranges_of(entry: Entry) -> list[Range]:
    """[(low, high)) of an entry, in the order given; empty for one without code."""
    if entry.has(dw.RANGES):
        return _listed(entry)
    low, high = entry.address(dw.LOW_PC), entry.number(dw.HIGH_PC)
    if low is None or high is None:
        return []
    form = entry.attributes[dw.HIGH_PC][0]
    if form == dw.F_ADDR or form in dw.ADDRESS_INDEXES:
        return [(low, entry.unit.file.address(entry.unit, form, high))]
    return [(low, low + high)]


def entry_point(entry: Entry) -> int | None:
    """Where a function begins: DW_AT_low_pc, DW_AT_entry_pc, or its first range (the hot part, of one that was split)."""
    if entry.has(dw.RANGES):
        point = entry.address(dw.ENTRY_PC) if entry.attributes.get(dw.ENTRY_PC, (0, 0))[0] in (dw.F_ADDR, *dw.ADDRESS_INDEXES) else None
        if point is not None:
            return point
        found = _listed(entry, at_most=1)
        return found[0][0] if found else None
    return entry.address(dw.LOW_PC)


def _listed(entry: Entry, at_most: int = _RANGES_MAX) -> list[Range]:
    form, value = entry.attributes[dw.RANGES]
    unit = entry.unit
    if isinstance(value, bytes):
        raise DwarfError("ranges are no offset")
    base = unit.root.address(dw.LOW_PC) or 0
    try:
        if unit.version < 5:
            return _ranges4(unit.file.elf.bytes_of(".debug_ranges"), value, base, at_most)
        data = unit.file.elf.bytes_of(".debug_rnglists")
        if form == dw.F_RNGLISTX:
            start = unit.root.number(dw.RNGLISTS_BASE) or 12
            value = start + int.from_bytes(data[start + value * unit.offset_bytes :][: unit.offset_bytes], "little")
        return _ranges5(unit, data, value, base, at_most)
    except (struct.error, IndexError, ValueError) as error:
        raise DwarfError(f"range list at {value:#x} is malformed") from error


def _ranges4(data: bytes, at: int, base: int, at_most: int) -> list[Range]:
    found: list[Range] = []
    while len(found) < at_most:
        low, high = struct.unpack_from("<QQ", data, at)
        at += 16
        if low == high == 0:
            break
        if low == (1 << 64) - 1:
            base = high
        elif low != high:
            found.append((base + low, base + high))
    return found


def _ranges5(unit: Unit, data: bytes, at: int, base: int, at_most: int) -> list[Range]:
    found: list[Range] = []
    while len(found) < at_most:
        kind, at = data[at], at + 1
        if kind == 0:
            break
        first, at = _first(unit, data, at, kind)
        if kind in (1, 5):  # DW_RLE_base_addressx, base_address
            base = first
            continue
        if kind == 6:  # start_end
            (high,) = struct.unpack_from("<Q", data, at)
            low, at = first, at + 8
        else:
            second, at = unsigned(data, at)
            low = base + first if kind == 4 else first  # offset_pair
            high = base + second if kind == 4 else unit.file.address(unit, dw.F_ADDRX, second) if kind == 2 else first + second
        if low != high:
            found.append((low, high))
    return found


def _first(unit: Unit, data: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind in (5, 6, 7):
        (address,) = struct.unpack_from("<Q", data, at)
        return address, at + 8
    if kind not in (1, 2, 3, 4):
        raise ValueError(f"range entry {kind}")
    value, at = unsigned(data, at)
    return (value if kind == 4 else unit.file.address(unit, dw.F_ADDRX, value)), at


class UnitMap:
    """Address → unit: by `.debug_aranges` (GCC), else by the ranges of the units' own entries (Clang, rustc)."""

    def __init__(self, file: DwarfFile) -> None:
        rows, covered = _aranges(file)
        for unit in file.units:
            if unit.offset not in covered and unit.signature is None and unit.first < unit.end:
                rows += _own_ranges(unit)
        rows.sort()
        self._lows: NDArray[numpy.uint64] = numpy.array([row[0] for row in rows], dtype=numpy.uint64)
        self._rows = rows

    def find(self, address: int) -> int | None:
        """Offset of the unit whose code covers `address`."""
        index = int(numpy.searchsorted(self._lows, numpy.uint64(address), "right")) - 1
        for back in range(index, max(index - 8, -1), -1):  # a few, in case of overlap
            low, high, unit = self._rows[back]
            if low <= address < high:
                return unit
        return None


def unit_map(file: DwarfFile) -> UnitMap:
    """Made once for each file."""
    if file.unit_map is None:
        file.unit_map = UnitMap(file)
    return file.unit_map


def _own_ranges(unit: Unit) -> list[tuple[int, int, int]]:
    try:
        if unit.root.tag != dw.COMPILE_UNIT:
            return []
        return [(low, high, unit.offset) for low, high in ranges_of(unit.root)]
    except DwarfError:  # a damaged unit has no code that can be found; the others still do
        return []


def _aranges(file: DwarfFile) -> tuple[list[tuple[int, int, int]], set[int]]:
    """([(low, high, unit offset)], offsets of the units covered)."""
    data = file.elf.bytes_of(".debug_aranges")
    rows: list[tuple[int, int, int]] = []
    covered: set[int] = set()
    at = 0
    while at + 16 <= len(data):
        length, _, unit, address_bytes, segment_bytes = struct.unpack_from("<IHIBB", data, at)
        end = at + 4 + length
        if length == 0xFFFFFFFF or address_bytes != 8 or segment_bytes or end > len(data) or length < 8:
            break  # 64-bit DWARF: its units answer for themselves
        pairs = numpy.frombuffer(data, dtype="<u8", count=(end - at - 16) // 16 * 2, offset=at + 16).reshape(-1, 2)
        rows += [(low, low + size, unit) for low, size in pairs.tolist() if size]
        covered.add(unit)
        at = end
    return rows, covered
