"""Classes, structs and unions by value (psABI §3.2.3, "Classification"): each eightbyte gets a class from the fields in it."""

from __future__ import annotations

from typing import Final, Literal

from actors.indexer.abi import LONG_DOUBLE, NOTHING, REFERENCE, UNKNOWN, VECTOR, Language, Passing, Piece, scalar
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.triviality import is_trivial
from actors.indexer.dwarf.types import AGGREGATE_TAGS, count_of, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry

Class = Literal["none", "integer", "sse", "sseup", "x87", "x87up", "memory"]
IN_REGISTERS: Final = 16  # bytes; what is larger travels in memory
_MEMBERS_MAX: Final = 64
_NESTING_MAX: Final = 8
_UNCLEAR: Final = 32  # an alignment that no rule here accepts
_X87: Final = frozenset({"x87", "x87up"})
_FIELDS: Final = frozenset({dw.MEMBER, dw.INHERITANCE, dw.VARIANT_PART})


class Unclear(Exception):
    """Debug info does not say enough to classify the type."""


def aggregate(entry: Entry, language: Language) -> Passing:
    size = entry.number(dw.BYTE_SIZE)
    if size is None or entry.has(dw.DECLARATION):
        return UNKNOWN
    convention = entry.number(dw.CALLING_CONVENTION)
    told = {dw.CC_PASS_BY_VALUE: True, dw.CC_PASS_BY_REFERENCE: False}.get(convention or 0)
    trivial = True if language == "c" else is_trivial(entry) if told is None else told
    if trivial is None:
        return UNKNOWN
    if not trivial:
        return REFERENCE
    if size == 0:
        return NOTHING
    align = max(8, entry.number(dw.ALIGNMENT) or 1, alignment(entry))
    if size > IN_REGISTERS:
        return Passing("memory", (), size, align) if align <= 16 else UNKNOWN
    try:
        return _by_classes(classes_of(entry, size), size, align, language)
    except Unclear:
        return UNKNOWN


def _by_classes(classes: list[Class], size: int, align: int, language: Language) -> Passing:
    if "memory" in classes:
        return Passing("memory", (), size, 8)  # fields that are not aligned: the whole is not, either
    if align > 16 or (classes[0] == "none" and any(one != "none" for one in classes)):
        return UNKNOWN
    if classes[0] == "none":
        return NOTHING if language == "c++" else UNKNOWN  # an empty class
    if classes[0] == "x87":
        return LONG_DOUBLE
    if classes[1:] == ["sseup"]:
        return VECTOR
    pieces = tuple(Piece("sse" if one == "sse" else "integer", 8 * at, min(8, size - 8 * at)) for at, one in enumerate(classes) if one != "none")
    return Passing("registers", pieces, size, align)


