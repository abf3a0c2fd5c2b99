"""What the comparison of Strobe's values with gdb's calls the same, and what it must call different."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.value_differences import Comparison, Tally

ADDRESS = "0x7ffff7d01230"
MOVED = "0x55d0c0ffee10"


def compared(ours: Any, theirs: Any, again: Any = ...) -> Tally:
    comparison = Comparison()
    comparison.call("f 1", {"a": ours}, {"a": theirs}, {"a": theirs if again is ... else again})
    return comparison.tally


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (5, 5),
        (None, None),
        (True, True),
        (0.1, 0.10000000149011612),  # the same float of 4 bytes
        ("text", "text"),
        (MOVED, ADDRESS),
        (f"<Order at {MOVED}>", f"<const struct Order at {ADDRESS}>"),
        (
            f"<const std::vector<std::string> at {MOVED}>",
            f"<std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, "
            f"std::char_traits<char>, std::allocator<char> > > > at {ADDRESS}>",
        ),
        (f"{MOVED} <handler>", f"{ADDRESS} <handler>"),
        ({"@": MOVED, "id": 17, "tags": ["a", "… 2 more"]}, {"@": ADDRESS, "id": 17, "tags": ["a", "… 2 more"]}),
        ([], []),
        ({"left": {"@": MOVED, "*": 1}, "right": f"<circular ref to {MOVED}>"}, {"left": {"@": ADDRESS, "*": 1}, "right": f"<circular ref to {ADDRESS}>"}),
    ],
)
def test_the_same(ours: Any, theirs: Any) -> None:
    tally = compared(ours, theirs)
    assert not tally.differences
    assert not tally.skipped
    assert tally.agreed >= 1
    assert set(tally.counts) == {"f 1"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (5, 6),
        (5, 5.5),
        (0.1, 0.2),
        (1, True),
        (0, None),
        (1 << 53, (1 << 53) + 1),
        ("text", "texts"),
        ("text…", "other text"),
        (MOVED, None),
        (MOVED, "text"),
        (f"<Order at {MOVED}>", f"<Item at {ADDRESS}>"),
        (f"<std::vector<std::string> at {MOVED}>", f"<std::vector<std::vector<std::string> > at {ADDRESS}>"),
        (f"{MOVED} <handler>", f"{ADDRESS} <other>"),
        (f"<unreadable {MOVED}>", {"@": ADDRESS, "id": 17}),
        ({"id": 17}, {"id": 17, "total": 1}),
        ({"id": 17, "total": 1}, {"id": 17}),
        ([1, 2], [1, 2, 3]),
        ([1, "… 3 more"], [1, 2, 3]),
        ({"a": 1, "…": "3 more"}, {"a": 1, "b": 2, "c": 3}),
        ([MOVED, MOVED], [ADDRESS, "0x7ffff7d01238"]),
        ([MOVED, "0x55d0c0ffee18"], [ADDRESS, ADDRESS]),
    ],
)
def test_different(ours: Any, theirs: Any) -> None:
    (difference,) = compared(ours, theirs).differences
    assert difference.call == "f 1"
    assert difference.path.startswith("a")


@pytest.mark.parametrize(
    ("ours", "theirs", "again", "why", "count"),
    [
        ("<not captured>", [1, 2], [1, 2], "left out by Strobe", 2),
        ([1, "… 2 more"], [1, 2, 3], [1, 2, 3], "left out by Strobe", 2),
        ({"a": 1, "…": "1 more"}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, "left out by Strobe", 1),
        ("tex…", "texts", "texts", "a text cut by Strobe", 1),
        (7, 8, 9, "gdb's two runs differ", 1),
        (f"<Order at {MOVED}>", f"<Order at {ADDRESS}>", "<Order at 0xa8a7a6a5a4a3a2a1>", "gdb's two runs differ", 1),
        (MOVED, "<unreadable 0x28>", "<unreadable 0x29>", "gdb's two runs differ", 1),
        ({"@": MOVED, "id": 1}, {"@": ADDRESS, "id": 2}, {"@": "0xa8a7a6a5a4a3a2a1", "id": 2}, "gdb's two runs differ", 2),
        (7, [8], 9, "gdb's two runs differ", 1),
        (7, "<gdb: optimised out>", 8, "<gdb: optimised out>", 1),
        ([1, 2], [1, "<gdb: enough>"], [1, "<gdb: enough>"], "<gdb: enough>", 1),
    ],
)
def test_what_cannot_be_compared_is_counted(ours: Any, theirs: Any, again: Any, why: str, count: int) -> None:
    tally = compared(ours, theirs, again)
    assert not tally.differences
    assert tally.skipped == {why: count}


def test_an_argument_that_strobe_does_not_have_is_a_difference() -> None:
    comparison = Comparison()
    comparison.call("f 1", {}, {"a": 1, "b": "<gdb: optimised out>"}, {"a": 1, "b": "<gdb: optimised out>"})
    assert [difference.path for difference in comparison.tally.differences] == ["a"]


def test_what_is_explained_is_not_compared() -> None:
    comparison = Comparison({r"\.stale$": "points to what is gone"})
    comparison.call("f 1", {"a": {"stale": 1, "id": 2}}, {"a": {"stale": 3, "id": 2}}, {"a": {"stale": 3, "id": 2}})
    assert not comparison.tally.differences
    assert comparison.tally.skipped == {"points to what is gone": 1}


def test_small_calls_have_no_reason_to_be_cut() -> None:
    tally = compared([1, 2, "… 3 more"], [1, 2, 3, 4, 5])
    assert tally.cut_although_small(6) == ["f 1: 3 of 5"]
    assert tally.cut_although_small(5) == []


def test_rich_calls_are_those_with_more_than_numbers() -> None:
    comparison = Comparison()
    for name, value in (("number", 1), ("address", None), ("text", "x"), ("struct", {"a": 1}), ("list", [1])):
        comparison.call(name, {"a": value}, {"a": value}, {"a": value})
    assert comparison.tally.rich == {"text", "struct", "list"}
