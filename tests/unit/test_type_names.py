"""C++ and Rust type names without what their users leave out."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.indexer.dwarf.template_names import tidy, tidy_rust
from actors.indexer.dwarf.type_index import split_scope

_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("int", "int"),
        (_STRING, "std::string"),
        (f"std::vector<{_STRING}, std::allocator<{_STRING} > >", "std::vector<std::string>"),
        ("std::__1::map<int, Order, std::__1::less<int>, std::__1::allocator<std::__1::pair<const int, Order> > >", "std::map<int, Order>"),
        ("std::map<int, int, std::greater<int>, std::allocator<std::pair<const int, int> > >", "std::map<int, int, std::greater<int>>"),
        ("std::unordered_map<int, A, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<const int, A> > >", "std::unordered_map<int, A>"),
        ("std::unique_ptr<A, std::default_delete<A> >", "std::unique_ptr<A>"),
        ("std::stack<int, std::deque<int, std::allocator<int> > >", "std::stack<int>"),
        ("std::pair<std::less<int>, std::allocator<int> >", "std::pair<std::less<int>, std::allocator<int>>"),
        ("std::function<void (int, std::vector<int, std::allocator<int> >)>", "std::function<void (int, std::vector<int>)>"),
        ("std::vector<int, std::allocator<int> >::iterator", "std::vector<int>::iterator"),
        ("mine::vector<int, std::allocator<int> >", "mine::vector<int, std::allocator<int>>"),
        ("Char<'<', (Level)3>", "Char<'<', (Level)3>"),
        ("cut<short, in<the, middle", "cut<short, in<the, middle"),
    ],
)
def test_tidy(written: str, short: str) -> None:
    assert tidy(written) == short


def test_tidy_rust() -> None:
    assert tidy_rust("alloc::boxed::Box<alloc::vec::Vec<i32, alloc::alloc::Global>, alloc::alloc::Global>") == "alloc::boxed::Box<alloc::vec::Vec<i32>>"
    assert tidy_rust("Map<String, i32, std::hash::random::RandomState>") == "Map<String, i32>"
    assert tidy_rust("Vec<i32, my::Global>") == "Vec<i32, my::Global>"


def test_split_scope() -> None:
    assert split_scope("shop::Order<a::b>") == ("shop::", "Order<a::b>")
    assert split_scope("main") == ("", "main")
    assert split_scope("a::B<c::D>::E") == ("a::B<c::D>::", "E")
    assert split_scope("<a::B as c::D>::{vtable}") == ("", "<a::B as c::D>::{vtable}")


@given(st.text(alphabet="abst:<>(),'[]{} \\d_1operator", max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_ends(text: str) -> None:
    short = tidy(f"std::{text}<")
    assert len(short) <= 2 * len(text) + 20
    split_scope(text)


def test_long_names_take_no_time() -> None:
    started = time.monotonic()
    tidy("std::a<" * 20_000)
    tidy("std::a<b>" * 400)
    assert time.monotonic() - started < 1
