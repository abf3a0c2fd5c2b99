"""The numbers that forms speak of: counts, discriminants, where to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.expression import Unavailable
from strobe.values.forms import Either, Form, Number

if TYPE_CHECKING:  # the value's own file needs this one
    from strobe.values.typed import TypedValue


def calculated(number: Number, raw: bytes) -> int:
    value = int.from_bytes(raw[: number.size], "little")
    if number.mask:
        value &= number.mask
    return (value >> number.shift) * number.scale + number.plus


def number_at(value: TypedValue, number: Number) -> int | Unavailable:
    """The number in the object that `value` is."""
    if number.size == 0:
        return number.fixed
    raw = bytes_of(value, number.offset, number.size)
    return raw if isinstance(raw, Unavailable) else calculated(number, raw)


def bytes_of(value: TypedValue, offset: int, size: int) -> bytes | Unavailable:
    if value.at is not None:
        return value.world.read(value.at + offset, size)
    return (value.held or b"")[offset : offset + size].ljust(size, b"\0")


def choose(value: TypedValue, form: Either) -> Form | None:
    """The form that the object has now; None where it cannot be told."""
    test = number_at(value, form.test)
    if isinstance(test, Unavailable):
        return None
    return form.then if form.low <= test <= form.high else form.otherwise
