"""Whether a C++ class travels by value or behind a pointer, where debug info does not say so outright (GCC before 13 does not).

Itanium C++ ABI §1.1, "non-trivial for the purposes of calls": a copy or move constructor or a destructor that is not trivial. User-declared
member functions are listed in the class's entry, with DW_AT_defaulted for those defaulted in the class; implicit ones are trivial when all
bases and members are, and nothing is virtual.
"""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.types import AGGREGATE_TAGS, POINTER_TAGS, strip, type_of
from actors.indexer.dwarf.unit import Entry

_DEPTH_MAX: Final = 16
_DEFAULTED_IN_CLASS: Final = 1  # DW_DEFAULTED_in_class


def is_trivial(entry: Entry, depth: int = 0) -> bool | None:
    """None where it cannot be told (incomplete types, unusual nesting). Raises DwarfError."""
    kept = entry.unit.trivial
    if entry.offset not in kept:
        kept[entry.offset] = _judge(entry, depth)
    return kept[entry.offset]


def _judge(entry: Entry, depth: int) -> bool | None:
    if depth > _DEPTH_MAX or entry.has(dw.DECLARATION):
        return None
    own = (entry.text(dw.NAME) or "").partition("<")[0]
    verdict: bool | None = True
    for child in entry.children():
        if child.tag == dw.SUBPROGRAM:
            if _is_special(child, own, entry) and child.number(dw.DEFAULTED) != _DEFAULTED_IN_CLASS:
                return None if child.has(dw.DELETED) else False
            if child.has(dw.VIRTUALITY):
                return False  # its constructors set the vtable pointer
        elif child.tag == dw.INHERITANCE and child.has(dw.VIRTUALITY):
            return False
        elif child.tag in (dw.MEMBER, dw.INHERITANCE) and not child.has(dw.EXTERNAL) and not child.has(dw.DECLARATION):
            part = _part(child, depth)
            if part is not True:
                verdict = part
            if verdict is False:
                return False
    return verdict


def _part(member: Entry, depth: int) -> bool | None:
    if (member.text(dw.NAME) or "").startswith("_vptr"):
        return False
    found = strip(type_of(member))
    for _ in range(_DEPTH_MAX):
        if found is None or found.tag != dw.ARRAY_TYPE:
            break
        found = strip(type_of(found))
    if found is None:
        return None
    return is_trivial(found, depth + 1) if found.tag in AGGREGATE_TAGS else True


def _is_special(function: Entry, own: str, entry: Entry) -> bool:
    """A destructor, or a constructor from one value of the class itself."""
    name = (function.text(dw.NAME) or "").partition("<")[0]
    if name.startswith("~"):
        return True
    if name != own or not own:
        return False
    given = [child for child in function.children() if child.tag == dw.FORMAL_PARAMETER and not child.has(dw.ARTIFICIAL)]
    if len(given) != 1:
        return False
    kind = strip(type_of(given[0]))
    if kind is None or kind.tag not in POINTER_TAGS - {dw.POINTER_TYPE}:
        return False
    target = strip(type_of(kind))
    return target is not None and (target.offset == entry.offset or target.text(dw.NAME) == entry.text(dw.NAME))
