"""Runs inside gdb: what strobe/values/README.md says a value is shown as, from gdb.Value alone. None of Strobe's code is used.

What gdb can't tell is a text that begins with UNKNOWN: it is not compared.
"""

import base64
import re
import struct

import gdb

UNKNOWN = "<gdb: "
ENOUGH = "<gdb: enough>"
DEPTH, ELEMENTS, TEXT, MEMBERS = 3, 100, 1024, 100
PAGE = 4096
STACK = 1 << 20  # so far below its end it may hold frames that are gone, and what is in these differs from run to run
PLAIN = gdb.TYPE_CODE_TYPEDEF
POINTERS = (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
RECORDS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
CHARACTERS = {"char": 1, "char8_t": 1, "char16_t": 2, "char32_t": 4, "wchar_t": 4}
CODECS = {1: "utf-8", 2: "utf-16-le", 4: "utf-32-le"}


def plain(kind):
    """Behind typedefs and qualifiers."""
    kind = kind.unqualified()
    while kind.code == PLAIN:
        kind = kind.target().unqualified()
    return kind


def unit_of(kind):
    """Bytes of a character, for types that are characters of texts."""
    kind = kind.unqualified()
    while kind.code == PLAIN and kind.name not in CHARACTERS:
        kind = kind.target().unqualified()
    return CHARACTERS.get(kind.name) if kind.code in (PLAIN, gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR) else None


def is_incomplete(kind):
    return kind.code in RECORDS and kind.sizeof == 0 and not kind.fields()


def read(address, size):
    """As many bytes as are there."""
    found = b""
    while len(found) < size:
        at = address + len(found)
        part = min(size - len(found), PAGE - at % PAGE)
        try:
            found += bytes(gdb.selected_inferior().read_memory(at, part))
        except gdb.MemoryError:
            break
    return found


def said(raw, unit, cut):
    """A text, or base64 where it is none."""
    more = "…" if cut else ""
    try:
        return raw.decode(CODECS[unit]) + more
    except UnicodeDecodeError as error:
        if cut and len(raw) - error.start < 4 and error.end == len(raw):
            return raw[: error.start].decode(CODECS[unit]) + more
        return f"base64:{base64.b64encode(raw).decode()}{more}"


def until_zero(raw, unit):
    """(characters before the first 0, whether there is one)."""
    for at in range(0, len(raw) - unit + 1, unit):
        if not any(raw[at : at + unit]):
            return raw[:at], True
    return raw[: len(raw) - len(raw) % unit], False


def text_at(address, unit, length=None):
    """Up to a 0, or of `length` characters."""
    if length is not None:
        raw = read(address, min(length, TEXT) * unit)
        return said(raw, unit, length > TEXT) if raw or not length else f"<unreadable {address:#x}>"
    raw = read(address, (TEXT + 1) * unit)
    if not raw:
        return f"<unreadable {address:#x}>"
    found, ended = until_zero(raw, unit)
    return said(found[: TEXT * unit], unit, not ended)


def function_at(address, names={}):
    """`names`: kept between calls."""
    if address not in names:
        symbol = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
        found = re.fullmatch(r"(.+?)( in section \S+.*)", symbol)
        names[address] = f"{address:#x} <{found[1]}>" if found and not re.search(r" \+ \d+$", found[1]) else f"<function at {address:#x}>"
    return names[address]


def single(number, size):
    """The shortest digits that mean the same float of 4 bytes."""
    if number != number or number in (float("inf"), float("-inf")):
        return "nan" if number != number else "inf" if number > 0 else "-inf"
    if size != 4:
        return number
    raw = struct.pack("<f", number)
    return next(near for near in (float(f"{number:.{digits}g}") for digits in range(1, 18)) if struct.pack("<f", near) == raw)


def enumerator(value):
    """As gdb prints it: `A`, `ns::A`, `(A | B)`, `(A | unknown: 0x8)`, `9`."""
    text = value.format_string(raw=True)
    if re.fullmatch(r"-?\d+", text) or text.startswith("(unknown"):
        return int(value)
    parts = [part.strip().removeprefix("unknown: ") for part in text.strip("()").split("|")]
    return "|".join(part if part.startswith("0x") else part.rsplit("::", 1)[-1] for part in parts)


def scalar(value, kind, bits=0):
    """`bits` of a bit field: a character of some bits is none."""
    if kind.code == gdb.TYPE_CODE_BOOL:
        number = int(value)
        return bool(number) if number in (0, 1) else number
    if kind.code == gdb.TYPE_CODE_ENUM:
        return enumerator(value)
    if kind.code == gdb.TYPE_CODE_FLT:
        return single(float(value), kind.sizeof) if kind.sizeof in (4, 8) else f"{UNKNOWN}float of {kind.sizeof} bytes>"
    number = int(value)
    size = unit_of(value.type)
    if size is None or bits:
        return number if -(2**63) <= number < 2**64 else str(number)
    code = number & ((1 << 8 * size) - 1)
    is_shown = (code < 0x7F if size == 1 else code < 0x110000) and not 0xD800 <= code < 0xE000 and chr(code).isprintable()
    return chr(code) if is_shown else number


def is_polymorphic(kind):
    return any(
        (field.name or "").startswith("_vptr") or (field.is_base_class and is_polymorphic(plain(field.type))) for field in kind.fields() if hasattr(field, "bitpos")
    )


def fields(value, kind, path=()):
    """(path of base classes, name, value, bits) of all members, those of bases and anonymous ones among them; None for a value: it is in the debug info only."""
    for field in kind.fields():
        if not hasattr(field, "bitpos") and not (field.is_base_class):
            continue  # static
        inner = plain(field.type)
        if field.is_base_class:
            yield from fields(value[field], inner, (*path, inner.name.rsplit("::", 1)[-1] if "<" not in inner.name else inner.name))
        elif not field.name and inner.code in RECORDS:
            yield from fields(value[field], inner, path)
        elif field.name and not field.artificial and not field.name.startswith("_vptr"):
            yield path, field.name, value[field], field.bitsize


def labels(found):
    names = [name for _, name, _, _ in found]
    short = [f"{path[-1]}::{name}" if path and names.count(name) > 1 else name for path, name, _, _ in found]
    return ["::".join((*one[0], one[1])) if short.count(label) > 1 else label for one, label in zip(found, short)]


class Members(dict):
    """What a struct or class is shown as, as against maps and what a pointer is shown as."""


class Shown:
    """One showing of at most `values` values: what is left out then is ENOUGH. `contained(shown, value, kind, depth)`: the same for what the C++ library's printers know, NotImplemented for all else."""

    def __init__(self, contained, values):
        self.contained = contained
        self.path = set()
        self.stack = int(gdb.parse_and_eval("$sp")) & (2**64 - 1)
        self.left = values

    def value(self, value, depth=DEPTH, bits=0):
        self.left -= 1
        if self.left < 0:
            return ENOUGH
        if value.is_optimized_out:
            return f"{UNKNOWN}optimised out>"
        kind = plain(value.type)
        try:
            if kind.code in POINTERS:
                return self.pointer(value, kind, depth)
            if is_incomplete(kind):
                return f"{UNKNOWN}what {kind} is made of>"
            if kind.code in RECORDS:
                found = self.contained(self, value, kind, depth)
                return self.record(value, kind, depth) if found is NotImplemented else found
            if kind.code == gdb.TYPE_CODE_ARRAY:
                return self.array(value, kind, depth)
            if kind.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_FLT):
                return scalar(value, kind, bits)
        except gdb.MemoryError:
            return f"<unreadable {int(value.address):#x}>" if value.address is not None else f"{UNKNOWN}unreadable>"
        return f"{UNKNOWN}no plain form: {kind}>"

    def pointer(self, value, kind, depth):
        is_reference = kind.code != gdb.TYPE_CODE_PTR
        address = int(value.referenced_value().address if is_reference else value) & (2**64 - 1)
        target = plain(kind.target())
        if address == 0:
            return None
        if target.code == gdb.TYPE_CODE_FUNC:
            return function_at(address)
        if not is_reference and unit_of(kind.target()) is not None:
            return text_at(address, unit_of(kind.target()))
        if target.code == gdb.TYPE_CODE_VOID or is_incomplete(target):
            return f"{address:#x}"
        return self.followed(value, kind, address, target, depth, is_reference)

    def followed(self, value, kind, address, target, depth, is_reference):
        if depth <= 0:
            return f"<{kind.target().unqualified()} at {address:#x}>"
        if (address, str(target)) in self.path:
            return f"<circular ref to {address:#x}>"
        if self.stack - STACK <= address < self.stack:
            return f"{UNKNOWN}in a frame that is gone>"
        if target.sizeof and not read(address, 1):
            return f"<unreadable {address:#x}>"
        found = self.value(value.referenced_value(), depth - 1)
        if is_reference or found == ENOUGH:
            return found
        if isinstance(found, Members):
            return {"@": f"{address:#x}", **found}
        return {"@": f"{address:#x}", "*": found}

    def record(self, value, kind, depth):
        shown = Members()
        if kind.code == gdb.TYPE_CODE_STRUCT and is_polymorphic(kind):
            whole = plain(value.dynamic_type)
            shown["class"] = str(whole)
            if str(whole) != str(kind):
                address = value.address.cast(whole.pointer()) if not has_virtual_base(whole) else value.address.dynamic_cast(whole.pointer())
                value, kind = address.dereference(), whole
        key = (int(value.address) if value.address is not None else None, str(kind))
        is_first = key not in self.path
        self.path.add(key)
        found = list(fields(value, kind))
        for label, (_, _, member, bits) in zip(labels(found)[:MEMBERS], found):
            shown[label] = self.value(member, depth, bits)
        if len(found) > MEMBERS:
            shown["…"] = f"{len(found) - MEMBERS} more"
        if is_first:
            self.path.discard(key)
        return shown

    def array(self, value, kind, depth):
        low, high = kind.range()
        if kind.sizeof == 0:
            return f"{UNKNOWN}how many elements>"
        unit = unit_of(kind.target())
        if unit is not None:
            raw = bytes(gdb.selected_inferior().read_memory(int(value.address), kind.sizeof)) if value.address is not None else None
            if raw is None:
                return f"{UNKNOWN}a text in a register>"
            found, _ = until_zero(raw, unit)
            return said(found[: TEXT * unit], unit, len(found) > TEXT * unit)
        return self.row([value[index] for index in range(low, min(high + 1, low + ELEMENTS))], high + 1 - low, depth)

    def row(self, elements, count, depth):
        """`elements`: the first of `count`."""
        found = []
        for element in elements[:ELEMENTS]:
            if self.left <= 0:
                return [*found, ENOUGH]
            found.append(self.value(element, depth))
        return [*found, f"… {count - ELEMENTS} more"] if count > ELEMENTS else found


def has_virtual_base(kind):
    return any(field.is_base_class and (not hasattr(field, "bitpos") or has_virtual_base(plain(field.type))) for field in kind.fields())
