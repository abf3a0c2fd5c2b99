"""From what a caller wrote to the bytes of an object: numbers, truths, characters, enumerators, pointers, fixed texts, bytes. Nothing is rounded
or cut without saying so: what cannot be right is refused, with the reason."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from typing import Any, Final

from strobe.expression import Unavailable
from strobe.model.type_nodes import Array, Complex, Enum, Float, FloatFormat, Integer, Opaque, Pointer, Record, TypeId
from strobe.values.typed_members import enumerator
from strobe.values.typed_scalars import ENCODINGS
from strobe.values.typed_world import World

_STRUCTS: Final[dict[FloatFormat, str]] = {"half": "<e", "single": "<f", "double": "<d"}
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_X87_BYTES: Final = 10
_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}


def encoded(world: World, type_: TypeId, given: Any, bits: tuple[int, int] | None = None) -> bytes | Unavailable:
    """`given`: JSON. A bitfield's bytes are those of its whole type, its value within its bits."""
    node = world.table.stripped(type_)
    name = world.name(type_)
    size = world.table.size(type_)
    if size is None or isinstance(node, Opaque):
        return Unavailable(f"`{name}` has no size, so nothing can be written there")
    if isinstance(node, Integer):
        return _integer(node, name, given, bits)
    if isinstance(node, Enum):
        return _enum(node, name, given, size, bits)
    if isinstance(node, Float):
        return _float(node, name, given)
    if isinstance(node, Pointer):
        return _pointer(name, given)
    if isinstance(node, Array):
        return _text(world, node, name, given, size)
    return _refused(node, name)


def encoded_bytes(given: Any, size: int | None) -> bytes | Unavailable:
    """Hex digits (blanks between them and 0x before are fine), or `base64:…`. `size`: so many they must be."""
    if not isinstance(given, str):
        return Unavailable('bytes are written as a text of hex digits, "0a0b0c", or as "base64:…"')
    try:
        if given.startswith("base64:"):
            data = base64.b64decode(given.removeprefix("base64:"), validate=True)
        else:
            data = bytes.fromhex(given.removeprefix("0x").removeprefix("0X"))
    except (ValueError, binascii.Error):
        return Unavailable(f"{given[:40]!r} is neither pairs of hex digits nor base64:…")
    if not data:
        return Unavailable("there are no bytes in it")
    if size is not None and len(data) != size:
        return Unavailable(f"it has {len(data):,} bytes, and size says {size:,}")
    return data


def _integer(node: Integer, name: str, given: Any, bits: tuple[int, int] | None) -> bytes | Unavailable:
    if node.encoding == "bool":
        number = given if isinstance(given, bool) else {"true": True, "false": False}.get(given) if isinstance(given, str) else given
        if number not in (0, 1) or not isinstance(number, int):
            return Unavailable(f"`{name}` is true or false, not {_said(given)}")
        return int(number).to_bytes(node.size, "little")
    number = _character(node, given)
    if number is None:
        number = _whole(given)
    if number is None:
        kind = "a number or a character" if node.encoding in ("char", "utf") else "a whole number"
        return Unavailable(f"`{name}` takes {kind}, not {_said(given)}")
    return _fitting(number, node.signed, node.size, name, bits)


def _character(node: Integer, given: Any) -> int | None:
    if node.encoding not in ("char", "utf") or not isinstance(given, str):
        return None
    text = given[1:-1] if len(given) == 3 and given[0] == given[-1] == "'" else given
    if len(text) != 1 or ord(text) >= 1 << (7 if node.size == 1 else 8 * node.size):
        return None
    return ord(text)


def _whole(given: Any) -> int | None:
    """12, 12.0, "12", "0x1f"."""
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    if isinstance(given, float):
        return int(given) if given.is_integer() else None
    if isinstance(given, str) and len(given) <= 80 and _INTEGER.fullmatch(given.strip()):
        text = given.strip()
        return int(text, 10) if text.lstrip("+-").isdecimal() else int(text, 0)
    return None


