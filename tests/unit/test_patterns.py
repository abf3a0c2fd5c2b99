"""Patterns (SPEC §4, debug_trace). The tables on real C++ and Rust binaries are the specification of what a pattern matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.indexer.binary import Library
from actors.indexer.pattern import parse
from actors.indexer.resolver import Resolver
from actors.indexer.source_name import source_name
from strobe.errors import Code, StrobeError
from tests.harness.targets import program

# pattern → every function of names.cpp (built -O0) that answers to it, as shown in events
CPP = {
    "main": {"main"},
    "parse_*": {"parse_header", "parse_body", "parse__internal"},
    "parse_alias": {"parse_alias"},
    "dotted.name.v1": {"dotted.name.v1"},
    "auth::validate": {"auth::validate"},
    "validate": set(),
    "auth::*": {"auth::validate"},
    "auth::*::validate": {"auth::token::validate"},
    "auth::**::validate": {"auth::validate", "auth::token::validate", "auth::token::jwt::validate"},
    "auth::**": {"auth::validate", "auth::token::validate", "auth::token::refresh", "auth::token::jwt::validate"},
    "**::jwt::*": {"auth::token::jwt::validate"},
    "**::local_helper": {"(anonymous namespace)::local_helper"},
    "(anonymous namespace)::**": {"(anonymous namespace)::local_helper", "(anonymous namespace)::Hidden::reveal"},
    "net::twice": {"net::twice<int>", "net::twice<double>", "net::twice<char const*>"},
    "net::twice<int>": {"net::twice<int>"},
    "net::twice<*>(double)": {"net::twice<double>"},
    "net::Queue::push": {"net::Queue<int>::push", "net::Queue<double>::push"},
    "net::Queue<int>::*": {"net::Queue<int>::Queue", "net::Queue<int>::push", "net::Queue<int>::sum<int>", "net::Queue<int>::sum<long>"},
    "**::sum": {"net::Queue<int>::sum<int>", "net::Queue<int>::sum<long>", "net::Queue<double>::sum<double>"},
    "net::Connection::Connection": {"net::Connection::Connection"},
    "net::Connection::~Connection": {"net::Connection::~Connection"},
    "net::*::~*": {"net::Connection::~Connection"},
    "net::Connection::operator<": {"net::Connection::operator<"},
    "net::Connection::operator==": {"net::Connection::operator=="},
    "net::Connection::operator()": {"net::Connection::operator()"},
    "net::Connection::operator[]": {"net::Connection::operator[]"},
    "net::Connection::operator->": {"net::Connection::operator->"},
    "net::Connection::operator++": {"net::Connection::operator++"},
    "net::Connection::operator bool": {"net::Connection::operator bool"},
    "net::operator<<": {"net::operator<<"},
    'operator"" _km': {'operator"" _km'},
    "net::Connection::tagged": {"net::Connection::tagged"},
    "net::Both::*": {"net::Both::run", "net::Both::walk"},
    "outer::{lambda(int)#1}::operator()": {"outer::{lambda(int)#1}::operator()"},
    "outer::{lambda#1}::*": {"outer::{lambda(int)#1}::operator()"},
    "outer::**": {
        "outer::{lambda(int)#1}::operator()",
        "outer::Local::go",
        "outer::{lambda(auto:1)#2}::operator()<int>",
        "outer::{lambda(auto:1)#2}::operator()<double>",
    },
    "outer::*::go": {"outer::Local::go"},
    "make_adder": {"make_adder"},
    "*adder": {"make_adder"},
    "_start": {"_start"},
}
_SQUARE = "<names::shapes::Square as names::shapes::Area>::area"
_CIRCLE = "<names::shapes::Circle<f32> as names::shapes::Area>::area"
# pattern → the functions of names.rs, in rustc's legacy mangling, then in v0
RUST: dict[str, tuple[set[str], set[str]]] = {
    "names::main": ({"names::main"}, {"names::main"}),
    "exported_entry": ({"exported_entry"}, {"exported_entry"}),
    "names::shapes::Square::area": ({_SQUARE}, {_SQUARE}),
    "names::shapes::Area::area": ({_SQUARE, _CIRCLE}, {_SQUARE, _CIRCLE}),
    "**::Circle::area": ({_CIRCLE}, {_CIRCLE}),
    "**::area": ({_SQUARE, _CIRCLE}, {_SQUARE, _CIRCLE}),
    "<names::shapes::Square as names::shapes::Area>::area": ({_SQUARE}, {_SQUARE}),
    "<* as **::Area>::area": (set(), set()),
    "<** as **::Area>::area": ({_SQUARE, _CIRCLE}, {_SQUARE, _CIRCLE}),
    "names::shapes::Square::scale": ({"names::shapes::Square::scale"}, {"<names::shapes::Square>::scale"}),
    "**::Circle::grow": ({"names::shapes::Circle<T>::grow"}, {"<names::shapes::Circle<f32>>::grow"}),
    "names::generic_sum": ({"names::generic_sum"}, {"names::generic_sum::<f32>", "names::generic_sum::<i32>"}),
    "names::generic_sum::<f32>": (set(), {"names::generic_sum::<f32>"}),
    "names::shapes::Square::fmt": (
        {"names::<impl core::fmt::Display for names::shapes::Square>::fmt"},
        {"<names::shapes::Square as core::fmt::Display>::fmt"},
    ),
    "names::with_closure::{closure}": ({"names::with_closure::{{closure}}"}, {"names::with_closure::{closure#0}"}),
    "names::*": (
        {"names::main", "names::generic_sum", "names::with_closure", "names::apply"},
        {"names::main", "names::generic_sum::<f32>", "names::generic_sum::<i32>", "names::with_closure", "names::apply"},
    ),
}


def _shown(path: Path, pattern: str) -> set[str]:
    library = Library()
    reply = Resolver(library.open, [str(path)], [str(path)], "/nonexistent", 10_000).resolve([pattern])
    assert reply.patterns[0].matched == len(reply.places)
    return {place.function for place in reply.places}


@pytest.mark.parametrize("pattern", CPP)
def test_cpp(pattern: str) -> None:
    assert _shown(program("indexer/names.cpp", "-O0"), pattern) == CPP[pattern]


@pytest.mark.parametrize("pattern", RUST)
@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust(pattern: str, mangling: str) -> None:
    flags = ["-C", "symbol-mangling-version=v0"] if mangling == "v0" else []
    path = program("indexer/names.rs", *flags)
    if mangling == "legacy" and "names::main" not in _shown(path, "names::main"):
        pytest.skip("this rustc no longer mangles the legacy way by default")
    assert _shown(path, pattern) == RUST[pattern][mangling == "v0"]


# linkage name → text shown, texts that patterns are matched against
NAMES = {
    "foo": ("foo", {"foo"}),
    "inner.0": ("inner.0", {"inner.0", "inner"}),
    "foo.constprop.0": ("foo", {"foo", "foo.constprop.0"}),
    "_ZN3foo3barEi.isra.0.part.1": ("foo::bar.part.1", {"foo::bar", "foo::bar.isra.0.part.1"}),
    "_ZNSaIcED1Ev": ("std::allocator<char>::~allocator", {"std::allocator::~allocator"}),
    "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc": ("std::operator<< <std::char_traits<char> >", {"std::operator<<"}),
    "_ZNKSt8functionIFivEEcvbEv": ("std::function<int ()>::operator bool", {"std::function::operator bool"}),
    "_Z3mapIXgtLi4ELi2EEEvv": ("map<((4)>(2))>", {"map"}),
    "_ZdlPvm": ("operator delete", {"operator delete"}),
    "_ZN3FooclEv": ("Foo::operator()", {"Foo::operator()"}),
    "_ZZN1A1fEiENKUlS_E_clES_": ("A::f::{lambda(A)#1}::operator()", {"A::f::{lambda#1}::operator()", "A::f::{lambda(A)#1}::operator()"}),
    "_RNvMs0_NtC3foo3barNtB5_1S6method": ("<foo::bar::S>::method", {"foo::bar::S::method"}),
    "_RNvXs_C3fooNtB4_1SNtB4_5Trait1f": ("<foo::S as foo::Trait>::f", {"foo::S::f", "foo::Trait::f"}),
    "_ZN4core3num21_$LT$impl$u20$u32$GT$3pow17h0123456789abcdefE": ("core::num::<impl u32>::pow", {"u32::pow"}),
    "memcpy@@GLIBC_2.14": ("memcpy", {"memcpy"}),
}


@pytest.mark.parametrize("raw", NAMES)
def test_forms_of_a_name(raw: str) -> None:
    name = source_name(raw)
    shown, plain = NAMES[raw]
    assert name.shown == shown
    assert set(name.plain) == plain


def test_cold_parts_and_thunks_are_told() -> None:
    assert source_name("_Z3foov.cold").cold
    assert source_name("foo.part.0.cold.1").cold
    assert not source_name("cold").cold
    assert source_name("_ZThn16_N3net4Both4walkEi").thunk


# pattern → the position the error must name
INVALID = {
    "": 0,
    "  ": 0,
    "foo ": 3,
    "a***b": 1,
    "foo:bar": 3,
    "foo:::bar": 3,
    "^main$": 0,
    "a|b": 1,
    "main\\b": 4,
    "wh?t": 2,
    "@user": 1,
    "@file:": 6,
    "vector<int": 6,
    "f(int": 1,
    "f)": 1,
    "a;b": 1,
    "a\nb": 1,
    "x" * 2000: 1024,
}


@pytest.mark.parametrize("text", INVALID)
def test_invalid_pattern_names_pattern_position_and_an_example(text: str) -> None:
    with pytest.raises(StrobeError) as caught:
        parse(text)
    error = caught.value
    assert error.code == Code.INVALID_PATTERN
    assert error.value["position"] == INVALID[text]
    assert f"position {INVALID[text]}" in error.what
    assert error.value["pattern"][:20] == text[:20]
    assert "parse_header" in error.next_step


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("@file:auth", "/src/auth/token.c", True),
        ("@file:auth", "/src/other.c", False),
        ("@file:*.cpp", "/src/a.cpp", True),
        ("@file:*.cpp", "/src/a.c", False),
        ("@file:auth/*.c", "/src/auth/token.c", True),
        ("@file:/src/*.c", "/src/token.c", True),
        ("@file:/src/*.c", "/home/src/token.c", False),
        ("@file:a+b(1).c", "/x/a+b(1).c", True),
    ],
)
def test_file_patterns(pattern: str, path: str, matches: bool) -> None:
    assert parse(pattern).matches_file(path) is matches
