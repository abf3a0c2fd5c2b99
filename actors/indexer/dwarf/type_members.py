"""Members of records: where they are, in the ways that DWARF 2 to 5 say it."""

from __future__ import annotations

from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.type_numbering import Numbering
from actors.indexer.dwarf.types import size_of, strip, type_of
from actors.indexer.dwarf.unit import Entry
from actors.indexer.leb import signed, unsigned
from strobe.model.type_nodes import Base, Member, Static, TemplateArgument

_OP_CONSTU: Final = 0x10
_OP_CONSTS: Final = 0x11
_OP_PLUS_UCONST: Final = 0x23
_SMALL_CONSTANTS: Final = {0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True), 0x0C: (4, False), 0x0D: (4, True)}
_DUP_DEREF: Final = b"\x12\x06"  # the object's address is on the stack: get its vtable pointer
_MINUS_DEREF_PLUS: Final = b"\x1c\x06\x22"
_PLUS_DEREF_PLUS: Final = b"\x22\x06\x22"
_SIGNED_ENCODINGS: Final = frozenset({dw.ATE_SIGNED, dw.ATE_SIGNED_CHAR})


def is_static(entry: Entry) -> bool:
    """GCC and LLVM write DW_TAG_member before DWARF 5, DW_TAG_variable since."""
    return entry.tag == dw.VARIABLE or (entry.tag == dw.MEMBER and (entry.has(dw.EXTERNAL) or entry.has(dw.DECLARATION)))


def member(entry: Entry, numbering: Numbering) -> Member:
    number, name, artificial = numbering.number(type_of(entry)), entry.text(dw.NAME) or "", entry.has(dw.ARTIFICIAL)
    bits = entry.number(dw.BIT_SIZE)
    if bits is None:
        return Member(name, number, _offset(entry), artificial=artificial)
    start = _first_bit(entry, bits)
    return Member(name, number, start // 8, bits, start % 8, artificial)


def _first_bit(entry: Entry, bits: int) -> int:
    """From the record's least significant bit on. DWARF 3's DW_AT_bit_offset counts from the most significant bit of a storage unit."""
    start = entry.number(dw.DATA_BIT_OFFSET)
    if start is not None:
        return start
    high = entry.number(dw.BIT_OFFSET)
    if high is None:
        return _offset(entry) * 8
    form = entry.attributes[dw.BIT_OFFSET][0]
    width = dw.FIXED.get(form, 0) * 8
    if width and high >> (width - 1):
        high -= 1 << width  # negative where a field of a packed record begins past its storage unit
    storage = entry.number(dw.BYTE_SIZE) or size_of(type_of(entry)) or 0
    start = (_offset(entry) + storage) * 8 - high - bits
    if start < 0:
        raise DwarfError(f"bit field at {entry.offset:#x} begins before its record")
    return start


def _offset(entry: Entry) -> int:
    offset = entry.number(dw.DATA_MEMBER_LOCATION)
    if offset is not None:
        return offset
    code = entry.block(dw.DATA_MEMBER_LOCATION)
    if code is None:
        return (entry.number(dw.DATA_BIT_OFFSET) or 0) // 8
    found = _plus_constant(code)
    if found is None:
        raise DwarfError(f"member at {entry.offset:#x} has a location that is not read here: {code[:16].hex()}")
    return found


def _plus_constant(code: bytes) -> int | None:
    try:
        if code[0] == _OP_PLUS_UCONST:
            value, end = unsigned(code, 1)
            return value if end == len(code) else None
    except (IndexError, ValueError):
        return None  # malformed: said by the caller
    return None


def base(entry: Entry, numbering: Numbering) -> Base:
    number = numbering.number(type_of(entry))
    code = entry.block(dw.DATA_MEMBER_LOCATION)
    if code is not None and entry.has(dw.VIRTUALITY):
        return Base(number, None, virtual=True, slot=_slot(code))
    if entry.has(dw.VIRTUALITY):
        return Base(number, None, virtual=True)
    return Base(number, _offset(entry))


def _slot(code: bytes) -> int | None:
    """From `dup, deref, constant n, minus, deref, plus` as GCC and LLVM write it: -n."""
    if not code.startswith(_DUP_DEREF):
        return None
    found = _constant(code, len(_DUP_DEREF))
    if found is None:
        return None
    value, at = found
    return {_MINUS_DEREF_PLUS: -value, _PLUS_DEREF_PLUS: value}.get(code[at:])


def _constant(code: bytes, at: int) -> tuple[int, int] | None:
    """(the constant that an operation pushes, position after it)."""
    try:
        operation = code[at]
        if 0x30 <= operation <= 0x4F:  # DW_OP_lit0…31
            return operation - 0x30, at + 1
        if operation in (_OP_CONSTU, _OP_CONSTS):
            return (unsigned if operation == _OP_CONSTU else signed)(code, at + 1)
    except (IndexError, ValueError):
        return None  # malformed: the base's place is not known
    size, negative = _SMALL_CONSTANTS.get(operation, (0, False))
    return (int.from_bytes(code[at + 1 : at + 1 + size], "little", signed=negative), at + 1 + size) if size else None


def static(entry: Entry, numbering: Numbering, linkage_name: str | None) -> Static:
    return Static(entry.text(dw.NAME) or "", numbering.number(type_of(entry)), linkage_name, constant(entry))


def template_argument(entry: Entry, numbering: Numbering) -> TemplateArgument:
    is_value = entry.tag == dw.TEMPLATE_VALUE
    number = numbering.number(type_of(entry), pointer=True)  # what a container holds outside of itself; what it holds inside is among its members
    return TemplateArgument(entry.text(dw.NAME) or "", number, is_value, constant(entry) if is_value else None)


def constant(entry: Entry) -> int | bytes | None:
    """DW_AT_const_value, as the entry's type has it."""
    if not entry.has(dw.CONST_VALUE):
        return None
    value = entry.number(dw.CONST_VALUE)
    if value is None:
        return entry.block(dw.CONST_VALUE)
    size, sign = integer_of(type_of(entry))
    value = in_width(value, size, signed=sign)
    return value if -(1 << 63) <= value < 1 << 64 else value.to_bytes(size, "little", signed=sign)


def in_width(value: int, size: int, *, signed: bool) -> int:
    """A constant as a type of `size` bytes has it: forms of a fixed width do not tell their sign."""
    value &= (1 << 8 * size) - 1
    return value - (1 << 8 * size) if signed and value >> (8 * size - 1) else value


def integer_of(entry: Entry | None) -> tuple[int, bool]:
    """(bytes, whether it is signed) of the integers that a type's constants are."""
    found = strip(entry)
    if found is not None and found.tag == dw.ENUMERATION_TYPE and found.has(dw.TYPE):
        found = strip(type_of(found))
    size = size_of(found)
    return size if size in (1, 2, 4, 8, 16) else 8, found is not None and found.number(dw.ENCODING) in _SIGNED_ENCODINGS
