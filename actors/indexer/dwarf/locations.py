"""Where a parameter is at the first instruction of its function, as far as its location description says so (DWARF 5 §2.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.leb import signed, unsigned

_ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class AtEntry:
    """`kind`: in DWARF `register` number; `pointed` to by that register; on the `stack` at `number` bytes above the return address; in
    `frame` memory, as unoptimised code has it after the prologue, which tells nothing about the entry; `pieces` in the registers of
    `registers`; `other`; or `absent`. `listed`: from a location list, so it holds at the entry itself."""

    kind: Literal["register", "pointed", "stack", "frame", "pieces", "other", "absent"]
    number: int = 0
    listed: bool = False
    registers: tuple[int, ...] = ()


def at_entry(parameter: Entry, frame_is_cfa: bool, entry: int) -> AtEntry:
    """`frame_is_cfa`: the function's DW_AT_frame_base is DW_OP_call_frame_cfa. `entry`: its first address."""
    if parameter.has(dw.CONST_VALUE):
        return AtEntry("other")
    raw = parameter.attributes.get(dw.LOCATION)
    if raw is None:
        return AtEntry("absent")
    if isinstance(raw[1], bytes):
        return _described(raw[1], frame_is_cfa, listed=False)
    expression = expression_at(parameter.unit, raw[0], raw[1], entry)
    return AtEntry("absent", listed=True) if expression is None else _described(expression, frame_is_cfa, listed=True)


def _described(code: bytes, frame_is_cfa: bool, *, listed: bool) -> AtEntry:
    if not code:
        return AtEntry("absent", listed=listed)
    try:
        if 0x50 <= code[0] <= 0x6F and len(code) == 1:  # DW_OP_reg0…31
            return AtEntry("register", code[0] - 0x50, listed)
        if code[0] == 0x90:  # DW_OP_regx
            number, at = unsigned(code, 1)
            return AtEntry("register", number, listed) if at == len(code) else AtEntry("other", listed=listed)
        if code[0] == 0x91:  # DW_OP_fbreg
            offset, at = signed(code, 1)
            if at != len(code):
                return AtEntry("other", listed=listed)
            return AtEntry("stack", offset, listed) if frame_is_cfa and offset >= 0 else AtEntry("frame", offset, listed)
        if code[0] in (0x76, 0x77):  # DW_OP_breg6 (rbp), DW_OP_breg7 (rsp)
            return AtEntry("frame", listed=listed)
        if 0x70 <= code[0] <= 0x8F and code[1:] == b"\0":  # DW_OP_bregN 0
            return AtEntry("pointed", code[0] - 0x70, listed)
        registers = _pieces(code)
        if registers:
            return AtEntry("pieces", listed=listed, registers=registers)
    except (IndexError, ValueError) as error:
        raise DwarfError(f"location {code.hex()} is malformed") from error
    return AtEntry("other", listed=listed)


def _pieces(code: bytes) -> tuple[int, ...]:
    """The registers of a value that is nothing but whole registers in a row; empty for others."""
    found: list[int] = []
    at = 0
    while at < len(code):
        if 0x50 <= code[at] <= 0x6F:
            register, at = code[at] - 0x50, at + 1
        elif code[at] == 0x90:  # DW_OP_regx
            register, at = unsigned(code, at + 1)
        else:
            return ()
        if code[at] != 0x93:  # DW_OP_piece
            return ()
        _, at = unsigned(code, at + 1)
        found.append(register)
    return tuple(found)


def expression_at(unit: Unit, form: int, value: int, entry: int) -> bytes | None:
    """The expression of a location list that holds at `entry`, a link-time address. Raises DwarfError."""
    base = unit.root.address(dw.LOW_PC) or 0
    try:
        if unit.version < 5:
            return _list4(unit.file.elf.bytes_of(".debug_loc"), value, base, entry)
        data = unit.file.elf.bytes_of(".debug_loclists")
        if form == dw.F_LOCLISTX:
            start = unit.root.number(dw.LOCLISTS_BASE) or 12
            value = start + int.from_bytes(data[start + value * unit.offset_bytes :][: unit.offset_bytes], "little")
        return _list5(unit, data, value, base, entry)
    except (struct.error, IndexError, ValueError) as error:
        raise DwarfError(f"location list at {value:#x} is malformed") from error


def _list4(data: bytes, at: int, base: int, entry: int) -> bytes | None:
    for _ in range(_ENTRIES_MAX):
        low, high = struct.unpack_from("<QQ", data, at)
        at += 16
        if low == high == 0:
            break
        if low == (1 << 64) - 1:
            base = high
            continue
        (length,) = struct.unpack_from("<H", data, at)
        if base + low <= entry < base + high:
            return data[at + 2 : at + 2 + length]
        at += 2 + length
    return None


def _list5(unit: Unit, data: bytes, at: int, base: int, entry: int) -> bytes | None:
    default: bytes | None = None
    for _ in range(_ENTRIES_MAX):
        kind, at = data[at], at + 1
        if kind == 0:
            break
        if kind in (1, 6):
            base, at = _address(unit, data, at, indexed=kind == 1)
            continue
        if kind == 9:  # DW_LLE_GNU_view_pair
            _, at = unsigned(data, at)
            _, at = unsigned(data, at)
            continue
        low, high, at = _bounds(unit, data, at, kind, base)
        length, at = unsigned(data, at)
        expression, at = data[at : at + length], at + length
        if kind == 5:
            default = expression
        elif low <= entry < high:
            return expression
    return default


def _bounds(unit: Unit, data: bytes, at: int, kind: int, base: int) -> tuple[int, int, int]:
    if kind == 5:  # default_location
        return 0, 0, at
    if kind == 4:  # offset_pair
        low, at = unsigned(data, at)
        high, at = unsigned(data, at)
        return base + low, base + high, at
    if kind not in (2, 3, 7, 8):
        raise ValueError(f"location entry {kind}")
    low, at = _address(unit, data, at, indexed=kind in (2, 3))
    if kind in (3, 8):
        length, at = unsigned(data, at)
        return low, low + length, at
    high, at = _address(unit, data, at, indexed=kind == 2)
    return low, high, at


def _address(unit: Unit, data: bytes, at: int, *, indexed: bool) -> tuple[int, int]:
    if indexed:
        index, at = unsigned(data, at)
        return unit.file.address(unit, dw.F_ADDRX, index), at
    (address,) = struct.unpack_from("<Q", data, at)
    return address, at + 8
