"""Decimal floating point (_Decimal32, _Decimal64, _Decimal128) in the binary integer encoding that x86_64 has (IEEE 754-2008 §3.5.2)."""

from __future__ import annotations

from typing import Final

_BIAS: Final = {4: 101, 8: 398, 16: 6176}
_EXPONENT_BITS: Final = {4: 8, 8: 10, 16: 14}
_DIGITS: Final = {4: 7, 8: 16, 16: 34}


def decimal_text(raw: bytes) -> str:
    """As it counts: 1.50 keeps its zero."""
    size = len(raw)
    if size not in _BIAS:
        return "0x" + raw[::-1].hex()
    bits, width = int.from_bytes(raw, "little"), 8 * size
    sign = "-" if bits >> (width - 1) else ""
    high = bits >> (width - 6) & 0x1F  # the five bits after the sign
    if high == 0x1F:
        return "nan"
    if high == 0x1E:
        return sign + "inf"
    exponent_bits = _EXPONENT_BITS[size]
    rest = width - 1 - exponent_bits
    if high >> 3 == 3:  # the coefficient's first bits are 100
        exponent = bits >> (rest - 2) & ((1 << exponent_bits) - 1)
        coefficient = 4 << (rest - 2) | bits & ((1 << (rest - 2)) - 1)
    else:
        exponent, coefficient = bits >> rest & ((1 << exponent_bits) - 1), bits & ((1 << rest) - 1)
    if coefficient >= 10 ** _DIGITS[size]:
        coefficient = 0  # not canonical: means 0
    return sign + _written(coefficient, exponent - _BIAS[size])


def _written(coefficient: int, exponent: int) -> str:
    digits = str(coefficient)
    if 0 < -exponent < len(digits) + 6:
        digits = digits.rjust(1 - exponent, "0")
        return f"{digits[:exponent]}.{digits[exponent:]}"
    return digits if exponent == 0 else f"{digits}e{exponent:+d}"
