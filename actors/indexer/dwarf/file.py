"""The DWARF sections of one file: its units, and what entries refer to across sections."""

from __future__ import annotations

import bisect
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import Abbreviation, DwarfError, read_table
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.elf import ElfFile

if TYPE_CHECKING:
    from actors.indexer.dwarf.ranges import UnitMap

_UNITS_MAX: Final = 1_000_000
_TABLES_MAX: Final = 4096
_PRODUCERS_MAX: Final = 64  # units that are looked at
_TYPE_KINDS: Final = (2, 6)  # DW_UT_type, DW_UT_split_type


class DwarfFile:
    """Everything is read when first asked for. Raises DwarfError throughout, on what is malformed or not supported."""

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf
        self._tables: dict[tuple[int, int], dict[int, Abbreviation]] = {}
        self.prefixes: dict[tuple[object, ...], str] = {}  # scopes.scopes_of's
        self.unit_map: UnitMap | None = None  # ranges.unit_map's

    @cached_property
    def info(self) -> bytes:
        return self.elf.bytes_of(".debug_info")

    @cached_property
    def abbrev(self) -> bytes:
        return self.elf.bytes_of(".debug_abbrev")

    @cached_property
    def units(self) -> list[Unit]:
        """Of `.debug_info`, in file order. A malformed header ends the list."""
        return list(self._read_units(self.info, in_types=False))

    @cached_property
    def texts_once(self) -> bool:
        """Whether `.debug_str` seems to have each text once, as linkers leave it (some only when they optimise): the units' producers tell."""
        found: dict[bytes, set[int]] = {}
        strings = self.elf.bytes_of(".debug_str")
        for unit in self.units[:_PRODUCERS_MAX]:
            try:
                form, value = unit.root.attributes.get(dw.PRODUCER, (0, b"")) if unit.first < unit.end else (0, b"")
            except DwarfError:
                return False
            if form == dw.F_STRP and isinstance(value, int):
                found.setdefault(strings[value : strings.find(b"\0", value)], set()).add(value)
        return bool(found) and all(len(places) == 1 for places in found.values())

    @cached_property
    def _type_units(self) -> dict[int, Unit]:
        """By signature, from DWARF 5's `.debug_info` and DWARF 4's `.debug_types`."""
        return {unit.signature: unit for unit in [*self.units, *self.old_type_units] if unit.signature is not None}

    @cached_property
    def old_type_units(self) -> list[Unit]:
        """DWARF 4's, of `.debug_types`; DWARF 5's are among `units`."""
        return self._read_units(self.elf.bytes_of(".debug_types"), in_types=True)

    @cached_property
    def _offsets(self) -> list[int]:
        return [unit.offset for unit in self.units]

    def unit_at(self, offset: int) -> Unit:
        """The unit that holds a `.debug_info` offset."""
        index = bisect.bisect_right(self._offsets, offset) - 1
        if index < 0 or offset >= self.units[index].end:
            raise DwarfError(f"no unit holds offset {offset:#x}")
        return self.units[index]

    def abbreviations(self, offset: int, offset_bytes: int) -> dict[int, Abbreviation]:
        key = (offset, offset_bytes)
        if key not in self._tables:
            if len(self._tables) >= _TABLES_MAX:
                self._tables.clear()
            self._tables[key] = read_table(self.abbrev, offset, offset_bytes)
        return self._tables[key]

    def _read_units(self, data: bytes, *, in_types: bool) -> list[Unit]:
        found: list[Unit] = []
        at = 0
        while at + 11 <= len(data) and len(found) < _UNITS_MAX:
            try:
                unit = self._read_header(data, at, in_types)
            except (struct.error, IndexError):
                break
            if unit is None:
                break
            found.append(unit)
            at = unit.end
        return found

    def _read_header(self, data: bytes, at: int, in_types: bool) -> Unit | None:
        (length,) = struct.unpack_from("<I", data, at)
        body, wide = at + 4, 4
        if length == 0xFFFFFFFF:
            (length,) = struct.unpack_from("<Q", data, body)
            body, wide = at + 12, 8
        end = body + length
        if length < 7 or end > len(data):
            return None
        (version,) = struct.unpack_from("<H", data, body)
        letter = "I" if wide == 4 else "Q"
        if version >= 5:
            kind, address_bytes, table = struct.unpack_from(f"<BB{letter}", data, body + 2)
            first = body + 4 + wide
        else:
            table, address_bytes = struct.unpack_from(f"<{letter}B", data, body + 2)
            kind, first = (2 if in_types else 1), body + 3 + wide
        unit = Unit(self, data, at, first, end, version, wide, kind, table)
        if version not in (2, 3, 4, 5) or address_bytes != 8:
            unit.first = end  # kept in the list so that the next one is found; it has no entries
        elif kind in _TYPE_KINDS:
            (unit.signature,) = struct.unpack_from("<Q", data, first)
            (unit.type_at,) = struct.unpack_from(f"<{letter}", data, first + 8)
            unit.first = first + 8 + wide
        elif kind in (4, 5):
            unit.first = first + 8  # dwo_id
        return unit

    def string(self, unit: Unit, form: int, value: int | bytes) -> str | None:
        """A name. None for one in a supplementary file (dwz), which is not read."""
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if form in (dw.F_STRP, dw.F_LINE_STRP):
            return _string(self.elf.bytes_of(".debug_str" if form == dw.F_STRP else ".debug_line_str"), value)
        if form in dw.STRING_INDEXES:
            base = unit.root.number(dw.STR_OFFSETS_BASE)
            base = 2 * unit.offset_bytes if base is None else base
            where = _word(self.elf.bytes_of(".debug_str_offsets"), base + value * unit.offset_bytes, unit.offset_bytes)
            return _string(self.elf.bytes_of(".debug_str"), where)
        return None

    def address(self, unit: Unit, form: int, value: int) -> int:
        if form in dw.ADDRESS_INDEXES:
            base = unit.root.number(dw.ADDR_BASE) or unit.root.number(dw.GNU_ADDR_BASE) or 8
            return _word(self.elf.bytes_of(".debug_addr"), base + value * 8, 8)
        return value

    def reference(self, unit: Unit, form: int, value: int) -> Entry | None:
        """The entry referred to; None for one in a supplementary file."""
        if form in dw.UNIT_REFERENCES:
            return unit.entry(unit.offset + value)
        if form == dw.F_REF_ADDR:
            return self.unit_at(value).entry(value)
        if form == dw.F_REF_SIG8:
            target = self._type_units.get(value)
            if target is None:
                raise DwarfError(f"no type unit has signature {value:#x}")
            return target.entry(target.offset + target.type_at)
        return None


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    if not 0 <= at < len(data) or end < 0:
        raise DwarfError(f"string at {at:#x} is outside its section")
    return data[at:end].decode("utf-8", "replace")


def _word(data: bytes, at: int, size: int) -> int:
    if not 0 <= at <= len(data) - size:
        raise DwarfError(f"offset {at:#x} is outside its section")
    return int.from_bytes(data[at : at + size], "little")
