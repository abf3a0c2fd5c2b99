"""Abbreviation tables: the shape of entries, with the number of bytes an entry of that shape takes where that is fixed (DWARF 5 §7.5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.leb import signed, unsigned

_ATTRIBUTES_MAX: Final = 1000


class DwarfError(Exception):
    """Debug info is malformed, or of a kind this reader does not know. Says where, in words."""


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """`fixed`: bytes of all attributes, or -1. `sibling`: offset of DW_AT_sibling within them, where only fixed ones precede it; or -1."""

    code: int
    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]  # (attribute, form, implicit constant)
    fixed: int
    sibling: int
    sibling_bytes: int
    has_address: bool  # DW_AT_low_pc or DW_AT_ranges


def read_table(data: bytes, offset: int, offset_bytes: int, wanted: int = 0) -> dict[int, Abbreviation]:
    """The table at `offset`, by code; with `wanted`, only as far as that code. Raises DwarfError."""
    table: dict[int, Abbreviation] = {}
    at = offset
    try:
        while True:
            code, at = unsigned(data, at)
            if code == 0 or code in table:
                return table
            abbreviation, at = _read_one(data, at, code, offset_bytes)
            table[code] = abbreviation
            if code == wanted:
                return table
    except (IndexError, ValueError) as error:
        raise DwarfError(f"abbreviation table at {offset:#x} is malformed") from error


def _read_one(data: bytes, at: int, code: int, offset_bytes: int) -> tuple[Abbreviation, int]:
    tag, at = unsigned(data, at)
    children, at = data[at] == 1, at + 1
    attributes: list[tuple[int, int, int]] = []
    while len(attributes) < _ATTRIBUTES_MAX:
        attribute, at = unsigned(data, at)
        form, at = unsigned(data, at)
        implicit = 0
        if form == dw.F_IMPLICIT_CONST:
            implicit, at = signed(data, at)
        if attribute == 0 and form == 0:
            return _shape(code, tag, children, tuple(attributes), offset_bytes), at
        attributes.append((attribute, form, implicit))
    raise ValueError("too many attributes")


def _shape(code: int, tag: int, children: bool, attributes: tuple[tuple[int, int, int], ...], offset_bytes: int) -> Abbreviation:
    fixed, sibling, sibling_bytes = 0, -1, 0
    for attribute, form, _ in attributes:
        size = offset_bytes if form in dw.SECTION_OFFSETS else dw.FIXED.get(form, -1)
        if attribute == dw.SIBLING and fixed >= 0 and form in (0x11, 0x12, 0x13, 0x14):
            sibling, sibling_bytes = fixed, size
        fixed = -1 if size < 0 or fixed < 0 else fixed + size
    has_address = any(attribute in (dw.LOW_PC, dw.RANGES) for attribute, _, _ in attributes)
    return Abbreviation(code, tag, children, attributes, fixed, sibling, sibling_bytes, has_address)
