"""Where variables of static storage are (DWARF 5 §2.6, §4.1)."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.type_members import constant
from actors.indexer.dwarf.unit import Entry, Unit
from actors.indexer.leb import unsigned
from strobe.model.typed import Location

_ADDR: Final = 0x03
_CONST4U: Final = 0x0C
_CONST8U: Final = 0x0E
_PLUS_UCONST: Final = 0x23
_ADDRX: Final = (0xA1, 0xFB)  # DW_OP_addrx, DW_OP_GNU_addr_index
_CONSTX: Final = (0xA2, 0xFC)
_TLS: Final = (0x9B, 0xE0)  # DW_OP_form_tls_address, DW_OP_GNU_push_tls_address
_IMPLICIT_VALUE: Final = 0x9E
_REMOVED: Final = Location("removed")
_OTHER: Final = Location("other")


def location_of(variable: Entry) -> Location:
    """Raises DwarfError."""
    chain = origins(variable)
    for entry in chain:
        code = entry.block(dw.LOCATION)
        if code is not None:
            return _described(entry.unit, code)
        if entry.has(dw.LOCATION):
            return _OTHER  # a list: it is not in one place all the time
    value = next((constant(entry) for entry in chain if entry.has(dw.CONST_VALUE)), None)
    return _REMOVED if value is None else Location("constant", value)


def _described(unit: Unit, code: bytes) -> Location:
    if not code:
        return _REMOVED
    try:
        if code[0] == _IMPLICIT_VALUE:
            length, at = unsigned(code, 1)
            return Location("constant", code[at : at + length])
        value, at = _pushed(unit, code)
        if value is None:
            return _OTHER
        if code[0] in (_ADDR, _ADDRX[0], _ADDRX[1]):
            return _address(value, code[at:])
        return Location("thread_local", value) if len(code) == at + 1 and code[at] in _TLS else _OTHER
    except (IndexError, ValueError) as error:
        raise DwarfError(f"location {code[:32].hex()} is malformed") from error


def _pushed(unit: Unit, code: bytes) -> tuple[int | None, int]:
    """(the address or constant that comes first, position after it)."""
    if code[0] in (_ADDR, _CONST8U):
        if len(code) < 9:
            raise ValueError("cut short")
        return int.from_bytes(code[1:9], "little"), 9
    if code[0] == _CONST4U:
        return int.from_bytes(code[1:5], "little"), 5
    if code[0] in _ADDRX or code[0] in _CONSTX:
        index, at = unsigned(code, 1)
        return unit.file.address(unit, dw.F_ADDRX, index), at
    return None, 1


def _address(value: int, rest: bytes) -> Location:
    """LLVM puts several variables into one, each at its offset."""
    if not rest:
        return Location("address", value)
    if rest[0] in _TLS and len(rest) == 1:
        return Location("thread_local", value)
    if rest[0] != _PLUS_UCONST:
        return _OTHER
    offset, at = unsigned(rest, 1)
    return Location("address", value + offset) if at == len(rest) else _OTHER
