"""Rust's enums with payload: DW_TAG_variant_part (DWARF 5 §5.7.10), as rustc writes it for tagged and niche-encoded ones alike."""

from __future__ import annotations

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.type_members import in_width, integer_of, member
from actors.indexer.dwarf.type_numbering import Numbering
from actors.indexer.dwarf.types import type_of
from actors.indexer.dwarf.unit import Entry
from actors.indexer.leb import signed, unsigned
from strobe.model.type_nodes import Variant, VariantPart


def variant_part(entry: Entry, numbering: Numbering) -> VariantPart:
    told_by = entry.reference(dw.DISCR)
    width, sign = integer_of(None if told_by is None else type_of(told_by))
    discriminant = None if told_by is None else member(told_by, numbering)
    variants: list[Variant] = []
    for child in entry.children():
        if child.tag != dw.VARIANT:
            continue
        if not numbering.room_for_part():
            break
        members = tuple(member(part, numbering) for part in child.children() if part.tag == dw.MEMBER and numbering.room_for_part())
        variants.append(Variant(_values(child, width, sign), members))
    return VariantPart(discriminant, tuple(variants))


def _values(variant: Entry, width: int, sign: bool) -> tuple[tuple[int, int], ...] | None:
    one = variant.number(dw.DISCR_VALUE)
    if one is not None:
        written = dw.FIXED.get(variant.attributes[dw.DISCR_VALUE][0], 0)  # LLVM takes the shortest form that keeps the sign
        value = _in_width(one, written if sign and written else width, sign)
        return ((value, value),)
    written_out = variant.block(dw.DISCR_VALUE)  # of 16 bytes, as newer LLVM has them
    if written_out is not None:
        value = _in_width(int.from_bytes(written_out, "little"), max(width, len(written_out)), sign)
        return ((value, value),)
    listed = variant.block(dw.DISCR_LIST)
    return None if listed is None else _ranges(variant, listed, sign)


def _ranges(variant: Entry, listed: bytes, sign: bool) -> tuple[tuple[int, int], ...]:
    """DW_AT_discr_list: 0 and a value, or 1 and the two ends of a range (§7.10)."""
    read = signed if sign else unsigned
    found: list[tuple[int, int]] = []
    at = 0
    try:
        while at < len(listed):
            is_range, at = listed[at], at + 1
            low, at = read(listed, at)
            high, at = read(listed, at) if is_range else (low, at)
            found.append((low, high))
    except (IndexError, ValueError) as error:
        raise DwarfError(f"list of discriminant values at {variant.offset:#x} is malformed") from error
    return tuple(found)


def _in_width(value: int, width: int, sign: bool) -> int:
    """128-bit discriminants are sent in 64 bits where they fit; rustc makes no others."""
    value = in_width(value, width, signed=sign)
    if not -(1 << 63) <= value < 1 << 64:
        raise DwarfError(f"discriminant value {value:#x} has more than 64 bits")
    return value
