"""Floating point numbers of all formats, as the shortest digits that mean the same value in their own format."""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Final

from strobe.model.type_nodes import FloatFormat
from strobe.values.decimals import decimal_text
from strobe.values.view import Json, Shape, View

_EXPONENT_BITS: Final = {"bfloat": 8, "x87": 15, "quad": 15}
_FRACTION_BITS: Final = {"bfloat": 7, "x87": 63, "quad": 112}
_DIGITS: Final = {"half": range(1, 6), "bfloat": range(1, 5), "single": range(1, 10), "x87": range(18, 22), "quad": range(33, 37)}
_DOUBLE_BITS: Final = 53
_DOUBLE_LEAST: Final = -1074  # power of two of its smallest number
_DOUBLE_MOST: Final = 1024
_CODES: Final = {"half": "<e", "single": "<f"}
_DOUBLE: Final = struct.Struct("<d").unpack_from
BYTES: Final[dict[FloatFormat, int]] = {"half": 2, "bfloat": 2, "single": 4, "double": 8, "x87": 10, "quad": 16}


def said(value: float) -> Json:
    """JSON has no infinities."""
    if math.isfinite(value):
        return value
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def decoded(raw: bytes, form: FloatFormat) -> Json:
    """`raw`: as many bytes as the format has."""
    if form == "double":
        return said(_DOUBLE(raw)[0])
    if form in _CODES:
        return _short(raw, form)
    if form == "decimal":
        return decimal_text(raw)
    if form in _FRACTION_BITS:
        return _wide(int.from_bytes(raw, "little"), form)
    return "0x" + raw[::-1].hex()


def _short(raw: bytes, form: FloatFormat) -> Json:
    value: float = struct.unpack(_CODES[form], raw)[0]
    if not math.isfinite(value) or (value.is_integer() and abs(value) < 1e6):
        return said(value)
    for digits in _DIGITS[form]:
        near = float(f"{value:.{digits}g}")
        try:
            if struct.pack(_CODES[form], near) == raw:
                return near
        except OverflowError:
            continue  # rounded beyond the format's largest number
    return value


def _wide(bits: int, form: FloatFormat) -> Json:
    """x87 states the bit before its fraction; the others imply it."""
    exponent_bits, fraction_bits = _EXPONENT_BITS[form], _FRACTION_BITS[form]
    top = exponent_bits + fraction_bits + (form == "x87")
    sign = -1 if bits >> top & 1 else 1
    exponent = bits >> (top - exponent_bits) & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << (fraction_bits + (form == "x87"))) - 1)
    if exponent == (1 << exponent_bits) - 1:
        is_nan = bool(fraction & ((1 << fraction_bits) - 1))
        return "nan" if is_nan else "inf" if sign > 0 else "-inf"
    if form != "x87" and exponent:
        fraction |= 1 << fraction_bits
    scale = max(exponent, 1) - ((1 << (exponent_bits - 1)) - 1) - fraction_bits
    if fraction == 0:
        return math.copysign(0.0, sign)
    zeros = (fraction & -fraction).bit_length() - 1
    significant = fraction >> zeros
    is_double = significant.bit_length() <= _DOUBLE_BITS and scale + zeros >= _DOUBLE_LEAST and fraction.bit_length() + scale <= _DOUBLE_MOST
    if is_double and form != "bfloat":
        return sign * math.ldexp(float(significant), scale + zeros)
    text = ("-" if sign < 0 else "") + _shortest(fraction, scale, _DIGITS[form])
    return float(text) if form == "bfloat" else text


def _shortest(mantissa: int, scale: int, digits: range) -> str:
    """mantissa·2^scale in the fewest of so many digits that are nearer to it than to the numbers beside it, 2^scale away."""
    power = _power_of_ten(mantissa, scale)
    for count in digits:
        found, shift = _rounded(mantissa, scale, power, count)
        if _is_near(found, shift, mantissa, scale):
            break
    return _written(str(found), len(str(found)) - 1 + shift, digits[-1])


def _rounded(mantissa: int, scale: int, power: int, count: int) -> tuple[int, int]:
    """(a number of `count` digits, which power of ten it is to be multiplied by); ties to even."""
    shift = power - count + 1
    above = (mantissa << max(scale, 0)) * _ten(max(-shift, 0))
    below = (1 << max(-scale, 0)) * _ten(max(shift, 0))
    found, rest = divmod(above, below)
    return found + (2 * rest > below or (2 * rest == below and found & 1)), shift


def _is_near(found: int, shift: int, mantissa: int, scale: int) -> bool:
    """Whether they differ by less than a half, below a power of two by less than a quarter, of 2^scale."""
    ours, theirs = found * _ten(max(shift, 0)) << max(-scale, 0), (mantissa << max(scale, 0)) * _ten(max(-shift, 0))
    unit = (1 << max(scale, 0)) * _ten(max(-shift, 0))
    return abs(ours - theirs) * (4 if mantissa & (mantissa - 1) == 0 else 2) < unit


def _power_of_ten(mantissa: int, scale: int) -> int:
    """The power of its first digit."""
    power = math.floor((mantissa.bit_length() - 1 + scale) * math.log10(2))
    above, below = (mantissa << max(scale, 0)) * _ten(max(-power - 1, 0)), _ten(max(power + 1, 0)) << max(-scale, 0)
    return power + (above >= below)  # the estimate is of the lowest number with as many bits: one too small at most


def _written(text: str, power: int, most: int) -> str:
    """As C's %g does it."""
    if -5 < power < most:
        whole = text[: power + 1] if power >= 0 else "0"
        part = (text[power + 1 :] if power >= 0 else "0" * (-power - 1) + text).rstrip("0")
        return f"{whole.ljust(power + 1, '0')}.{part}" if part else whole.ljust(power + 1, "0")
    part = text[1:].rstrip("0")
    return f"{text[0]}{'.' + part if part else ''}e{power:+03d}"


@lru_cache(256)
def _ten(power: int) -> int:
    return int(10**power)


class FloatShape(Shape):
    __slots__ = ("form", "used")
    is_key = True
    size: int

    def __init__(self, size: int, form: FloatFormat) -> None:
        super().__init__(size)
        self.form: FloatFormat = form if BYTES.get(form, size) <= size else "unknown"
        self.used = BYTES.get(self.form, size)

    def show(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        if self.form == "double":
            value: float = _DOUBLE(data, at)[0]
            return value if math.isfinite(value) else said(value)
        return decoded(data[at : at + self.used], self.form)


class ComplexShape(Shape):
    """`real`, `imaginary`: where the two parts are."""

    __slots__ = ("imaginary", "part", "real")
    size: int

    def __init__(self, size: int, real: int, imaginary: int, part: Shape) -> None:
        super().__init__(size)
        self.real, self.imaginary, self.part = real, imaginary, part

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        real = self.part.show(view, data, at + self.real, address + self.real, depth)
        imaginary = self.part.show(view, data, at + self.imaginary, address + self.imaginary, depth)
        return f"{plain(real)}{'' if plain(imaginary).startswith('-') else '+'}{plain(imaginary)}i"


def plain(value: Json) -> str:
    """3 for 3.0."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else str(value)
