"""Rust's own convention, as far as every rustc since 2018 has it (rustc: fn_abi_adjust_for_abi; layout: univariant, layout_of_enum).

A scalar travels as it is; two scalars as two; smaller aggregates as an integer; what is larger than two words behind a pointer. A function of Rust may be
`extern "C"` without saying so in debug info: what C would pass otherwise is `unknown` then, except for tuples and enums with payload, which C has not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from actors.indexer.abi import INTEGER, NOTHING, REFERENCE, TWO_WORDS, UNKNOWN, Passing, Piece, scalar
from actors.indexer.abi_aggregates import IN_REGISTERS, Unclear, classes_of
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.types import AGGREGATE_TAGS, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry

_FAT: Final = (["data_ptr", "length"], ["pointer", "vtable"])
_NESTING_MAX: Final = 16
_WORD: Final = 8
_WIDE: Final = 16  # of i128 and u128


def rust_aggregate(entry: Entry, nesting: int = 0) -> Passing:
    size = entry.number(dw.BYTE_SIZE)
    if size is None or nesting > _NESTING_MAX:
        return UNKNOWN
    if size == 0:
        return NOTHING
    if size > IN_REGISTERS:
        return _wide_pair(entry, size, nesting) if size <= 2 * _WIDE and _is_wide_pair(entry) else REFERENCE
    if entry.tag == dw.UNION_TYPE:
        return UNKNOWN
    children = list(entry.children())
    variants = next((child for child in children if child.tag == dw.VARIANT_PART), None)
    if variants is not None:
        return _enum(variants, size, nesting)
    members = _sized([child for child in children if child.tag == dw.MEMBER])
    if len(members) == 1 and size_of(type_of(members[0])) == size:
        return _of(type_of(members[0]), nesting)
    names = [member.text(dw.NAME) for member in members]
    if size == 2 * _WORD and names in _FAT:
        return Passing("registers", TWO_WORDS, size, separate=True)
    is_tuple = (entry.text(dw.NAME) or "").startswith("(")
    pair = _pair([(_offset(member), type_of(member)) for member in members], size, nesting) if len(members) == 2 else None
    if pair is not None:
        return pair if is_tuple or _as_in_c(entry, size) == pair.pieces else UNKNOWN
    return Passing("registers", (Piece("integer", 0, size),)) if size <= _WORD and (is_tuple or _as_in_c(entry, size)) else UNKNOWN


def _is_wide_pair(entry: Entry) -> bool:
    """Two scalars of which one has 16 bytes: they travel in three registers or more, not behind a pointer."""
    children = list(entry.children())
    variants = next((child for child in children if child.tag == dw.VARIANT_PART), None)
    if variants is not None:
        told_by = variants.reference(dw.DISCR)
        return told_by is not None and size_of(type_of(told_by)) == _WIDE
    members = _sized([child for child in children if child.tag == dw.MEMBER])
    return len(members) <= 2 and any(_is_wide(type_of(member)) for member in members)


def _wide_pair(entry: Entry, size: int, nesting: int) -> Passing:
    """A tuple or an enum of two scalars: an argument each. Where their registers do not suffice, what comes then depends on the compiler's version."""
    children = list(entry.children())
    variants = next((child for child in children if child.tag == dw.VARIANT_PART), None)
    told_by = None if variants is None else variants.reference(dw.DISCR)
    if variants is not None:
        found = [one for child in variants.children() if child.tag == dw.VARIANT for one in _payload(child)]
        fields = [(0 if told_by is None else _offset(told_by), None if told_by is None else type_of(told_by)), *found]
    else:
        members = _sized([child for child in children if child.tag == dw.MEMBER])
        fields = [(_offset(member), type_of(member)) for member in members]
    is_tuple = (entry.text(dw.NAME) or "").startswith("(")
    if len(fields) != 2 or (variants is None and not is_tuple) or size != 2 * _WIDE:
        return UNKNOWN
    pieces: list[Piece] = []
    for (offset, kind), place in zip(sorted(fields, key=lambda field: field[0]), (0, _WIDE), strict=True):
        one = _wide_pieces(kind, offset, nesting)
        if one is None or offset != place:
            return UNKNOWN
        pieces += one
    return Passing("registers", tuple(pieces), size, _WIDE, parts=True, separate=True)


def _wide_pieces(kind: Entry | None, offset: int, nesting: int) -> tuple[Piece, ...] | None:
    how = _of(kind, nesting)
    if _is_wide(kind):
        return tuple(replace(piece, offset=offset + piece.offset) for piece in TWO_WORDS) if how.pieces == TWO_WORDS else None
    piece = _piece(kind, offset, nesting)
    return None if piece is None else (piece,)


