"""Type tables of Rust programs against what the programs say about themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from strobe.model import type_nodes as nodes
from strobe.model.type_nodes import TypeId
from strobe.model.typed import Location
from strobe.model.types import TypeTable
from tests.harness.gdb import entries
from tests.harness.targets import program
from tests.harness.type_facts import Typed, addresses, compare, facts, member_at

BUILDS = [
    pytest.param(flags, id=" ".join(flags) or "debug", marks=marks)
    for flags, marks in (
        ((), []),
        (("-O",), [pytest.mark.full]),
        (("-C", "dwarf-version=5"), [pytest.mark.full]),
        (("-O", "-C", "dwarf-version=5"), [pytest.mark.full]),
    )
]


def _built(flags: tuple[str, ...]) -> Path:
    return program("types/enums.rs", *flags)


@pytest.fixture
def typed(build: tuple[str, ...]) -> Typed:
    return Typed.open(_built(build))


@pytest.mark.parametrize("build", BUILDS)
def test_layout_is_what_the_program_says(typed: Typed) -> None:
    agreed, wrong = compare(typed)
    assert wrong == []
    assert agreed > 60


@pytest.mark.parametrize("build", BUILDS)
def test_variants_are_told_by_their_bytes(typed: Typed) -> None:
    table, number = typed.type("enums::Options")
    told = [row[1:] for row in facts(typed.path) if row[0] == "variant"]
    assert len(told) == 31
    wrong = []
    for field, path, bytes_hex in told:
        found = table.member(number, field)
        assert found is not None
        ours = _variants(table, found.type, bytes.fromhex(bytes_hex), path.count(".") + 1)
        if ours != path:
            wrong.append(f"{field}: {bytes_hex} is {path}, read as {ours}")
    assert wrong == []


def _variants(table: TypeTable, number: TypeId, raw: bytes, levels: int) -> str:
    """The names of the variants that the bytes hold, from the outermost in."""
    names: list[str] = []
    offset = 0
    while len(names) < levels:
        record = table[number]
        assert isinstance(record, nodes.Record) and record.variant_part is not None, record
        chosen = _chosen(table, record.variant_part, raw, offset)
        (payload,) = chosen.members
        names.append(payload.name)
        inside = table[payload.type]
        assert isinstance(inside, nodes.Record)
        if len(names) < levels:
            offset += payload.offset + inside.members[0].offset
            number = inside.members[0].type
    return ".".join(names)


def _chosen(table: TypeTable, part: nodes.VariantPart, raw: bytes, offset: int) -> nodes.Variant:
    assert part.discriminant is not None
    integer = table.stripped(part.discriminant.type)
    assert isinstance(integer, nodes.Integer)
    at = offset + part.discriminant.offset
    value = int.from_bytes(raw[at : at + integer.size], "little", signed=integer.signed)
    exact = [one for one in part.variants if one.values is not None and any(low <= value <= high for low, high in one.values)]
    default = [one for one in part.variants if one.values is None]
    return (exact or default)[0]


@pytest.mark.parametrize("build", BUILDS)
def test_names_and_kinds(typed: Typed) -> None:
    table, number = typed.type("enums::Everything<i16>")
    names = {found.name: table[found.type].name for found in table.members(number)}
    assert names.items() >= {
        "flag": "bool", "letter": "char", "tiny": "i8", "huge": "u128", "real": "f32", "unit": "()", "tuple": "(u8, u32, i16)",
        "array": "[[u16; 3]; 2]", "text": "&str", "slice": "&[enums::Inner]", "string": "alloc::string::String", "numbers": "alloc::vec::Vec<i32>",
        "hash": "std::collections::hash::map::HashMap<alloc::string::String, i32>", "boxed": "alloc::boxed::Box<enums::Inner>",
        "counted": "alloc::rc::Rc<enums::Inner>", "call": "fn(i32) -> i32", "pointer": "*const enums::Inner", "level": "enums::Level",
        "payload": "enums::Payload", "generic": "i16",
    }.items()  # fmt: skip
    kinds = {found.name: table.stripped(found.type) for found in table.members(number)}
    letter, flag, huge = kinds["letter"], kinds["flag"], kinds["huge"]
    assert isinstance(letter, nodes.Integer) and letter.encoding == "utf" and isinstance(flag, nodes.Integer) and flag.encoding == "bool"
    assert isinstance(huge, nodes.Integer) and huge.size == 16 and not huge.signed
    text, level, everything = kinds["text"], kinds["level"], table[number]
    assert isinstance(text, nodes.Record) and [(member.name, member.offset) for member in text.members] == [("data_ptr", 0), ("length", 8)]
    assert isinstance(level, nodes.Enum) and level.size == 1 and not level.signed
    assert isinstance(everything, nodes.Record) and everything.alignment == 16
    assert [(one.name, table[one.type].name) for one in everything.template] == [("T", "i16")]
    shape = kinds["shape"]
    assert isinstance(shape, nodes.Record) and [member.name for member in shape.members] == ["pointer", "vtable"]


@pytest.mark.parametrize("build", BUILDS)
def test_enums_with_one_variant_and_with_signed_tags(typed: Typed) -> None:
    table, number = typed.type("enums::Single")
    single = table[number]
    assert isinstance(single, nodes.Record) and single.variant_part is not None
    assert [[member.name for member in one.members] for one in single.variant_part.variants] == [["Only"]]
    table, number = typed.type("enums::Tagged")
    tagged = table[number]
    assert isinstance(tagged, nodes.Record) and tagged.variant_part is not None
    assert [one.values for one in tagged.variant_part.variants] == [((-2, -2),), ((3, 3),)]
    union = typed.type("enums::Either")
    node = union[0][union[1]]
    assert isinstance(node, nodes.Record) and node.form == "union" and [member.offset for member in node.members] == [0, 0]


@pytest.mark.parametrize("build", BUILDS)
def test_containers_inside(typed: Typed) -> None:
    table, number = typed.type("enums::Everything<i16>")
    for path, name in (
        ("numbers.len", "usize"), ("numbers.buf.inner.ptr.pointer.pointer", "*const u8"), ("string.vec.len", "usize"), ("hash.base.table.table.items", "usize"),
        ("tree.length", "usize"), ("queue.head", "usize"), ("cell.value.value", "u32"), ("text.length", "usize"),
    ):  # fmt: skip
        found = member_at(table, number, path)
        assert found is not None and table[found.type].name == name, path


@pytest.mark.parametrize("build", BUILDS)
def test_function_and_statics(typed: Typed) -> None:
    table, handle = typed.function("handle")
    assert [(one.name, table[one.type].name) for one in handle.parameters] == [
        ("all", "&enums::Everything<i16>"), ("maybe", "core::option::Option<&enums::Inner>"), ("list", "&mut enums::Node"),
        ("words", "&[alloc::string::String]"), ("level", "enums::Level"), ("how", "&dyn enums::Shape"),
    ]  # fmt: skip
    assert table[handle.result].name == "core::result::Result<u32, alloc::string::String>" and not table.cut
    said = addresses(typed.path)
    bias = said["handle"] - entries(typed.path)["handle"]
    for name in ("enums::COUNTER", "enums::TABLE"):
        (found,) = typed.graph().variables(name)
        assert found.location == Location("address", said[name] - bias)


@pytest.mark.parametrize("build", BUILDS)
def test_a_vtable_tells_its_concrete_type(typed: Typed) -> None:
    graph = typed.graph()
    vtables = graph.variables("<enums::Square as enums::Shape>::{vtable}")
    table = graph.table()
    concrete = [table[node.vtable_of].name for one in vtables if isinstance(node := table.stripped(one.type), nodes.Record) and node.vtable_of is not None]
    assert concrete and set(concrete) == {"enums::Square"}
