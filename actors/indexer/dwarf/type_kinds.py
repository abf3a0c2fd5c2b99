"""Descriptions of types other than records, from their entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.type_members import in_width
from actors.indexer.dwarf.type_numbering import Numbering
from actors.indexer.dwarf.type_records import record
from actors.indexer.dwarf.types import extents, is_dynamic, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry
from strobe.model import type_nodes as nodes

ENUMERATORS_MAX: Final = 4096
_SIGNED: Final = frozenset({dw.ATE_SIGNED, dw.ATE_SIGNED_CHAR})
_WIDE: Final = frozenset({"char8_t", "char16_t", "char32_t", "wchar_t"})  # compilers write char8_t and wchar_t as plain numbers
_POINTER_FORMS: Final[dict[int, Literal["pointer", "lvalue", "rvalue"]]] = {
    dw.POINTER_TYPE: "pointer",
    dw.REFERENCE_TYPE: "lvalue",
    dw.RVALUE_REFERENCE_TYPE: "rvalue",
}
_QUALIFIERS: Final[dict[int, Literal["const", "volatile", "restrict", "atomic"]]] = {
    dw.CONST_TYPE: "const",
    dw.IMMUTABLE_TYPE: "const",
    dw.VOLATILE_TYPE: "volatile",
    dw.RESTRICT_TYPE: "restrict",
    dw.ATOMIC_TYPE: "atomic",
}
_OPAQUE_FORMS: Final[dict[int, Literal["struct", "class", "union", "enum"]]] = {
    dw.STRUCTURE_TYPE: "struct",
    dw.CLASS_TYPE: "class",
    dw.UNION_TYPE: "union",
    dw.ENUMERATION_TYPE: "enum",
}


def describe(entry: Entry, numbering: Numbering) -> nodes.Node:
    """Raises DwarfError."""
    if entry.has(dw.DECLARATION) and entry.tag in _OPAQUE_FORMS:
        return nodes.Opaque(numbering.name(entry), numbering.language(entry), _OPAQUE_FORMS[entry.tag])
    kind = _BY_TAG.get(entry.tag)
    if kind is None:
        return nodes.Opaque(numbering.name(entry), numbering.language(entry), "unknown", f"entry {entry.offset:#x} has tag {entry.tag:#x}, which is no type's")
    return kind(entry, numbering)


def name_only(entry: Entry, numbering: Numbering) -> nodes.Node:
    """Of a record that is too far away."""
    return nodes.Opaque(numbering.name(entry), numbering.language(entry), _OPAQUE_FORMS[entry.tag])


def _base(entry: Entry, numbering: Numbering) -> nodes.Node:
    name, language = numbering.name(entry), numbering.language(entry)
    size, encoding = entry.number(dw.BYTE_SIZE) or 0, entry.number(dw.ENCODING)
    if encoding in (dw.ATE_FLOAT, dw.ATE_DECIMAL_FLOAT):
        return nodes.Float(name, language, size, "decimal" if encoding == dw.ATE_DECIMAL_FLOAT else _float_format(name, size))
    if encoding == dw.ATE_COMPLEX:
        return nodes.Complex(name, language, size, _float_format(name, size // 2))
    kind = _integer_encoding(name, encoding or 0)
    if kind is None or not 1 <= size <= 16:
        return nodes.Unspecified(name, language, size)
    return nodes.Integer(name, language, size, encoding in _SIGNED, kind)


def _integer_encoding(name: str, encoding: int) -> Literal["number", "char", "byte", "utf", "bool", "address"] | None:
    if encoding == dw.ATE_BOOLEAN:
        return "bool"
    if encoding == dw.ATE_ADDRESS:
        return "address"
    if encoding == dw.ATE_UTF or name in _WIDE:
        return "utf"
    if encoding in (dw.ATE_SIGNED_CHAR, dw.ATE_UNSIGNED_CHAR):
        return "char" if name == "char" else "byte"
    return "number" if encoding in (dw.ATE_SIGNED, dw.ATE_UNSIGNED) else None


def _float_format(name: str, size: int) -> nodes.FloatFormat:
    """The x87 format is `long double`'s, in 16 bytes like the quadruple one's; only the name tells them apart."""
    if size == 2:
        return "bfloat" if "bf16" in name else "half"
    if size == 16:
        return "quad" if "128" in name and "long double" not in name else "x87"
    known: dict[int, nodes.FloatFormat] = {4: "single", 8: "double", 10: "x87", 12: "x87"}
    return known.get(size, "unknown")


def _enumeration(entry: Entry, numbering: Numbering) -> nodes.Node:
    underlying = type_of(entry)
    size = size_of(entry) if entry.has(dw.BYTE_SIZE) else size_of(underlying)
    raw: list[tuple[str, int]] = []
    for child in entry.children():
        name, value = child.text(dw.NAME), child.number(dw.CONST_VALUE)
        if child.tag != dw.ENUMERATOR or name is None or value is None:
            continue
        if len(raw) >= ENUMERATORS_MAX or not numbering.room_for_part():
            numbering.cut += 1
            break
        raw.append((name, value))
    signed = _is_signed(entry, raw)
    values = tuple((name, in_width(value, size or 8, signed=signed)) for name, value in raw)
    number = None if underlying is None else numbering.number(underlying)
    flags, scoped = _are_flags([value for _, value in values]), entry.has(dw.ENUM_CLASS)
    return nodes.Enum(numbering.name(entry), numbering.language(entry), size, signed, number, values, flags, scoped)


def _is_signed(entry: Entry, raw: list[tuple[str, int]]) -> bool:
    underlying = strip(type_of(entry))
    encoding = entry.number(dw.ENCODING) if underlying is None else underlying.number(dw.ENCODING)
    return any(value < 0 for _, value in raw) if encoding is None else encoding in _SIGNED


def _are_flags(values: list[int]) -> bool:
    """At least two single bits, everything else a combination of them, and no plain count 0, 1, 2, 3…"""
    distinct = sorted(set(values))
    bits = [value for value in distinct if value > 0 and value & (value - 1) == 0]
    every = sum(bits)
    if len(bits) < 2 or any(value < 0 or value & ~every for value in distinct):
        return False
    return distinct[-1] - distinct[0] >= len(distinct)


def _pointer(entry: Entry, numbering: Numbering) -> nodes.Node:
    size = entry.number(dw.BYTE_SIZE) or 8
    return nodes.Pointer(numbering.name(entry), numbering.language(entry), size, numbering.number(type_of(entry), pointer=True), _POINTER_FORMS[entry.tag])


def _member_pointer(entry: Entry, numbering: Numbering) -> nodes.Node:
    target, owner = type_of(entry), entry.reference(dw.CONTAINING_TYPE)
    plain = strip(target)
    to_function = plain is not None and plain.tag == dw.SUBROUTINE_TYPE
    size = entry.number(dw.BYTE_SIZE) or (16 if to_function else 8)  # Itanium C++ ABI §2.3
    numbers = None if owner is None else numbering.number(owner, pointer=True), numbering.number(target, pointer=True)
    return nodes.MemberPointer(numbering.name(entry), numbering.language(entry), size, *numbers, to_function)


def _function(entry: Entry, numbering: Numbering) -> nodes.Node:
    parameters: list[int] = []
    variadic = False
    for child in entry.children():
        if child.tag == dw.FORMAL_PARAMETER and numbering.room_for_part():
            parameters.append(numbering.number(type_of(child), pointer=True))
        variadic = variadic or child.tag == dw.UNSPECIFIED_PARAMETERS
    return nodes.Function(numbering.name(entry), numbering.language(entry), numbering.number(type_of(entry), pointer=True), tuple(parameters), variadic)


def _array(entry: Entry, numbering: Numbering) -> nodes.Node:
    counts, element = tuple(extents(entry)), type_of(entry)
    bound: Literal["fixed", "flexible", "dynamic"] = "fixed"
    if None in counts or not counts:
        bound = "dynamic" if is_dynamic(entry) else "flexible"
    number = numbering.number(element)
    return nodes.Array(numbering.name(entry), numbering.language(entry), size_of(entry), number, counts or (None,), entry.has(dw.GNU_VECTOR), bound)


def _typedef(entry: Entry, numbering: Numbering) -> nodes.Node:
    return nodes.Typedef(numbering.name(entry), numbering.language(entry), numbering.number(type_of(entry)))


def _qualified(entry: Entry, numbering: Numbering) -> nodes.Node:
    return nodes.Qualified(numbering.name(entry), numbering.language(entry), numbering.number(type_of(entry)), _QUALIFIERS[entry.tag])


def _unspecified(entry: Entry, numbering: Numbering) -> nodes.Node:
    name = entry.text(dw.NAME) or "void"
    size = entry.number(dw.BYTE_SIZE)
    return nodes.Unspecified(name, numbering.language(entry), 8 if size is None and name == "decltype(nullptr)" else size)


_BY_TAG: Final[dict[int, Callable[[Entry, Numbering], nodes.Node]]] = {
    dw.BASE_TYPE: _base,
    dw.ENUMERATION_TYPE: _enumeration,
    dw.PTR_TO_MEMBER_TYPE: _member_pointer,
    dw.SUBROUTINE_TYPE: _function,
    dw.ARRAY_TYPE: _array,
    dw.TYPEDEF: _typedef,
    dw.UNSPECIFIED_TYPE: _unspecified,
    dw.STRUCTURE_TYPE: record,
    dw.CLASS_TYPE: record,
    dw.UNION_TYPE: record,
    **dict.fromkeys(_POINTER_FORMS, _pointer),
    **dict.fromkeys(_QUALIFIERS, _qualified),
}
