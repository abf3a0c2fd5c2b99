"""Types as entries say them: stripped of typedefs and qualifiers, and measured."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.unit import Entry

_DEPTH_MAX: Final = 64
_ALIASES: Final = frozenset({dw.TYPEDEF, dw.CONST_TYPE, dw.VOLATILE_TYPE, dw.RESTRICT_TYPE, dw.ATOMIC_TYPE, dw.IMMUTABLE_TYPE})
POINTER_TAGS: Final = frozenset({dw.POINTER_TYPE, dw.REFERENCE_TYPE, dw.RVALUE_REFERENCE_TYPE})
AGGREGATE_TAGS: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})


def type_of(entry: Entry) -> Entry | None:
    """DW_AT_type; None is void."""
    return entry.reference(dw.TYPE)


def strip(entry: Entry | None) -> Entry | None:
    """The type behind typedefs and qualifiers; None is void."""
    for _ in range(_DEPTH_MAX):
        if entry is None or entry.tag not in _ALIASES:
            break
        entry = type_of(entry)
    return defined(entry)


def defined(entry: Entry | None) -> Entry | None:
    """A declaration in one unit whose definition is in a type unit (DW_AT_signature)."""
    if entry is not None and entry.has(dw.SIGNATURE):
        return entry.reference(dw.SIGNATURE)
    return entry


def size_of(entry: Entry | None, depth: int = 0) -> int | None:
    """Bytes; None when unknown (incomplete types, flexible arrays) and for void."""
    found = strip(entry)
    if found is None or depth > _DEPTH_MAX:
        return None
    if found.tag in POINTER_TAGS:
        return found.number(dw.BYTE_SIZE) or 8
    size = found.number(dw.BYTE_SIZE)
    if size is not None or found.tag != dw.ARRAY_TYPE:
        return size
    count = count_of(found)
    element = None if count is None else size_of(type_of(found), depth + 1)
    return None if element is None or count is None else element * count


def count_of(array: Entry) -> int | None:
    """Elements of an array, over all dimensions."""
    total = 1
    for count in extents(array):
        if count is None:
            return None
        total *= count
    return total


def extents(array: Entry) -> list[int | None]:
    """Elements in each dimension, outermost first; None where it is not known, or only when the program runs."""
    return [_extent(child) for child in array.children() if child.tag in (dw.SUBRANGE_TYPE, dw.ENUMERATION_TYPE)]


def is_dynamic(array: Entry) -> bool:
    """A bound is told by an expression or by a variable: a variable length array."""
    ranges = [child for child in array.children() if child.tag == dw.SUBRANGE_TYPE]
    return any(child.has(attribute) and _bound(child, attribute) is None for child in ranges for attribute in (dw.UPPER_BOUND, dw.COUNT))


def _extent(dimension: Entry) -> int | None:
    count, upper = _bound(dimension, dw.COUNT), _bound(dimension, dw.UPPER_BOUND)
    if count is None and upper is not None:
        count = upper + 1 - (dimension.number(dw.LOWER_BOUND) or 0)
    return None if count is None or count < 0 else count


def _bound(dimension: Entry, attribute: int) -> int | None:
    """A bound that is a constant. GCC writes -1 for the upper bound of an array of no elements, as wide as the index type is."""
    form, value = dimension.attributes.get(attribute, (0, b""))
    if isinstance(value, bytes) or form not in dw.CONSTANTS:
        return None
    return -1 if form == 0x07 and value == (1 << 64) - 1 else value
