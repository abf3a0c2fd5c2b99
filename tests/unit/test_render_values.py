"""Captured values as text and within budgets: what is cut, what is counted, what is never cut."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.render.budget import json_tokens
from strobe.render.events import event_lines, query_text
from strobe.render.shorten import first_elements, shorten, shorten_all
from strobe.render.values import argument_list, plain

ORDER = {"@": "0x7f00", "id": 17, "items": [1, 2, 3], "total": -4.0}


@pytest.mark.parametrize(
    ("value", "type_name", "text"),
    [
        (ORDER, "Order *", "{id: 17, items: [1, 2, 3], total: -4.0}"),
        ("Live", "Mode", "Live"),
        ("Read|Write", "Access", "Read|Write"),
        ("ns::Mode::Live", "ns::Mode", "ns::Mode::Live"),
        ("Live", "const char *", '"Live"'),
        ("Live", "std::string", '"Live"'),
        ("Live", "&str", '"Live"'),
        ("Live", "", '"Live"'),
        ("two words", "Mode", '"two words"'),
        ({"class": "Circle", "r": 2.5}, "Shape *", "Circle{r: 2.5}"),
        ({"@": "0x10", "class": "Circle", "r": 2.5}, "Shape *", "Circle{r: 2.5}"),
        ({"class": 5, "r": 2}, "student", "{class: 5, r: 2}"),
        ({"r": 2, "class": "A"}, "student", '{r: 2, class: "A"}'),
        ({"@": "0x10", "*": 5}, "int *", "&5"),
        ({"two words": 1, "17": 2}, "", '{"two words": 1, "17": 2}'),
        ([1, "… 97 more"], "", "[1, … 97 more]"),
        ({"a": 1, "…": "5 more"}, "", "{a: 1, … 5 more}"),
        ("0x401136 <handler>", "", "0x401136 <handler>"),
        (None, "Order *", "null"),
        (True, "bool", "true"),
    ],
)
def test_values_as_text(value: Any, type_name: str, text: str) -> None:
    assert plain(value, type_name) == text


def test_a_call_on_a_line() -> None:
    event = {
        "id": "s-9", "timestampNs": 0, "eventType": "function_exit", "function": "place", "returnType": "bool", "returnValue": True,
        "arguments": [{"name": "order", "type": "Order *", "value": ORDER}, {"name": "mode", "type": "Mode", "value": "Live"}],
    }  # fmt: skip
    assert event_lines([event])[0].endswith("place(order={id: 17, items: [1, 2, 3], total: -4.0}, mode=Live)  = true")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"unwound": True, "exception": {"type": "std::runtime_error", "message": "out of stock"}}, 'threw std::runtime_error "out of stock"'),
        ({"unwound": True, "exception": {"type": "int"}}, "threw int"),
        ({"unwound": True}, "left by an exception or a jump"),
        ({}, "place"),
    ],
)
def test_how_a_call_ended(more: dict[str, Any], text: str) -> None:
    assert event_lines([{"id": "s-9", "timestampNs": 0, "eventType": "function_exit", "function": "place", **more}])[0].endswith(text)


def test_watches_stand_behind_the_call() -> None:
    event = {"id": "s-9", "timestampNs": 0, "eventType": "function_enter", "function": "place", "watchValues": {"counter": 1, "coins": {"dime": 3}}}
    assert event_lines([event])[0].endswith("place  watch counter=1 coins={dime: 3}")


def test_long_arguments_are_shortened_on_the_line_and_small_ones_are_not() -> None:
    items = [{"id": number, "name": "x" * 50} for number in range(100)]
    text = argument_list([{"name": "items", "type": "Item[100]", "value": items}, {"name": "mode", "type": "Mode", "value": "Live"}])
    assert len(text) < 800 and "more" in text and text.endswith(", mode=Live)")


def test_what_is_left_out_is_counted() -> None:
    shown, cut = shorten(list(range(1000)), 60)
    assert cut and shown[:-1] == list(range(len(shown) - 1)) and shown[-1] == f"… {1000 - len(shown) + 1} more"
    assert first_elements([1, 2, 3, "… 97 more"], 2) == [1, 2, "… 98 more"]
    assert first_elements([1, 2, "… 97 more"], 2) == [1, 2, "… 97 more"]
    text, _ = shorten("a" * 1000, 40)
    assert re.fullmatch(r"a+… \d+ more", text) and text.count("a") + int(text.split()[1]) == 1000
    deep, _ = shorten({"@": "0x10", **{f"member{index}": list(range(100)) for index in range(80)}}, 60)
    assert deep["@"] == "0x10" and deep["…"].endswith("more") and all(name == "@" or name == "…" or "elements]" in str(one) for name, one in deep.items())


@given(st.text(min_size=300, max_size=900, alphabet="ab") | st.lists(st.integers(0, 9), min_size=200, max_size=400), st.integers(40, 90), st.integers(20, 39))
def test_cut_twice_counts_as_cut_once(value: Any, first: int, second: int) -> None:
    shown, _ = shorten(shorten(value, first)[0], second)
    whole = shown if isinstance(value, str) else shown[-1]
    kept = len(shown.partition("…")[0]) if isinstance(value, str) else len(shown) - 1
    assert kept + int(whole.rsplit(" ", 2)[1]) == len(value)


def test_small_values_stay_whole_beside_large_ones() -> None:
    shown, cut = shorten_all([5, list(range(1000)), "Live", "b" * 5000], 100)
    assert (shown[0], shown[2], cut) == (5, "Live", [False, True, False, True])
    assert sum(map(json_tokens, shown)) <= 130


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 64) | st.floats(allow_nan=False) | st.text(max_size=60) | st.just("0x7f00"),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=9) | st.sampled_from(["@", "class", "*"]), inner, max_size=20),
    max_leaves=120,
)  # fmt: skip


@given(JSON, st.integers(20, 400))
@settings(max_examples=300, deadline=None)
def test_what_is_shown_is_within_the_budget_and_true(value: Any, tokens: int) -> None:
    shown, cut = shorten(value, tokens)
    assert cut or shown == value
    assert json_tokens(shown) <= max(tokens, 60)
    assert _begins(shown, value)
    plain(shown)


def _begins(shown: Any, value: Any) -> bool:
    """Every part that is shown is one of the value, in its place."""
    if isinstance(value, list) and isinstance(shown, list):
        marks = [one for one in shown if isinstance(one, str) and one.startswith("… ")]
        own = shown[: len(shown) - len(marks[-1:])] if marks else shown
        return all(_begins(one, whole) for one, whole in zip(own, value, strict=False))
    if isinstance(value, dict) and isinstance(shown, dict):
        return all(name == "…" or _begins(one, value[name]) for name, one in shown.items())
    return shown == value or (isinstance(shown, str) and "…" in shown)


def test_one_value_as_text() -> None:
    reply = {"value": {"path": "order.items", "type": "int[4]", "value": [1, 2, "… 2 more"]}, "hasMore": True, "warnings": ["More: path=order.items[2..]"]}
    assert query_text(reply).splitlines() == ["order.items: int[4] = [1, 2, … 2 more]", "More: path=order.items[2..]"]
