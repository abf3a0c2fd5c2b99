"""Types as entries say them: stripped of typedefs and qualifiers, named as a programmer writes them, measured."""

from __future__ import annotations

from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.scopes import qualifier
from actors.indexer.dwarf.unit import Entry

_DEPTH_MAX: Final = 64
_ALIASES: Final = frozenset({dw.TYPEDEF, dw.CONST_TYPE, dw.VOLATILE_TYPE, dw.RESTRICT_TYPE, dw.ATOMIC_TYPE, dw.IMMUTABLE_TYPE})
_QUALIFIERS: Final = {dw.CONST_TYPE: "const", dw.VOLATILE_TYPE: "volatile", dw.RESTRICT_TYPE: "restrict", dw.ATOMIC_TYPE: "_Atomic"}
_POINTERS: Final = {dw.POINTER_TYPE: "*", dw.REFERENCE_TYPE: "&", dw.RVALUE_REFERENCE_TYPE: "&&"}
_KEYWORDS: Final = {dw.STRUCTURE_TYPE: "struct", dw.CLASS_TYPE: "class", dw.UNION_TYPE: "union", dw.ENUMERATION_TYPE: "enum"}
_SCOPED: Final = frozenset({*_KEYWORDS, dw.TYPEDEF})
Style = Literal["c", "c++", "rust"]
_NAME_MAX: Final = 300
POINTER_TAGS: Final = frozenset(_POINTERS)
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


def size_of(entry: Entry | None) -> int | None:
    """Bytes; None when unknown (incomplete types, flexible arrays) and for void."""
    found = strip(entry)
    if found is None:
        return None
    if found.tag in _POINTERS:
        return found.number(dw.BYTE_SIZE) or 8
    size = found.number(dw.BYTE_SIZE)
    if size is not None or found.tag != dw.ARRAY_TYPE:
        return size
    element, count = size_of(type_of(found)), count_of(found)
    return None if element is None or count is None else element * count


def count_of(array: Entry) -> int | None:
    """Elements of an array, over all dimensions."""
    total = 1
    for child in array.children():
        if child.tag != dw.SUBRANGE_TYPE:
            continue
        upper, count = child.number(dw.UPPER_BOUND), child.number(dw.COUNT)
        if count is None:
            if upper is None:
                return None
            count = upper + 1
        total *= count
    return total


def type_name(entry: Entry | None, style: Style, depth: int = 0) -> str:
    """As in the source: C's `struct T`, C++'s `ns::T`, Rust's `T`."""
    if entry is None:
        return "void"
    if depth > _DEPTH_MAX:
        return "..."
    found = defined(entry)
    assert found is not None
    own = found.text(dw.NAME)
    if own is not None and found.tag not in _QUALIFIERS:
        if found.tag in _KEYWORDS and style == "c":
            own = f"{_KEYWORDS[found.tag]} {own}"
        elif style == "c++" and found.tag in _SCOPED:
            own = qualifier(found.unit, found.offset) + own
        return own[:_NAME_MAX]
    return _built(found, style, depth + 1)[:_NAME_MAX]


def _built(entry: Entry, style: Style, depth: int) -> str:
    inner = type_of(entry)
    if entry.tag in _QUALIFIERS:
        name = type_name(inner, style, depth)
        plain = defined(inner)
        after = plain is not None and plain.tag in POINTER_TAGS
        return f"{name}{_QUALIFIERS[entry.tag]}" if after else f"{_QUALIFIERS[entry.tag]} {name}"
    if entry.tag in _POINTERS:
        mark = _POINTERS[entry.tag]
        target = defined(inner)
        if target is not None and target.tag == dw.SUBROUTINE_TYPE:
            return _function(target, mark, style, depth)
        name = type_name(inner, style, depth)
        return f"{name}{mark}" if name.endswith(("*", "&")) else f"{name} {mark}"
    if entry.tag == dw.ARRAY_TYPE:
        count = count_of(entry)
        return f"{type_name(inner, style, depth)}[{'' if count is None else count}]"
    if entry.tag == dw.SUBROUTINE_TYPE:
        return _function(entry, "", style, depth)
    if entry.tag == dw.PTR_TO_MEMBER_TYPE:
        return f"{type_name(inner, style, depth)} ::*"
    return f"(anonymous {_KEYWORDS.get(entry.tag, 'type')})"


def _function(entry: Entry, mark: str, style: Style, depth: int) -> str:
    result = type_name(type_of(entry), style, depth)
    parts = [type_name(type_of(child), style, depth) for child in entry.children() if child.tag == dw.FORMAL_PARAMETER]
    return f"{result} ({mark})({', '.join(parts)})" if mark else f"{result} ({', '.join(parts)})"
