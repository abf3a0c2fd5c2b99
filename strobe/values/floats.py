"""Floating point numbers of all formats, as the shortest digits that mean the same value in their own format."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Final

from strobe.model.type_nodes import FloatFormat
from strobe.values.decimals import decimal_text
from strobe.values.view import Json, Shape, View

_EXPONENT_BITS: Final = {"bfloat": 8, "x87": 15, "quad": 15}
_FRACTION_BITS: Final = {"bfloat": 7, "x87": 63, "quad": 112}
_DIGITS: Final = {"half": range(3, 6), "bfloat": range(2, 5), "single": range(6, 10), "x87": range(18, 22), "quad": range(33, 37)}
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
    return _number(sign * fraction, scale, fraction_bits + 1, form)


def _number(mantissa: int, scale: int, precision: int, form: FloatFormat) -> Json:
    """mantissa·2^scale. A number where a double is the same, else its digits; bfloat's are always doubles."""
    try:
        near = math.ldexp(float(mantissa), scale)
        is_same = near != 0 and Fraction(near) == _exact(mantissa, scale)
    except OverflowError:
        is_same = False
    if is_same and form != "bfloat":
        return near
    value = _exact(mantissa, scale)
    for digits in _DIGITS[form]:
        text = _digits(value, digits)
        if _rounded(Fraction(text), precision) == value:
            break
    return float(text) if form == "bfloat" else text


def _exact(mantissa: int, scale: int) -> Fraction:
    return Fraction(mantissa << scale) if scale >= 0 else Fraction(mantissa, 1 << -scale)


def _digits(value: Fraction, digits: int) -> str:
    """As C's %.{digits}g writes it."""
    size = abs(value)
    power = _power_of_ten(size)
    scaled = round(size * _ten(digits - 1 - power))
    if scaled == 10**digits:
        scaled, power = scaled // 10, power + 1
    text = str(scaled)
    sign = "-" if value < 0 else ""
    if -5 < power < digits:
        whole = text[: power + 1] if power >= 0 else "0"
        part = (text[power + 1 :] if power >= 0 else "0" * (-power - 1) + text).rstrip("0")
        return f"{sign}{whole}.{part}" if part else sign + whole
    part = text[1:].rstrip("0")
    return f"{sign}{text[0]}{'.' + part if part else ''}e{power:+03d}"


def _power_of_ten(size: Fraction) -> int:
    """The power of its first digit."""
    power = math.floor((size.numerator.bit_length() - size.denominator.bit_length()) * math.log10(2))
    while _ten(power + 1) <= size:
        power += 1
    while _ten(power) > size:
        power -= 1
    return power


def _ten(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


def _rounded(value: Fraction, precision: int) -> Fraction:
    """To the nearest of `precision` bits, ties to even."""
    size = abs(value)
    shift = size.numerator.bit_length() - size.denominator.bit_length() - precision
    unit = _exact(1, shift)
    if size >= unit * (1 << precision):
        unit *= 2
    while size < unit * (1 << (precision - 1)):
        unit /= 2
    near = round(size / unit) * unit
    return near if value > 0 else -near


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
