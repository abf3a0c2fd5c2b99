"""Comparisons of stored bits, against comparing the values themselves."""

from __future__ import annotations

import operator
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.store.query.bit_ranges import bit_ranges
from actors.store.query.compare import condition
from strobe.model.query import ArgumentFilter
from tests.bench.store_records import value

OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
EDGES = [0, 1, -1, 127, 128, 255, 256, -128, -129, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1, 1 << 64, 0.5, -0.5, 4.0]
numbers = st.sampled_from(EDGES) | st.integers(-(1 << 65), 1 << 65) | st.floats(allow_nan=False)


def holds(ranges: list[tuple[int, int]], bits: int) -> bool:
    return any(low <= bits <= high for low, high in ranges)


@given(st.sampled_from(["int", "uint"]), st.sampled_from([1, 2, 4, 8]), st.sampled_from(sorted(OPERATORS)), numbers, st.data())
@settings(max_examples=400, deadline=None)
def test_integers(scalar: str, size: int, name: str, bound: int | float, data: st.DataObject) -> None:
    least, most = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if scalar == "int" else (0, (1 << 8 * size) - 1)
    near = [int(bound) + d for d in (-1, 0, 1) if abs(bound) < 1e30 and least <= int(bound) + d <= most]
    number = data.draw(st.sampled_from([*near, least, most, 0]) | st.integers(least, most))
    stored = number if number < 1 << 63 else number - (1 << 64)
    assert holds(bit_ranges(value("x", scalar, size), name, bound), stored) == OPERATORS[name](number, bound)


@given(st.sampled_from(sorted(OPERATORS)), st.floats(allow_nan=False), st.floats())
@example("<", 0.0, -0.0)
@example(">", -0.0, 0.0)
@example("<=", 0.0, -0.0)
@example(">=", 0.0, -5e-324)
@settings(max_examples=600, deadline=None)
def test_doubles(name: str, bound: float, number: float) -> None:
    for one in (number, bound, -bound):
        bits = struct.unpack("<q", struct.pack("<d", one))[0]
        assert holds(bit_ranges(value("x", "float", 8), name, bound), bits) == OPERATORS[name](one, bound)


@given(st.sampled_from(sorted(OPERATORS)), st.floats(width=32, allow_nan=False), st.floats(width=32))
@settings(max_examples=300, deadline=None)
def test_floats_are_compared_as_floats(name: str, bound: float, number: float) -> None:
    bits = struct.unpack("<q", struct.pack("<d", number))[0]
    assert holds(bit_ranges(value("x", "float", 4), name, bound), bits) == OPERATORS[name](number, bound)


def test_a_float_is_not_larger_than_the_number_it_is_shown_as() -> None:
    stored = struct.unpack("<q", struct.pack("<d", struct.unpack("<f", struct.pack("<f", 0.1))[0]))[0]
    assert not holds(bit_ranges(value("x", "float", 4), ">", 0.1), stored) and holds(bit_ranges(value("x", "float", 4), ">=", 0.1), stored)


@pytest.mark.parametrize(
    ("scalar", "filters", "sql"),
    [
        ("cstring", {"lt": "b"}, "{c} IN (SELECT id FROM strings WHERE text < ?)"),
        ("cstring", {"lt": 5}, None),
        ("bool", {"lt": 1}, None),
        ("bool", {"ne": True}, "NOT ({c} != 0)"),
        ("int", {"ne": "abc"}, "{c} IS NOT NULL"),
        ("int", {"ne": 5}, "NOT ({c} = 5)"),
        ("int", {"gt": 3, "lte": 9}, "({c} BETWEEN -2147483648 AND 9) AND ({c} BETWEEN 4 AND 2147483647)"),
        ("int", {"lt": "abc"}, None),
        ("int", {"lt": -(1 << 40)}, None),
        ("pointer", {"gte": "0x10"}, "({c} BETWEEN 16 AND 4294967295)"),
        ("enum", {"gt": "RED"}, "({c} BETWEEN 1 AND 4294967295)"),
        ("enum", {"equals": "RED|BLUE"}, "{c} = 4"),
    ],
)
def test_conditions(scalar: Any, filters: dict[str, Any], sql: str | None) -> None:
    found = condition(value("x", scalar, 4, enumerators={"RED": 0, "BLUE": 4}), ArgumentFilter(**filters))
    assert (found.sql if found else None) == sql
