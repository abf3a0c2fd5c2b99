"""Numbers of all formats: what is shown means the same number again, in as few digits as its format needs."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.values.decimals import decimal_text
from strobe.values.floats import decoded


@settings(max_examples=500, deadline=None)
@given(st.integers(0, (1 << 32) - 1))
def test_single(bits: int) -> None:
    raw = struct.pack("<I", bits)
    shown, value = decoded(raw, "single"), struct.unpack("<f", raw)[0]
    if not math.isfinite(value):
        assert shown == ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    else:
        assert shown == float(str(numpy.float32(value))) and math.copysign(1, shown) == math.copysign(1, value)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, (1 << 16) - 1))
def test_half_and_bfloat(bits: int) -> None:
    raw = struct.pack("<H", bits)
    shown, value = decoded(raw, "half"), struct.unpack("<e", raw)[0]
    assert isinstance(shown, str) or struct.pack("<e", shown) == raw
    assert isinstance(shown, float) == math.isfinite(value)
    wide = struct.unpack("<f", b"\0\0" + raw)[0]
    brief = decoded(raw, "bfloat")
    assert isinstance(brief, float) == math.isfinite(wide)
    if isinstance(brief, float) and wide:
        assert math.isclose(brief, wide, rel_tol=2**-8, abs_tol=2**-134)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, (1 << 63) - 1), st.integers(1, 0x7FFE), st.booleans())
def test_x87(fraction: int, exponent: int, negative: bool) -> None:
    raw = struct.pack("<QH", 1 << 63 | fraction, exponent | negative << 15)
    shown = decoded(raw, "x87")
    value = numpy.frombuffer(raw + bytes(6), dtype=numpy.longdouble)[0]
    assert numpy.longdouble(shown) == value
    assert isinstance(shown, float) == bool(numpy.isfinite(float(value)) and numpy.longdouble(float(value)) == value)
    assert len(str(shown).partition("e")[0].lstrip("-0.").replace(".", "")) <= 21


@settings(deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(-40, 40))
def test_quad(number: int, power: int) -> None:
    """Those that are doubles; and one third, which is none, by its digits."""
    value = math.ldexp(float(number), power)
    if value:
        mantissa, exponent = math.frexp(abs(value))
        bits = (0x3FFF + exponent - 1) << 112 | (int(mantissa * (1 << 53)) - (1 << 52)) << 60 | (value < 0) << 127
        assert decoded(bits.to_bytes(16, "little"), "quad") == value
    third = (0x3FFD << 112 | int("5" * 28, 16)).to_bytes(16, "little")
    assert str(decoded(third, "quad")).startswith("0.3333333333333333333333333333333333")


@settings(deadline=None)
@given(st.integers(0, 10**16 - 1), st.integers(-390, 360), st.booleans())
def test_decimal(coefficient: int, exponent: int, negative: bool) -> None:
    biased = exponent + 398
    large = coefficient >> 53
    rest = 3 << 61 | biased << 51 | coefficient & ((1 << 51) - 1) if large else biased << 53 | coefficient
    shown = decimal_text((rest | negative << 63).to_bytes(8, "little"))
    assert Decimal(shown) == Decimal((negative, tuple(map(int, str(coefficient))), exponent))
