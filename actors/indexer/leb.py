"""LEB128 numbers (DWARF 5 §7.6). Reading past the end raises IndexError."""

from __future__ import annotations

from typing import Final

_SHIFT_MAX: Final = 70


def unsigned(data: bytes, at: int) -> tuple[int, int]:
    """(value, position after it)."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > _SHIFT_MAX:
            raise ValueError("LEB128 number is too long")


def signed(data: bytes, at: int) -> tuple[int, int]:
    start = at
    value, at = unsigned(data, at)
    bits = 7 * (at - start)
    return (value - (1 << bits) if data[at - 1] & 0x40 else value), at


def encoded(number: int) -> bytes:
    """An unsigned number as LEB128."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