def _is_wide(entry: Entry | None) -> bool:
    found = strip(entry)
    for _ in range(_NESTING_MAX):
        if found is None or found.tag not in AGGREGATE_TAGS or found.number(dw.BYTE_SIZE) != _WIDE:
            break
        members = _sized([child for child in found.children() if child.tag == dw.MEMBER])
        if len(members) != 1:
            break
        found = strip(type_of(members[0]))
    return found is not None and found.tag == dw.BASE_TYPE and found.number(dw.BYTE_SIZE) == _WIDE


def _of(entry: Entry | None, nesting: int) -> Passing:
    found = strip(entry)
    if found is None:
        return NOTHING
    return rust_aggregate(found, nesting + 1) if found.tag in AGGREGATE_TAGS else scalar(found, "rust")


def _sized(members: list[Entry]) -> list[Entry]:
    return [member for member in members if size_of(type_of(member)) != 0]


def _offset(member: Entry) -> int:
    return member.number(dw.DATA_MEMBER_LOCATION) or 0


def _as_in_c(entry: Entry, size: int) -> tuple[Piece, ...] | None:
    """The pieces of the same fields in a C struct, each as large as the field in it where that fills none."""
    try:
        classes = classes_of(entry, size)
    except Unclear:
        return None
    ends = {_offset(member) // 8: _offset(member) % 8 + (size_of(type_of(member)) or 0) for member in entry.children() if member.tag == dw.MEMBER}
    if any(one not in ("integer", "sse") for one in classes) or (size <= _WORD and classes != ["integer"]):
        return None
    return tuple(Piece("integer" if one == "integer" else "sse", 8 * at, ends.get(at, 8)) for at, one in enumerate(classes))


def _piece(kind: Entry | None, offset: int, nesting: int) -> Piece | None:
    """Of a scalar; None for anything else."""
    how, size = _of(kind, nesting), size_of(kind)
    if how.kind != "registers" or len(how.pieces) != 1 or how.pieces[0].kind == "vector" or size not in (1, 2, 4, 8):
        return None
    return Piece(how.pieces[0].kind, offset, size)


def _pair(fields: list[tuple[int, Entry | None]], size: int, nesting: int) -> Passing | None:
    """Two scalars, one after the other as their alignment has it."""
    pieces = [_piece(kind, offset, nesting) for offset, kind in sorted(fields, key=lambda field: field[0])]
    first, second = pieces
    if first is None or second is None or first.offset != 0 or second.offset != max(first.size, second.size):
        return None
    end, align = second.offset + second.size, max(first.size, second.size)
    return Passing("registers", (first, second), size, align, separate=True) if (end + align - 1) // align * align == size else None


def _enum(part: Entry, size: int, nesting: int) -> Passing:
    """One whose only payload holds the discriminant in a niche is that payload; one with a tag and one scalar at the same place in every variant
    that has any is the two."""
    told_by = part.reference(dw.DISCR)
    if told_by is None:
        return UNKNOWN
    payloads = [found for child in part.children() if child.tag == dw.VARIANT for found in _payload(child)]
    tag = _piece(type_of(told_by), _offset(told_by), nesting)
    if tag is None or any(kind is None for _, kind in payloads):
        return UNKNOWN
    if len(payloads) == 1 and payloads[0][0] == 0 and size_of(payloads[0][1]) == size:
        alone = _of(payloads[0][1], nesting)
        if alone.kind == "registers" and alone.separate and len(alone.pieces) == 2:
            return alone  # Option<&str>: the niche is in one of the two
        return INTEGER if alone.kind == "registers" and alone.pieces[0].kind == "integer" and len(alone.pieces) == 1 and size <= _WORD else UNKNOWN
    pieces = {_piece(kind, offset, nesting) for offset, kind in payloads}
    if len(pieces) != 1 or tag.offset != 0:
        return UNKNOWN
    offset, kind = payloads[0]
    return _pair([(0, type_of(told_by)), (offset, kind)], size, nesting) or UNKNOWN


def _payload(variant: Entry) -> list[tuple[int, Entry | None]]:
    """(offset, type) of a variant's one field; with None for the type where it has several; empty where it has none."""
    found: list[tuple[int, Entry | None]] = []
    for member in variant.children():
        kind = strip(type_of(member)) if member.tag == dw.MEMBER else None
        if kind is not None:
            inner = _sized([child for child in kind.children() if child.tag == dw.MEMBER])
            found += [(_offset(member) + _offset(child), type_of(child)) for child in inner]
    return found if len(found) < 2 else [(0, None)]
