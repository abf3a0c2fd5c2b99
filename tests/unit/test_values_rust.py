"""What Rust's types say, from tables made by hand."""

from __future__ import annotations

import pytest

from strobe.model.type_nodes import Integer, Member, Node, Pointer, Record, TemplateArgument, Unspecified, Variant, VariantPart
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values import forms
from strobe.values.memory import Missing
from strobe.values.reader import Reader
from strobe.values.registry import Formatters
from strobe.values.rust_parts import Part, head
from strobe.values.rust_types import cases_of, form, is_uninhabited, last_name

U8, U64, NEVER, UNIT = 2, 3, 4, 5
SCALARS: tuple[Node, ...] = (
    Integer("u8", "rust", 1, False),
    Integer("u64", "rust", 8, False),
    Unspecified("!", "rust", 0),
    Unspecified("()", "rust", 0),
)


def table(*nodes: Node) -> TypeTable:
    """The scalars above, then `nodes` from number 6 on."""
    return TypeTable((*FIRST_NODES, *SCALARS, *nodes))


def record(name: str, size: int, *members: Member, part: VariantPart | None = None, template: tuple[TemplateArgument, ...] = ()) -> Record:
    return Record(name, "rust", "struct", size, members, variant_part=part, template=template)


class Bytes:
    """Memory from address 0x1000 on."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, address: int, size: int) -> bytes | Missing:
        at = address - 0x1000
        return self.data[at : at + size] if 0 <= at <= len(self.data) - size else Missing("unreadable", address)


def shown(types: TypeTable, number: int, data: bytes) -> object:
    return Reader(types, Bytes(data), Formatters.built_in()).at(number, 0x1000)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("shop::Unit", "Unit"),
        ("shop::Unit<a::b>", "Unit"),
        ("shop::Table<a::b>::Full", "Full"),
        ("Unit", "Unit"),
        ("shop::run::{closure_env#0}", "{closure_env#0}"),
        ("shop::F<fn(a::b) -> c::d>", "F"),
        ("", ""),
        ("::", "::"),
    ],
)
def test_last_name(name: str, last: str) -> None:
    assert last_name(name) == last


def test_head_of_a_name() -> None:
    assert head("alloc::vec::Vec<i32>") == ("alloc", "Vec", "i32")
    assert head("core::time::Duration") == ("core", "Duration", "")
    assert head("alloc::borrow::Cow<str>::Owned") == ("", "", "")  # a variant's fields, no type of the library
    assert head("Vec<i32>") == ("", "", "")


def _enum(*variants: tuple[tuple[tuple[int, int], ...] | None, str, int], signed: bool = False) -> TypeTable:
    """An enum of 2 bytes, type 6, its discriminant of 1 byte first; (values, name, type of the payload's only field, at 1)."""
    tag = Integer("i8" if signed else "u8", "rust", 1, signed)
    payloads = [record(f"E::{name}", 2, Member("__0", field, 1)) for _, name, field in variants]
    part = VariantPart(Member("", 7, 0), tuple(Variant(values, (Member(name, 8 + index, 0),)) for index, (values, name, _) in enumerate(variants)))
    return table(record("E", 2, part=part), tag, *payloads)


def test_the_variant_without_values_takes_all_others() -> None:
    types = _enum((None, "Some", U8), (((7, 9),), "None", U8))
    assert shown(types, 6, b"\x08\x05") == {"None": 5}
    assert shown(types, 6, b"\x0a\x05") == {"Some": 5}


def test_discriminants_are_compared_without_sign() -> None:
    types = _enum((((-2, -2),), "Minus", U8), (((3, 3),), "Plus", U8), signed=True)
    assert shown(types, 6, b"\xfe\x01") == {"Minus": 1}
    assert shown(types, 6, b"\x03\x01") == {"Plus": 1}
    assert shown(types, 6, b"\x04\x01") == "<no variant 4>"


def test_what_cannot_be_is_not_chosen() -> None:
    never, some = record("E::Never", 1, Member("__0", NEVER, 0)), record("E::Some", 1, Member("__0", U8, 0))
    part = VariantPart(None, (Variant(None, (Member("Never", 7, 0),)), Variant(None, (Member("Some", 8, 0),))))
    types = table(record("E", 1, part=part), never, some)
    assert is_uninhabited(types, 7) and not is_uninhabited(types, 8) and not is_uninhabited(types, 6)
    assert [case.name for case in cases_of(types, part).cases] == ["Some"]
    assert shown(types, 6, b"\x2a") == {"Some": 42}
    empty = VariantPart(None, ())
    types = table(record("Void", 0, part=empty))
    assert is_uninhabited(types, 6) and shown(types, 6, b"") == "<no value>"


def test_an_option_that_holds_null_is_no_none() -> None:
    none, some = record("core::option::Option<()>::None", 1), record("core::option::Option<()>::Some", 1, Member("__0", UNIT, 1))
    part = VariantPart(Member("", U8, 0), (Variant(((0, 0),), (Member("None", 7, 0),)), Variant(((1, 1),), (Member("Some", 8, 0),))))
    types = table(record("core::option::Option<()>", 1, part=part), none, some)
    assert shown(types, 6, b"\x00") is None
    assert shown(types, 6, b"\x01") == {"Some": None}


def test_a_layout_that_is_not_known_is_a_plain_struct() -> None:
    types = table(record("alloc::vec::Vec<u8>", 16, Member("begin", U64, 0), Member("len", U64, 8), template=(TemplateArgument("T", U8),)))
    assert form(types, 6) is None
    assert shown(types, 6, (1).to_bytes(8, "little") + (2).to_bytes(8, "little")) == {"begin": 1, "len": 2}


def test_a_vector_of_the_layout_before_1_83() -> None:
    types = table(
        record("alloc::vec::Vec<u8>", 24, Member("buf", 7, 8), Member("len", U64, 0), template=(TemplateArgument("T", U8),)),
        record("alloc::raw_vec::RawVec<u8>", 16, Member("ptr", 8, 0), Member("cap", U64, 8)),
        record("core::ptr::unique::Unique<u8>", 8, Member("pointer", 9, 0), Member("_marker", UNIT, 8)),
        record("core::ptr::non_null::NonNull<u8>", 8, Member("pointer", 10, 0)),
        Pointer("*const u8", "rust", 8, U8),
    )
    assert form(types, 6) == forms.Sequence(8, U8, 1, forms.Number(0, 8))
    words = (3, 0x1018, 4)
    assert shown(types, 6, b"".join(word.to_bytes(8, "little") for word in words) + b"\x07\x08\x09") == [7, 8, 9]


def test_wrappers_that_hold_themselves_end() -> None:
    types = table(record("Loop", 8, Member("inner", 6, 0)))
    assert isinstance(Part(types, 6).unwrapped().node, Record)
    assert shown(types, 6, bytes(8)) == "Loop"