def classes_of(entry: Entry, size: int) -> list[Class]:
    """Of at most 16 bytes. Raises Unclear."""
    classes: list[Class] = ["none"] * ((size + 7) // 8)
    _merge_fields(entry, 0, classes, 0)
    for index, one in enumerate(classes):
        before = classes[index - 1] if index else "none"
        if one == "x87up" and before != "x87":
            return ["memory"]
        if one == "sseup" and before not in ("sse", "sseup"):
            classes[index] = "sse"
    return ["memory"] if "memory" in classes else classes


def _merge_fields(entry: Entry, base: int, classes: list[Class], nesting: int) -> None:
    members = [child for child in entry.children() if child.tag in _FIELDS]
    if nesting > _NESTING_MAX or len(members) > _MEMBERS_MAX:
        raise Unclear
    for member in members:
        if member.tag == dw.VARIANT_PART:
            raise Unclear
        if member.has(dw.EXTERNAL) or member.has(dw.DECLARATION):
            continue  # a static member
        bits = member.number(dw.BIT_SIZE)
        if bits is not None:
            _merge_bits(member, bits, base, classes)
            continue
        offset = member.number(dw.DATA_MEMBER_LOCATION)
        if offset is None and member.has(dw.DATA_MEMBER_LOCATION):
            raise Unclear
        _merge_type(type_of(member), base + (offset or 0), classes, nesting)


def _merge_bits(member: Entry, bits: int, base: int, classes: list[Class]) -> None:
    start = member.number(dw.DATA_BIT_OFFSET)
    if start is None:  # as DWARF 3 has it: somewhere in its storage unit, which is aligned
        offset, storage = member.number(dw.DATA_MEMBER_LOCATION), member.number(dw.BYTE_SIZE) or size_of(type_of(member))
        high = member.number(dw.BIT_OFFSET) or 0
        if offset is None or storage is None or high + bits > 8 * storage:
            raise Unclear
        start = 8 * (offset + storage) - high - bits
    for index in range((8 * base + start) // 64, (8 * base + start + bits - 1) // 64 + 1):
        _put(classes, index, "integer")


def _merge_type(entry: Entry | None, at: int, classes: list[Class], nesting: int) -> None:
    found = strip(entry)
    size = size_of(found)
    if found is None or size is None:
        raise Unclear
    if found.tag in AGGREGATE_TAGS:
        _merge_fields(found, at, classes, nesting + 1)
        return
    if found.tag == dw.ARRAY_TYPE and not found.has(dw.GNU_VECTOR):
        count, element = count_of(found), size_of(type_of(found))
        if count is None or not element or count > IN_REGISTERS:
            raise Unclear
        for index in range(count):
            _merge_type(type_of(found), at + index * element, classes, nesting + 1)
        return
    if at % _scalar_alignment(found, size):
        classes[:] = ["memory"] * len(classes)
        return
    for index, one in enumerate(_scalar_classes(found), at // 8):
        _put(classes, index, one)
    if (at + size - 1) // 8 > at // 8 and size <= 8:
        _put(classes, at // 8 + 1, "sse")  # complex float across two eightbytes


def _scalar_classes(found: Entry) -> tuple[Class, ...]:
    how = scalar(found, "c")
    if how == VECTOR:
        if found.tag == dw.BASE_TYPE and not (found.unit.root.text(dw.PRODUCER) or "").startswith("GNU "):
            raise Unclear  # Clang before 16 has such structs in memory
        return "sse", "sseup"
    if how == LONG_DOUBLE:
        return "x87", "x87up"
    if how.kind != "registers":
        raise Unclear
    return tuple("integer" if piece.kind == "integer" else "sse" for piece in how.pieces)


def _put(classes: list[Class], index: int, one: Class) -> None:
    if index >= len(classes):
        raise Unclear
    before = classes[index]
    if before in ("none", one):
        classes[index] = one
    elif "memory" in (before, one):
        classes[index] = "memory"
    elif "integer" in (before, one):
        classes[index] = "integer"
    else:
        classes[index] = "memory" if before in _X87 or one in _X87 else "sse"


def _scalar_alignment(found: Entry, size: int) -> int:
    return max(1, size // 2 if found.tag == dw.BASE_TYPE and found.number(dw.ENCODING) == dw.ATE_COMPLEX else min(size, 16))


def alignment(entry: Entry | None, nesting: int = 0) -> int:
    """Natural alignment, as far as its members tell; 1 where a member is not where that puts it; 32 where it is not clear."""
    found = strip(entry)
    if found is None or nesting > _NESTING_MAX:
        return _UNCLEAR
    if found.tag in AGGREGATE_TAGS:
        return _fields_alignment(found, nesting)
    if found.tag == dw.ARRAY_TYPE and not found.has(dw.GNU_VECTOR):
        return alignment(type_of(found), nesting + 1)
    size = size_of(found)
    if found.tag == dw.ARRAY_TYPE:
        return min(size or _UNCLEAR, _UNCLEAR)
    return _scalar_alignment(found, size) if size else 1


def _fields_alignment(found: Entry, nesting: int) -> int:
    widest = found.number(dw.ALIGNMENT) or 1
    parts = [child for child in found.children() if child.tag in (dw.MEMBER, dw.INHERITANCE) and not child.has(dw.EXTERNAL)]
    for part in parts[: _MEMBERS_MAX * 4]:
        own = max(alignment(type_of(part), nesting + 1), part.number(dw.ALIGNMENT) or 1)
        if part.tag == dw.MEMBER and not part.has(dw.BIT_SIZE) and (part.number(dw.DATA_MEMBER_LOCATION) or 0) % own:
            return found.number(dw.ALIGNMENT) or 1  # packed
        widest = max(widest, own)
    return widest if (found.number(dw.BYTE_SIZE) or 0) % widest == 0 else 1