def _fitting(number: int, signed: bool, size: int, name: str, bits: tuple[int, int] | None) -> bytes | Unavailable:
    width = bits[0] if bits else 8 * size
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed and width else (0, (1 << width) - 1)
    if not low <= number <= high:
        what = f"`{name}`" + (f" of {width} bit{'s' if width > 1 else ''}" if bits else "")
        return Unavailable(f"{number} is out of range: {what} holds {low} to {high}")
    return (number % (1 << (8 * size))).to_bytes(size, "little")


def _enum(node: Enum, name: str, given: Any, size: int, bits: tuple[int, int] | None) -> bytes | Unavailable:
    number = _whole(given)
    if number is None and isinstance(given, str):
        parts = [enumerator(node, part.strip()) if _whole(part) is None else _whole(part) for part in given.split("|")]
        if len(parts) > 1 and not node.flags:
            return Unavailable(f"the values of `{name}` are not flags: {_said(given)} is none of them")
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            number = 0
            for part in known:
                number |= part
    if number is None:
        names = ", ".join(one for one, _ in node.enumerators[:12])
        return Unavailable(f"{_said(given)} is no value of `{name}`; it has {names}{' …' if len(node.enumerators) > 12 else ''}")
    return _fitting(number, node.signed, size, name, bits)


def _float(node: Float, name: str, given: Any) -> bytes | Unavailable:
    number = _real(given)
    if number is None:
        return Unavailable(f"`{name}` takes a number, not {_said(given)}")
    form = _STRUCTS.get(node.format)
    try:
        if form is not None:
            return struct.pack(form, number)
        if node.format == "bfloat":
            return struct.pack("<f", number)[2:]
    except OverflowError:
        return Unavailable(f"{given} is out of range for `{name}`")
    if node.format == "x87":
        return _x87(number).ljust(node.size, b"\0")
    return Unavailable(f"floating point numbers of the format of `{name}` cannot be written yet; write its bytes: type bytes")


def _real(given: Any) -> float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        try:
            return float(given)
        except OverflowError:
            return math.inf
    if not isinstance(given, str):
        return None
    known = _NOT_FINITE.get(given.strip().lower())
    if known is not None:
        return known
    try:
        return float(given) if re.fullmatch(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*", given) else None
    except ValueError:
        return None


def _x87(number: float) -> bytes:
    """80 bits (Intel SDM volume 1, §4.2.2); every double has an exact form."""
    sign = 0x8000 if math.copysign(1.0, number) < 0 else 0
    if math.isnan(number):
        fraction, exponent = 3 << 62, 0x7FFF
    elif math.isinf(number):
        fraction, exponent = 1 << 63, 0x7FFF
    elif number == 0:
        fraction, exponent = 0, 0
    else:
        part, power = math.frexp(abs(number))
        fraction, exponent = int(part * (1 << 53)) << 11, power - 1 + 16383
    return fraction.to_bytes(8, "little") + (sign | exponent).to_bytes(2, "little")


def _pointer(name: str, given: Any) -> bytes | Unavailable:
    number = 0 if given is None or given in ("null", "nullptr", "NULL") else _whole(given)
    if number is None:
        return Unavailable(f'`{name}` takes an address, "0x7ffd1234", or null, not {_said(given)}')
    if not 0 <= number < 1 << 64:
        return Unavailable(f"{number} is no address")
    return number.to_bytes(8, "little")


def _text(world: World, node: Array, name: str, given: Any, size: int) -> bytes | Unavailable:
    unit = world.unit(node.element)
    if unit is None or len(node.counts) != 1:
        return Unavailable(f"`{name}` is written element by element: [0], [1] …")
    if not isinstance(given, str):
        return Unavailable(f"`{name}` takes a text, not {_said(given)}")
    data = given.encode(ENCODINGS[unit], "surrogateescape" if unit == 1 else "surrogatepass")
    if len(data) + unit > size:
        room = size // unit - 1
        return Unavailable(
            f"the text takes {len(data) // unit:,} units of {unit} byte{'s' if unit > 1 else ''}; `{name}` has room for {room:,} and a 0"
        )
    return data.ljust(size, b"\0")


def _refused(node: object, name: str) -> Unavailable:
    if isinstance(node, Record):
        return Unavailable(f"`{name}` is not written as a whole: write its members or elements")
    if isinstance(node, Complex):
        return Unavailable(f"`{name}` is written by its bytes: type bytes")
    return Unavailable(f"`{name}` cannot be written")


def _said(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"
