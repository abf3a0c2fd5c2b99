"""Finding the entry of the function at an address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import Abbreviation, DwarfError
from actors.indexer.dwarf.file import DwarfFile
from actors.indexer.dwarf.line_files import declaring_file
from actors.indexer.dwarf.named_entries import attribute_at
from actors.indexer.dwarf.quick_find import find, find_each
from actors.indexer.dwarf.ranges import entry_point, unit_map
from actors.indexer.dwarf.unit import Entry, Unit, Wanted
from actors.indexer.leb import encoded

_ORIGINS_MAX = 8
# Types and functions hold no other function's code, as compilers usually write them: a first search steps over their children
_LEAVES = frozenset({dw.SUBPROGRAM, dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE, dw.ENUMERATION_TYPE, dw.ARRAY_TYPE, dw.SUBROUTINE_TYPE})

_VARIANT = re.compile(r"([CD])[0-5](?=E)")
_SUBPROGRAM = frozenset({dw.SUBPROGRAM})
_ADDRESS_FIRST = (5, 6, 7)  # DW_RLE_base_address, start_end, start_length
_LISTS_MAX = 64
_SEVERAL = 4  # addresses in a unit that are worth a search for all at once


class FunctionFinder:
    """Functions of one file by their first address. Units are searched once each, when first needed."""

    def __init__(self, file: DwarfFile) -> None:
        self._file = file
        self._expected: dict[int, Places] = {}  # by unit

    def expect(self, addresses: Iterable[int]) -> None:
        """That these will be asked for: what can be searched for all of them at once is."""
        by_unit: dict[int, list[int]] = {}
        for address in addresses:
            offset = unit_map(self._file).find(address)
            if offset is not None:
                by_unit.setdefault(offset, []).append(address)
        units = [(self._file.unit_at(offset), wanted) for offset, wanted in by_unit.items() if len(wanted) >= _SEVERAL]
        self._expected = {unit.offset: _places_of(unit, wanted) for unit, wanted in units if not unit.split and unit.functions is None}

    def find(self, address: int, linkage_name: str) -> Entry | None:
        """The concrete entry of the function that begins at `address`; where several share it (folded code), the one of that name."""
        offset = unit_map(self._file).find(address)
        if offset is None:
            return None
        unit = self._file.unit_at(offset)
        if unit.split:
            raise DwarfError("the debug info is in a separate .dwo file (split DWARF), which is not supported yet")
        if unit.functions is None:
            quickly = _by_bytes(unit, address, linkage_name, self._expected.get(unit.offset, Places({}, {})))
            if quickly is not None:
                return quickly
        found = functions_of(unit, complete=False).get(address) or functions_of(unit, complete=True).get(address)
        if not found:
            return None
        entries = [entry for at in found if (entry := unit.entry(at)) is not None]
        return next((entry for entry in entries if linkage_name_of(entry) == linkage_name), entries[0] if entries else None)


@dataclass(frozen=True, slots=True)
class Places:
    """Where bytes are: `entries` in a unit, `lists` in the file's lists of ranges. Of what is in neither nothing is known."""

    entries: dict[bytes, list[int]]
    lists: dict[bytes, list[int]]

    def in_unit(self, unit: Unit, needle: bytes) -> Iterator[int]:
        return _everywhere(unit.data, needle, unit.first, unit.end) if needle not in self.entries else iter(self.entries[needle])

    def in_lists(self, data: bytes, address: bytes) -> Iterator[int]:
        return _everywhere(data, address, 1, len(data)) if address not in self.lists else iter(self.lists[address])


def _places_of(unit: Unit, addresses: list[int]) -> Places:
    needles = [address.to_bytes(8, "little") for address in addresses]
    lists = _lists(unit)
    entries = find_each(unit.data, needles, unit.first, unit.end)
    places = Places(entries, find_each(lists, needles, 1, len(lists)))
    ranges = {at.to_bytes(unit.offset_bytes, "little") for needle in needles for at in _range_lists(unit, needle, places)}
    return Places(entries | find_each(unit.data, ranges, unit.first, unit.end), places.lists)


def _everywhere(data: bytes, needle: bytes, begin: int, end: int) -> Iterator[int]:
    hit = find(data, needle, begin, end)
    while hit >= 0:
        yield hit
        hit = find(data, needle, hit + 1, end)


def _by_bytes(unit: Unit, address: int, linkage_name: str, places: Places) -> Entry | None:
    """The entry whose bytes say the address, or where its ranges are, as a function's abbreviation has it, and whose name is right: without reading
    the unit."""
    needle = address.to_bytes(8, "little")
    found = _with(unit, places.in_unit(unit, needle), dw.LOW_PC, (dw.F_ADDR,), address, linkage_name)
    if found is not None:
        return found
    for at in _range_lists(unit, needle, places):
        written = at.to_bytes(unit.offset_bytes, "little")
        found = _with(unit, places.in_unit(unit, written), dw.RANGES, (dw.F_SEC_OFFSET,), address, linkage_name)
        if found is not None:
            return found
    return None


