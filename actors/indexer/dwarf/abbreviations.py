"""Abbreviation tables: the shape of entries, with the number of bytes an entry of that shape takes where that is fixed (DWARF 5 §7.5.3)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from actors.indexer.dwarf import constants as dw
from actors.indexer.leb import signed, unsigned

_ATTRIBUTES_MAX: Final = 1000
_SHAPES_MAX: Final = 50_000
# What comes after a code: tag, whether there are children, (attribute, form, and what follows DW_FORM_implicit_const) any number of times, (0, 0)
_WRITTEN: Final = re.compile(
    rb"[\x80-\xff]{0,4}[\x00-\x7f][\x00\x01]"
    rb"(?:(?!\0\0)[\x80-\xff]{0,4}[\x00-\x7f](?:\x21[\x80-\xff]{0,9}[\x00-\x7f]|[\x00-\x20\x22-\x7f]|[\x80-\xff]{1,4}[\x00-\x7f])){0,1000}\0\0"
)


class DwarfError(Exception):
    """Debug info is malformed, or of a kind this reader does not know. Says where, in words."""


Step = tuple[int, int]
# Kinds of steps over an entry's attributes; the number with each is a count of bytes
FIXED, ULEB, ULEB_BLOCK, BLOCK, STRING, SIBLING, INDIRECT = range(7)


class Abbreviation(NamedTuple):
    """`fixed`: bytes of all attributes, or -1. `steps`: how to step over them, adjacent fixed ones merged, the sibling on its own."""

    code: int
    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]  # (attribute, form, implicit constant)
    fixed: int
    steps: tuple[Step, ...]
    has_address: bool  # DW_AT_low_pc or DW_AT_ranges
    low_pc_at: int  # where DW_AT_low_pc is among the attributes, when it is an address and all before it are fixed; or -1
    has_sibling: bool
    names: frozenset[int]  # of its attributes


def read_table(data: bytes, offset: int, offset_bytes: int, wanted: int = 0) -> dict[int, Abbreviation]:
    """The table at `offset`, by code; with `wanted`, only as far as that code. Raises DwarfError."""
    table: dict[int, Abbreviation] = {}
    at = offset
    known = _shapes[offset_bytes]
    match, make = _WRITTEN.match, Abbreviation._make
    try:
        while True:
            code, after = (data[at], at + 1) if data[at] < 0x80 else unsigned(data, at)
            if code == 0 or code in table:
                return table
            found = match(data, after)
            shape = None if found is None else known.get(found[0])
            if found is not None and shape is not None:
                table[code], at = make((code, *shape)), found.end()
            else:
                table[code], at = _read_one(data, after, code, offset_bytes)
            if code == wanted:
                return table
    except (IndexError, ValueError) as error:
        raise DwarfError(f"abbreviation table at {offset:#x} is malformed") from error


def _read_one(data: bytes, at: int, code: int, offset_bytes: int) -> tuple[Abbreviation, int]:
    start = at
    tag, at = unsigned(data, at)
    children, at = data[at] == 1, at + 1
    attributes: list[tuple[int, int, int]] = []
    while len(attributes) < _ATTRIBUTES_MAX:
        attribute = data[at]
        at += 1
        if attribute & 0x80:
            attribute, at = unsigned(data, at - 1)
        form = data[at]
        at += 1
        if form & 0x80:
            form, at = unsigned(data, at - 1)
        implicit = 0
        if form == dw.F_IMPLICIT_CONST:
            implicit, at = signed(data, at)
        if attribute == 0 and form == 0:
            known = _shapes[offset_bytes]
            if len(known) >= _SHAPES_MAX:
                known.clear()
            shape = known[data[start:at]] = (tag, children, *_measured(tuple(attributes), offset_bytes))
            return Abbreviation(code, *shape), at
        attributes.append((attribute, form, implicit))
    raise ValueError("too many attributes")


Measured = tuple[tuple[tuple[int, int, int], ...], int, tuple[Step, ...], bool, int, bool, frozenset[int]]  # Abbreviation's fields from `attributes` on
_shapes: Final[dict[int, dict[bytes, tuple[int, bool, *Measured]]]] = {4: {}, 8: {}}  # by what is written after the code: units have many in common


def _measured(attributes: tuple[tuple[int, int, int], ...], offset_bytes: int) -> Measured:
    steps: list[Step] = []
    fixed, low_pc_at, last, has_address, has_sibling = 0, -1, -1, False, False
    for attribute, form, _ in attributes:
        kind, size = _step(attribute, form, offset_bytes)
        has_address |= attribute in (dw.LOW_PC, dw.RANGES)
        has_sibling |= kind == SIBLING
        if attribute == dw.LOW_PC and form == dw.F_ADDR and not has_sibling:
            low_pc_at = fixed
        fixed = fixed + size if fixed >= 0 and kind in (FIXED, SIBLING) else -1
        if kind == last == FIXED:
            size += steps.pop()[1]
        steps.append((kind, size))
        last = kind
    return attributes, fixed, tuple(steps), has_address, low_pc_at, has_sibling, frozenset(one[0] for one in attributes)


def _step(attribute: int, form: int, offset_bytes: int) -> Step:
    size = offset_bytes if form in dw.SECTION_OFFSETS else dw.FIXED.get(form)
    if size is not None:
        return (SIBLING if attribute == dw.SIBLING and form in (0x11, 0x12, 0x13, 0x14) else FIXED), size
    if form in dw.ULEBS or form == 0x0D:
        return ULEB, 0
    if form in (0x09, dw.F_EXPRLOC):
        return ULEB_BLOCK, 0
    if form in dw.BLOCKS:
        return BLOCK, dw.BLOCKS[form]
    if form == dw.F_STRING:
        return STRING, 0
    if form == dw.F_INDIRECT:
        return INDIRECT, 0
    raise ValueError(f"form {form:#x}")


def step_over(data: bytes, at: int, abbreviation: Abbreviation) -> tuple[int, int]:
    """(position after the attributes that begin at `at`, DW_AT_sibling's value or 0). Raises IndexError and ValueError."""
    sibling = 0
    for kind, size in abbreviation.steps:
        if kind == FIXED:
            at += size
        elif kind == ULEB_BLOCK:
            length = data[at]
            at += 1
            if length & 0x80:
                length, at = unsigned(data, at - 1)
            at += length
        elif kind == ULEB:
            while data[at] & 0x80:
                at += 1
            at += 1
        elif kind == SIBLING:
            sibling = int.from_bytes(data[at : at + size], "little")
            at += size
        elif kind == STRING:
            at = data.index(0, at) + 1
        elif kind == BLOCK:
            at += size + int.from_bytes(data[at : at + size], "little")
        else:
            raise ValueError("indirect form")
    return at, sibling
