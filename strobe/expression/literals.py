"""Numbers, characters and texts as C writes them. The lexer says where they stand; here is what they mean."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

UNSIGNED_MAX: Final = (1 << 64) - 1
SIGNED_MAX: Final = (1 << 63) - 1
_INTEGER: Final = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|(?P<oct>0[0-7]*)|(?P<dec>[1-9][0-9]*))(?P<suffix>[uU]?(?:ll|LL|[lL])?|(?:ll|LL|[lL])[uU])"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_REAL: Final = re.compile(r"((?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)([fFlL]?)")
_HEX_REAL: Final = re.compile(r"(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+)([fFlL]?)")
_ESCAPE: Final = re.compile(r"x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([abefnrtv\\'\"?])")
_SHORT: Final = dict(zip("abefnrtv\\'\"?", "\a\b\x1b\f\n\r\t\v\\'\"?", strict=True))


class LiteralError(ValueError):
    """`at`: offset in the literal."""

    def __init__(self, problem: str, at: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at


def integer(text: str) -> tuple[int, bool] | None:
    """(value, is it C's unsigned long); None when the text is no integer. Errors: LiteralError beyond 64 bits."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    form = next(form for form in _BASES if found[form] is not None)
    digits = found[form]
    value = int(digits, _BASES[form]) if len(digits) <= 64 or not digits.strip("0") else UNSIGNED_MAX + 1
    if value > UNSIGNED_MAX:
        raise LiteralError("this integer needs more than 64 bits")
    suffix = found["suffix"].lower()
    wide = "l" in suffix or value >> 32 != 0
    return value, ("u" in suffix and wide) or (form != "dec" and value > SIGNED_MAX)


def real(text: str) -> float | None:
    """None when the text is no floating-point number. `4.1f` is the float nearest to 4.1. Errors: LiteralError when it is too large."""
    if found := _REAL.fullmatch(text):
        value = float(found[1])
    elif found := _HEX_REAL.fullmatch(text):
        try:
            value = float.fromhex(found[1])
        except OverflowError:
            value = math.inf
    else:
        return None
    try:
        value = struct.unpack("f", struct.pack("f", value))[0] if found[2] in ("f", "F") else value
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise LiteralError("this number is too large for its type")
    return value


def text_of(body: str) -> str:
    """What stands between the quotes, escapes resolved. Errors: LiteralError."""
    encoded = bytearray()
    for piece, is_byte, at in _pieces(body):
        try:
            encoded += bytes([piece]) if is_byte else chr(piece).encode()
        except UnicodeEncodeError:
            raise LiteralError("half of a surrogate pair is no character", at) from None
    return encoded.decode("utf-8", "surrogateescape")


def character(body: str) -> int:
    """The code of the one character between single quotes. Errors: LiteralError."""
    pieces = list(_pieces(body))
    if not pieces:
        raise LiteralError("there is no character between the quotes")
    if len(pieces) > 1:
        raise LiteralError("single quotes hold one character; a text stands in double quotes", pieces[1][2])
    code, is_byte, at = pieces[0]
    if 0xD800 <= code <= 0xDFFF:
        raise LiteralError("half of a surrogate pair is no character", at)
    return code - 256 if is_byte and code > 127 else code


def _pieces(body: str) -> list[tuple[int, bool, int]]:
    """(code, is it one byte given by its number, offset) of each character."""
    pieces, at = [], 0
    while at < len(body):
        if body[at] != "\\":
            pieces.append((ord(body[at]), False, at))
            at += 1
            continue
        found = _ESCAPE.match(body, at + 1)
        if found is None:
            raise LiteralError(f"`{body[at : at + 2]}` is no escape of C", at)
        pieces.append((*_escaped(found, at), at))
        at = found.end()
    return pieces


def _escaped(found: re.Match[str], at: int) -> tuple[int, bool]:
    byte_hex, byte_octal, short, long, letter = found.groups()
    if byte_hex or byte_octal:
        code = int(byte_hex, 16) if byte_hex else int(byte_octal, 8)
        if code > 255:
            raise LiteralError("a byte is at most `\\377`", at)
        return code, True
    if letter:
        return ord(_SHORT[letter]), False
    code = int(short or long, 16)
    if code > 0x10FFFF:
        raise LiteralError("there is no such character in Unicode", at)
    return code, False


def quoted(value: str, quote: str) -> str:
    """The literal that means `value`. A byte that is no UTF-8 is written as its number."""
    shown = []
    for one in value:
        code = ord(one)
        if one in ("\\", quote):
            shown.append("\\" + one)
        elif 0xDC80 <= code <= 0xDCFF:
            shown.append(f"\\{code - 0xDC00:03o}")  # three digits: what follows is never read as a part of it
        else:
            shown.append(one if one.isprintable() else f"\\{code:03o}" if code < 128 else f"\\U{code:08x}")
    return f"{quote}{''.join(shown)}{quote}"