def _with(unit: Unit, hits: Iterator[int], attribute: int, forms: tuple[int, ...], address: int, linkage_name: str) -> Entry | None:
    """The function whose `attribute` is at one of `hits`, if it is the one."""
    shapes = [unit.table[code] for code in unit.codes_of(Wanted(frozenset(), _SUBPROGRAM, attribute))]
    places = [(encoded(shape.code), attribute_at(shape, attribute, forms, unit.offset_bytes)) for shape in shapes]
    for hit in hits:
        for code, between in places:
            start = -1 if between is None else hit - between - len(code)
            if start > unit.first and unit.data.startswith(code, start) and (entry := _checked(unit, start, address, linkage_name)) is not None:
                return entry
    return None


def _lists(unit: Unit) -> bytes:
    return unit.file.elf.bytes_of(".debug_rnglists" if unit.version >= 5 else ".debug_ranges")


def _range_lists(unit: Unit, address: bytes, places: Places) -> Iterator[int]:
    """Where lists of ranges may be that begin with this address."""
    modern, data = unit.version >= 5, _lists(unit)
    for hit in islice(places.in_lists(data, address), _LISTS_MAX):
        if not modern or data[hit - 1] in _ADDRESS_FIRST:
            yield hit - modern


def _checked(unit: Unit, at: int, address: int, linkage_name: str) -> Entry | None:
    try:
        entry = unit.entry(at)
        right = entry is not None and entry_point(entry) == address and _is_called(linkage_name_of(entry) or "", linkage_name)
    except DwarfError:  # not an entry's beginning: it only looked like one
        return None
    return entry if right else None


def _is_called(name: str, symbol: str) -> bool:
    """Symbols of clones have a suffix, those of a constructor's or destructor's variants another number. Debug info has no linkage names of functions
    that other units can't call: such a one's own name is somewhere in the symbol."""
    plain = symbol.partition(".")[0]
    own = name.partition("<")[0]
    if plain.startswith("_Z") and not name.startswith("_Z"):
        return f"{len(own.encode())}{own}" in plain
    return name == plain or (len(name) == len(plain) and _VARIANT.sub(r"\1", name) == _VARIANT.sub(r"\1", plain))


def functions_of(unit: Unit, *, complete: bool) -> dict[int, list[int]]:
    """First address → positions of the function entries there. `complete`: also those inside types and other functions."""
    if unit.functions is None or (complete and not unit.complete):
        unit.functions = _search(unit, complete)
        unit.complete = complete
    return unit.functions


def _search(unit: Unit, complete: bool) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    data, at, end = unit.data, unit.first, unit.end
    # bytes to step over after a one-byte code, for shapes that need no look
    fixed = {code: 1 + shape.fixed for code, shape in unit.table.items() if code < 128 and shape.fixed >= 0 and not _interesting(shape, complete)}
    fixed[0] = 1  # the null entry
    try:
        while at < end:
            size = fixed.get(data[at])
            if size is not None:
                at += size
                continue
            start = at
            at, sibling, shape = unit.skip(at)
            if shape is None:
                continue
            if shape.tag == dw.SUBPROGRAM and shape.has_address:
                _note(unit, start, shape, found)
            if sibling and not complete and shape.tag in _LEAVES:
                at = sibling
    except IndexError as error:
        raise DwarfError(f"unit at {unit.offset:#x} is cut short") from error
    return found


def _interesting(shape: Abbreviation, complete: bool) -> bool:
    return (shape.tag == dw.SUBPROGRAM and shape.has_address) or (not complete and shape.has_sibling and shape.tag in _LEAVES)


def _note(unit: Unit, at: int, shape: Abbreviation, found: dict[int, list[int]]) -> None:
    if shape.low_pc_at >= 0 and shape.code < 128:
        where = at + 1 + shape.low_pc_at
        point: int | None = int.from_bytes(unit.data[where : where + 8], "little")
    else:
        entry = unit.entry(at)
        point = entry_point(entry) if entry is not None else None
    if point is not None:
        found.setdefault(point, []).append(at)


def origins(entry: Entry) -> list[Entry]:
    """The entry and what it is an instance or definition of (DW_AT_abstract_origin, DW_AT_specification), nearest first."""
    chain = [entry]
    while len(chain) < _ORIGINS_MAX:
        following = chain[-1].reference(dw.ABSTRACT_ORIGIN) or chain[-1].reference(dw.SPECIFICATION)
        if following is None:
            break
        chain.append(following)
    return chain


def linkage_name_of(entry: Entry) -> str | None:
    """The linkage name, or the plain name of a function that has none (C)."""
    chain = origins(entry)
    for attribute in (dw.LINKAGE_NAME, dw.MIPS_LINKAGE_NAME, dw.NAME):
        for one in chain:
            name = one.text(attribute)
            if name is not None:
                return name
    return None


def declared_at(function: Entry) -> tuple[str, int | None] | None:
    """(source file, line) of a function's definition. Raises DwarfError."""
    for one in origins(function):
        if one.has(dw.DECL_FILE):
            file = declaring_file(one)
            return None if file is None else (file, one.number(dw.DECL_LINE))
    return None
