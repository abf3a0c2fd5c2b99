"""How a value of a type is decoded and shown: integers, floats, enums, pointers, C strings; anything else is `opaque` for now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import Language
from actors.indexer.dwarf.types import AGGREGATE_TAGS, POINTER_TAGS, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry
from strobe.model.probe import Scalar

ENUMERATORS_MAX: Final = 1024
_BY_ENCODING: Final[dict[int, Scalar]] = {
    dw.ATE_ADDRESS: "pointer",
    dw.ATE_BOOLEAN: "bool",
    dw.ATE_FLOAT: "float",
    dw.ATE_SIGNED: "int",
    dw.ATE_SIGNED_CHAR: "int",
    dw.ATE_UNSIGNED: "uint",
    dw.ATE_UNSIGNED_CHAR: "uint",
    dw.ATE_UTF: "char",
}


@dataclass(frozen=True, slots=True)
class Shape:
    scalar: Scalar
    size: int  # bytes captured; 0 for opaque and for C strings
    enumerators: dict[str, int] | None = None


OPAQUE: Final = Shape("opaque", 0)


def shape(entry: Entry | None, language: Language) -> Shape:
    found = strip(entry)
    if found is None:
        return OPAQUE
    if found.tag in POINTER_TAGS:
        return _pointer(found, language)
    if found.tag == dw.ENUMERATION_TYPE:
        size = size_of(found)
        return Shape("enum", size, _enumerators(found, size)) if size in (1, 2, 4, 8) else OPAQUE
    if found.tag == dw.BASE_TYPE:
        return _base(found)
    if found.tag == dw.UNSPECIFIED_TYPE and found.text(dw.NAME) == "decltype(nullptr)":
        return Shape("pointer", 8)
    if found.tag in AGGREGATE_TAGS and language == "rust":
        return _newtype(found)
    return OPAQUE


def _pointer(entry: Entry, language: Language) -> Shape:
    target = strip(type_of(entry))
    text = entry.tag == dw.POINTER_TYPE and language != "rust" and target is not None and target.tag == dw.BASE_TYPE
    if text and target is not None and target.text(dw.NAME) == "char" and size_of(target) == 1:
        return Shape("cstring", 0)
    return Shape("pointer", 8)


def _base(entry: Entry) -> Shape:
    size, encoding = size_of(entry), entry.number(dw.ENCODING)
    scalar = _BY_ENCODING.get(encoding or 0, "opaque")
    if encoding in (dw.ATE_SIGNED_CHAR, dw.ATE_UNSIGNED_CHAR) and entry.text(dw.NAME) == "char":
        scalar = "char"
    if size not in (1, 2, 4, 8) or scalar == "opaque" or (scalar == "float" and size < 4):
        return OPAQUE
    return Shape(scalar, size)


def _enumerators(entry: Entry, size: int) -> dict[str, int] | None:
    """By name, as many as are reasonable; values as the enum's own type has them."""
    underlying = strip(type_of(entry))
    unsigned = underlying is not None and underlying.number(dw.ENCODING) in (dw.ATE_UNSIGNED, dw.ATE_UNSIGNED_CHAR, dw.ATE_BOOLEAN)
    found: dict[str, int] = {}
    for child in entry.children():
        name, value = child.text(dw.NAME), child.number(dw.CONST_VALUE)
        if child.tag != dw.ENUMERATOR or name is None or value is None:
            continue
        found[name] = value & ((1 << 8 * size) - 1) if unsigned else value
        if len(found) >= ENUMERATORS_MAX:
            break
    return found or None


def _newtype(entry: Entry) -> Shape:
    """A Rust struct of one scalar is shown as that scalar."""
    members = [child for child in entry.children() if child.tag in (dw.MEMBER, dw.VARIANT_PART)]
    sized = [member for member in members if member.tag == dw.VARIANT_PART or size_of(type_of(member)) != 0]
    if entry.tag != dw.STRUCTURE_TYPE or len(sized) != 1 or sized[0].tag == dw.VARIANT_PART:
        return OPAQUE
    inner = type_of(sized[0])
    return shape(inner, "rust") if size_of(inner) == size_of(entry) else OPAQUE
