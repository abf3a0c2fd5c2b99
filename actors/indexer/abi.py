"""How arguments travel: System V AMD64 ABI §3.2.3, and Rust's own convention where it is known to agree.

`Passing` says how one value goes; `Registers` hands out registers and stack in order. What cannot be proven is `unknown`, and from there on
nothing is assigned: a wrong register is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import Language as Language
from actors.indexer.dwarf.triviality import is_trivial
from actors.indexer.dwarf.types import AGGREGATE_TAGS, POINTER_TAGS, count_of, size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry

Class = Literal["integer", "sse", "none"]
Kind = Literal["registers", "memory", "reference", "nothing", "unknown"]
INTEGER_REGISTERS: Final = 6
SSE_REGISTERS: Final = 8
_MEMBERS_MAX: Final = 64
_UNKNOWN_128: Final = frozenset({"_Float128", "__float128", "f128"})


@dataclass(frozen=True, slots=True)
class Passing:
    """`classes`: one per eightbyte in registers. `size` and `align` in bytes, for what goes on the stack. `parts`: two words
    that compilers disagree on when only one register is left (__int128 in Clang before 18; Rust's fat pointers travel word by word)."""

    kind: Kind
    classes: tuple[Class, ...] = ()
    size: int = 8
    align: int = 8
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value, or its only eightbyte, is at entry: integer register 0–5, SSE register 0–7, or bytes above the return address."""

    kind: Literal["integer", "sse", "stack"]
    number: int


_INTEGER: Final = Passing("registers", ("integer",))
_SSE: Final = Passing("registers", ("sse",))
UNKNOWN: Final = Passing("unknown")


def passing(entry: Entry | None, language: Language) -> Passing:
    """Of a parameter or result of this type; None is void."""
    found = strip(entry)
    if found is None:
        return Passing("nothing")
    if found.tag in POINTER_TAGS:
        return _INTEGER if size_of(found) == 8 else UNKNOWN
    if found.tag == dw.BASE_TYPE:
        return _base(found)
    if found.tag == dw.ARRAY_TYPE and found.has(dw.GNU_VECTOR) and language != "rust":
        return {8: _SSE, 16: Passing("registers", ("sse",), 16, 16)}.get(size_of(found) or 0, UNKNOWN)
    if found.tag == dw.ENUMERATION_TYPE:
        return _INTEGER if size_of(found) in (1, 2, 4, 8) else UNKNOWN
    if found.tag == dw.PTR_TO_MEMBER_TYPE:
        target = strip(type_of(found))
        return Passing("registers", ("integer", "integer"), 16) if target is not None and target.tag == dw.SUBROUTINE_TYPE else _INTEGER
    if found.tag == dw.UNSPECIFIED_TYPE:
        return _INTEGER if found.text(dw.NAME) == "decltype(nullptr)" else UNKNOWN
    if found.tag in AGGREGATE_TAGS:
        return _rust_aggregate(found) if language == "rust" else _aggregate(found, language)
    return UNKNOWN


def _base(entry: Entry) -> Passing:
    size, encoding = size_of(entry), entry.number(dw.ENCODING)
    if size == 0:
        return Passing("nothing")  # Rust's ()
    if encoding == dw.ATE_FLOAT:
        if size in (2, 4, 8):
            return _SSE
        if size == 16:  # __float128 fills one SSE register; long double (X87) goes through memory
            return _SSE if entry.text(dw.NAME) in _UNKNOWN_128 else Passing("memory", (), 16, 16)
        return UNKNOWN
    if encoding == dw.ATE_COMPLEX:
        return {8: _SSE, 16: Passing("registers", ("sse", "sse"), 16), 32: Passing("memory", (), 32, 16)}.get(size or 0, UNKNOWN)
    if size in (1, 2, 4, 8):
        return _INTEGER
    return Passing("registers", ("integer", "integer"), 16, 16, parts=True) if size == 16 else UNKNOWN  # __int128


def _aggregate(entry: Entry, language: Language) -> Passing:
    size, align = entry.number(dw.BYTE_SIZE), entry.number(dw.ALIGNMENT)
    if size is None or entry.has(dw.DECLARATION):
        return UNKNOWN
    convention = entry.number(dw.CALLING_CONVENTION)
    told = {dw.CC_PASS_BY_VALUE: True, dw.CC_PASS_BY_REFERENCE: False}.get(convention or 0)
    trivial = True if language == "c" else is_trivial(entry) if told is None else told
    if trivial is None:
        return UNKNOWN
    if not trivial:
        return Passing("reference")
    if size == 0:
        return Passing("nothing")
    natural = max(align or 1, _alignment(entry))
    if size > 16:
        return Passing("memory", (), size, max(8, natural)) if natural <= 16 else UNKNOWN
    classes: list[Class] = ["none"] * ((size + 7) // 8)
    if not _merge(entry, 0, classes, 0):
        return UNKNOWN
    if all(one == "none" for one in classes):
        return Passing("nothing") if language == "c++" else UNKNOWN  # an empty class
    if "none" in classes:
        return UNKNOWN
    return Passing("registers", tuple(classes), size, max(8, natural))


def _merge(entry: Entry, base: int, classes: list[Class], depth: int) -> bool:
    """Classifies the eightbytes of an aggregate of at most 16 bytes; False where that cannot be told."""
    members = [child for child in entry.children() if child.tag in (dw.MEMBER, dw.INHERITANCE, dw.VARIANT_PART)]
    if depth > 8 or len(members) > _MEMBERS_MAX:
        return False
    for member in members:
        if member.tag == dw.VARIANT_PART:
            return False
        if member.has(dw.EXTERNAL) or member.has(dw.DECLARATION):
            continue  # a static member
        bits = member.number(dw.DATA_BIT_OFFSET)
        offset = member.number(dw.DATA_MEMBER_LOCATION)
        if bits is not None:
            offset = bits // 8
        elif offset is None:
            offset = 0 if entry.tag == dw.UNION_TYPE or not member.has(dw.DATA_MEMBER_LOCATION) else -1
        if offset < 0 or not _merge_type(type_of(member), base + offset, classes, depth, bitfield=bits is not None or member.has(dw.BIT_SIZE)):
            return False
    return True


def _merge_type(entry: Entry | None, at: int, classes: list[Class], depth: int, *, bitfield: bool) -> bool:
    found = strip(entry)
    size = size_of(found)
    if found is None or size is None:
        return False
    if found.tag in AGGREGATE_TAGS:
        return _merge(found, at, classes, depth + 1)
    if found.tag == dw.ARRAY_TYPE:
        count, element = count_of(found), size_of(type_of(found))
        if found.has(dw.GNU_VECTOR) or count is None or not element or count > 16:
            return False
        return all(_merge_type(type_of(found), at + index * element, classes, depth + 1, bitfield=False) for index in range(count))
    single = passing(found, "c")
    if single.kind != "registers" or at // 8 + len(single.classes) > len(classes) or (at % min(size, 8) and not bitfield):
        return False
    for index, one in enumerate(single.classes):
        place = at // 8 + index
        classes[place] = "integer" if "integer" in (one, classes[place]) else one
    return True


def _alignment(entry: Entry | None, depth: int = 0) -> int:
    """Natural alignment, as far as its members tell; 32 where that is not clear, which no rule here accepts."""
    found = strip(entry)
    if found is None or depth > 8:
        return 32
    if found.tag in AGGREGATE_TAGS:
        parts = [child for child in found.children() if child.tag in (dw.MEMBER, dw.INHERITANCE) and not child.has(dw.EXTERNAL)]
        return max([found.number(dw.ALIGNMENT) or 1, *(_alignment(type_of(part), depth + 1) for part in parts[: _MEMBERS_MAX * 4])])
    if found.tag == dw.ARRAY_TYPE:
        return 32 if found.has(dw.GNU_VECTOR) else _alignment(type_of(found), depth + 1)
    size = size_of(found)
    return min(size, 16) if size else 1


def _rust_aggregate(entry: Entry) -> Passing:
    """Rust passes what is larger than two words behind a pointer, fat pointers as two words, and a struct of one scalar as that scalar."""
    size = entry.number(dw.BYTE_SIZE)
    if size is None:
        return UNKNOWN
    if size == 0:
        return Passing("nothing")
    if size > 16:
        return Passing("reference")
    members = [child for child in entry.children() if child.tag in (dw.MEMBER, dw.VARIANT_PART)]
    if any(member.tag == dw.VARIANT_PART for member in members) or entry.tag == dw.UNION_TYPE:
        return UNKNOWN
    sized = [member for member in members if size_of(type_of(member)) != 0]
    if len(sized) == 1 and size_of(type_of(sized[0])) == size:
        return passing(type_of(sized[0]), "rust")
    names = [member.text(dw.NAME) for member in sized]
    if size == 16 and names in (["data_ptr", "length"], ["pointer", "vtable"]):
        return Passing("registers", ("integer", "integer"), 16, parts=True)
    return UNKNOWN


class Registers:
    """Argument places in order of the parameters."""

    def __init__(self) -> None:
        self._integers = 0
        self._sses = 0
        self._stack = 0
        self.lost = False

    def take(self, how: Passing) -> Place | None:
        """The place of a value that is one eightbyte; None for others, for nothing, and from the first unknown on."""
        if self.lost or how.kind == "nothing":
            return None
        if how.kind == "unknown":
            self.lost = True
            return None
        classes: tuple[Class, ...] = ("integer",) if how.kind == "reference" else how.classes
        integers, sses = classes.count("integer"), classes.count("sse")
        if how.kind != "memory" and self._integers + integers <= INTEGER_REGISTERS and self._sses + sses <= SSE_REGISTERS:
            place = Place("integer", self._integers) if integers else Place("sse", self._sses)
            self._integers += integers
            self._sses += sses
            return place if len(classes) == 1 else None
        if how.parts:
            self.lost = True
            return None
        size = 8 if how.kind == "reference" else how.size
        align = 8 if how.kind == "reference" else how.align
        self._stack = (self._stack + align - 1) // align * align
        place = Place("stack", self._stack)
        self._stack += (size + 7) // 8 * 8
        return place if len(classes) == 1 else None
