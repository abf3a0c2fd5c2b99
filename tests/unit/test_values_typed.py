"""Expressions over a type table and a memory: each kind of type, and random ones over random memory."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.expression import ExpressionError, Outcome, Scalar, Unavailable, evaluate, parse
from strobe.model.type_nodes import Array, Base, Enum, Float, Integer, Member, Node, Pointer, Qualified, Record, Static, Typedef, Variant, VariantPart
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values.memory import Missing
from strobe.values.registry import Formatters
from strobe.values.typed import ProgramScope, TypedValue, declarators, value_at
from strobe.values.typed_world import World

BASE = 0x10000
INT, CHAR, DOUBLE, LONG, NODE, NODE_POINTER, CHAR_POINTER, COLOR, FLAGS, UNION, ORDER, GRID, LABEL, INTS = range(2, 16)
DERIVED, REFERENCE, WORD, SHAPE, CIRCLE, CONST_INT = range(16, 22)
OPTION, SOME, VOID_POINTER, ITEM, ITEMS = range(22, 27)


def member(name: str, type_: int, offset: int, bits: tuple[int | None, int] = (None, 0)) -> Member:
    return Member(name, type_, offset, *bits)


NODES: tuple[Node, ...] = (
    *FIRST_NODES,
    Integer("int", "c", 4, True),
    Integer("char", "c", 1, True, "char"),
    Float("double", "c", 8, "double"),
    Integer("unsigned long", "c", 8, False),
    Record("struct node", "c", "struct", 16, (member("value", INT, 0), member("next", NODE_POINTER, 8))),
    Pointer("struct node *", "c", 8, NODE),
    Pointer("const char *", "c", 8, CHAR),
    Enum("shop::Color", "c++", 4, True, INT, (("Red", 0), ("Green", 7), ("Dark", -2)), scoped=True),
    Record("struct flags", "c", "struct", 4, (member("ready", LONG, 0, (1, 0)), member("level", LONG, 0, (5, 1)), member("delta", INT, 0, (4, 6)))),
    Record("union either", "c", "union", 8, (member("whole", LONG, 0), member("part", DOUBLE, 0))),
    Record(
        "Order", "c++", "struct", 64,
        (member("id", INT, 0), member("color", COLOR, 4), member("", UNION, 8), member("flags", FLAGS, 16), member("label", LABEL, 20),
        member("next", NODE_POINTER, 32)),
        statics=(Static("MAX", INT, None, 9), Static("count", INT, "_ZN5Order5countE")),
    ),
    Array("int[2][3]", "c", 24, INT, (2, 3)),
    Array("char[12]", "c", 12, CHAR, (12,)),
    Array("int[4]", "c", 16, INT, (4,)),
    Record("Derived", "c++", "struct", 80, (member("own", INT, 64),), (Base(ORDER, 0),)),
    Pointer("Order &", "c++", 8, ORDER, "lvalue"),
    Typedef("word", "c", LONG),
    Record("Shape", "rust", "struct", 16, (), variant_part=VariantPart(member("", INT, 0), (Variant(((1, 1),), (member("Circle", CIRCLE, 0),)),
    Variant(None, (member("Idle", CIRCLE, 0),))))),
    Record("Shape::Circle", "rust", "struct", 16, (member("__0", DOUBLE, 8),)),
    Qualified("const int", "c", INT, "const"),
    Record("core::option::Option<int>", "rust", "struct", 8, (), variant_part=VariantPart(member("", INT, 0), (Variant(((1, 1),),
    (member("Some", SOME, 0),)), Variant(((0, 0),), (member("None", SOME, 0),))))),
    Record("Some", "rust", "struct", 8, (member("__0", INT, 4),)),
    Pointer("void *", "c", 8, 0),
    Record("struct item", "c", "struct", 12, (member("a", INT, 0), member("b", INT, 4), member("c", INT, 8))),
    Pointer("struct item *", "c", 8, ITEM),
)  # fmt: skip


class Bytes:
    """A memory of one stretch; `reads` are counted."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = bytearray(data)
        self.reads = 0

    def read(self, address: int, size: int) -> bytes | Missing:
        self.reads += 1
        start = address - BASE
        if start < 0 or start > len(self.data):
            return Missing("unreadable", address)
        found = bytes(self.data[start : start + size])
        return found if len(found) == size else Missing("unreadable", address + len(found))


def world_of(memory: Bytes) -> World:
    return World(TypeTable(NODES), memory, Formatters.built_in())


VARIABLES = {
    "order": (ORDER, 0), "derived": (DERIVED, 0), "node": (NODE, 100), "list": (NODE_POINTER, 120), "text": (CHAR_POINTER, 128), "grid": (GRID, 136),
    "label": (LABEL, 20),
    "ints": (INTS, 160), "color": (COLOR, 4), "flags": (FLAGS, 16), "favourite": (REFERENCE, 176), "word": (WORD, 184), "shape": (SHAPE, 192),
    "fixed": (CONST_INT, 0),
    "maybe": (OPTION, 208), "none": (OPTION, 216), "nothing": (VOID_POINTER, 224), "items": (ITEMS, 232), "wild": (NODE_POINTER, 240),
}  # fmt: skip


def filled() -> Bytes:
    data = bytearray(1024)
    flags = 1 | 17 << 1 | (-3 & 15) << 6
    struct.pack_into("<iiQI12sQ", data, 0, 42, 7, 5, flags, b"box\0old", BASE + 100)
    struct.pack_into("<iiQ", data, 100, 31, 0, BASE + 300)
    struct.pack_into("<iiQ", data, 300, 32, 0, 0)
    struct.pack_into("<QQ", data, 120, BASE + 100, BASE + 400)
    data[400:406] = b"hello\0"
    struct.pack_into("<6i", data, 136, *range(1, 7))
    struct.pack_into("<4i", data, 160, 10, 20, 30, 40)
    struct.pack_into("<QQ", data, 176, BASE, (1 << 64) - 1)
    struct.pack_into("<iid", data, 192, 1, 0, 2.5)
    struct.pack_into("<iiii", data, 208, 1, 9, 0, 0)
    struct.pack_into("<QQQ", data, 224, 0, BASE + 500, 0xDEAD0000)
    struct.pack_into("<6i", data, 500, 1, 2, 3, 4, 5, 6)
    return Bytes(data)


def scope_of(memory: Bytes) -> ProgramScope:
    world = world_of(memory)
    found = {name: value_at(world, type_, BASE + at) for name, (type_, at) in VARIABLES.items()}
    return ProgramScope(world, dict(found), {"Order": ORDER, "struct node": NODE, "node": NODE}, {"ordre": ["order"]})


def outcome(text: str) -> Outcome:
    return evaluate(parse(text), scope_of(filled()))


def number(text: str) -> object:
    found = outcome(text)
    scalar = found if isinstance(found, Scalar | Unavailable) else found.scalar()
    assert isinstance(scalar, Scalar), f"{text}: {scalar}"
    return scalar.value


@pytest.mark.parametrize(("text", "value"), [
    ("order.id", 42), ("derived.id", 42), ("derived.Order::id", 42), ("order.whole", 5), ("order.flags.ready", 1), ("order.flags.level", 17),
    ("order.flags.delta", -3),
    ("order.next->value", 31), ("order.next->next->value", 32), ("order.next.next.value", 32), ("list[0].value", 31), ("*ints", 10), ("ints[3]", 40),
    ("grid[1][2]", 6), ("*(ints + 2)", 30),
    ("(*ints@4)[1]", 20), ("(ints[1]@2)[1]", 30), ("favourite.id", 42), ("favourite.MAX", 9), ("order.color == Green", True),
    ("color == shop::Color::Green", True), ("color == Color::Red", False),
    ("word", (1 << 64) - 1), ("shape.Circle.0", 2.5), ("shape.0", 2.5), ("maybe", 9), ("maybe + 1", 10), ("none", None), ("label == \"box\"", True),
    ("text == \"hello\"", True),
    ("order.label[0]", ord("b")), ("&ints[2] - &ints[0]", 2), ("&order == &favourite", True), ("*(int*)&order", 42), ("((Order*)65536)->id", 42),
    ("(node*)list == list", True),
    ("items[1].b", 5), ("items + 1 - items", 1), ("shop::Color::Dark", -2), ("nothing == null", True), ("fixed", 42),
    ("*(unsigned long*)&word", (1 << 64) - 1), ("text[1]", ord("e")),
    ("*((i16*)&ints + 2)", 20), ("(*(int*)&grid@6)[5]", 6),
])  # fmt: skip
def test_value(text: str, value: object) -> None:
    assert number(text) == value


@pytest.mark.parametrize(("text", "reason"), [
    ("order.idd", "has no member `idd`; there is `id`"), ("grid[2]", "outside"), ("ints[-1]", "outside"), ("grid[\"a\"]", "a number"),
    ("order.next->next->next->value", "null"),
    ("wild->value", "cannot be read"), ("*nothing", "does not say what it points to"), ("&order.flags.level", "bitfield"), ("order.id.x", "has no members"),
    ("order[0]", "has no elements"),
    ("*order", "is no pointer"), ("shape.Idle", "it is `Circle` now"), ("order.count", "static: write `Order::count`"), ("none.x", "holds no value"),
    ("ordre", "there is `order`"),
    ("(Unknown*)1", "no type `Unknown`"), ("&(order.id + 1)", "no address"), ("word[1]", "has no elements"),
])  # fmt: skip
def test_unavailable(text: str, reason: str) -> None:
    found = outcome(text)
    scalar = found.scalar() if isinstance(found, TypedValue) else found
    assert isinstance(scalar, Unavailable)
    assert reason in scalar.reason


@pytest.mark.parametrize(("text", "name"), [
    ("&order", "Order *"), ("&list", "struct node **"), ("*ints@4", "int[4]"), ("grid[0]", "int[3]"), ("*grid@3", "int[3][3]"), ("ints + 1", "int *"),
    ("order.next", "struct node *"),
    ("favourite", "Order"), ("word", "word"), ("fixed", "const int"), ("(Order**)0", "Order **"), ("text@3", "char[3]"),
])  # fmt: skip
def test_type_names(text: str, name: str) -> None:
    found = outcome(text)
    assert isinstance(found, TypedValue)
    assert found.type_name == name


@pytest.mark.parametrize(("name", "shown", "size"), [
    ("Order", "Order", 64), ("i32", "i32", 4), ("u8[4]", "u8[4]", 4), ("int *", "int *", 8), ("double[2][3]", "double[2][3]", 48), ("pointer", "void *", 8),
    ("Order *[3]", "Order *[3]", 24), ("unsigned char", "unsigned char", 1),
])  # fmt: skip
def test_types_by_name(name: str, shown: str, size: int) -> None:
    scope = scope_of(filled())
    number_ = scope.type(name)
    assert number_ is not None
    assert (scope.world.name(number_), scope.world.table.size(number_)) == (shown, size)


def test_declarators() -> None:
    assert declarators("Order *[4]") == ("Order", ["*", "[4]"])
    assert declarators("int") == ("int", [])
    assert declarators("[4]") == ("[4]", [])
    assert scope_of(filled()).type("nonsense") is None


def test_bytes_in_hand_need_no_memory() -> None:
    world = world_of(Bytes(b""))
    held = TypedValue(world, ORDER, None, bytes(filled().data[:64]))
    flags = held.member("flags")
    assert isinstance(flags, TypedValue)
    delta, label = flags.member("delta"), held.member("label")
    assert isinstance(delta, TypedValue)
    assert isinstance(label, TypedValue)
    assert delta.scalar() == Scalar(-3, bits=32)
    assert label.text() == "box"
    assert isinstance(held.address(), Unavailable)


def test_nothing_is_read_before_it_is_needed() -> None:
    memory = filled()
    scope = scope_of(memory)
    memory.reads = 0
    found = evaluate(parse("&order.label[3]"), scope)
    assert isinstance(found, TypedValue)
    assert memory.reads == 0


def test_types_made_by_expressions_are_made_once() -> None:
    scope = scope_of(filled())
    for _ in range(3):
        for text in ("&order", "*ints@4", "*(u16*)&word", "grid[1]"):
            evaluate(parse(text), scope)
    after = len(scope.world.table)
    evaluate(parse("&order"), scope)
    assert len(scope.world.table) == after <= len(NODES) + 12


PIECES = [*VARIABLES, "nope", "42", "-1", "0xffffffffffffffff", "65536", "\"box\"", "null", "2.5", "Green"]
STEPS = [
    ".id", ".next", "->next", "->value", "[0]", "[1]", "[-3]", "[99999999999]", ".flags", ".level", ".delta", ".label", ".whole", ".part", ".0", ".Circle",
    ".Some", "[\"a\"]", "@3", "@65536",
    " + 1", " - 5", " * 2", " == 7", ".Order::id", ".MAX",
]  # fmt: skip
PREFIXES = ["*", "&", "-", "!", "~", "(Order*)", "(node*)", "(int*)", "(char*)", "(u64**)", "**", "&*"]


def random_expression(rng: random.Random) -> str:
    text = rng.choice(PIECES)
    for _ in range(rng.randrange(1, 8)):
        text = f"{rng.choice(PREFIXES)}({text})" if rng.random() < 0.35 else text + rng.choice(STEPS)
        text = f"({text})" if rng.random() < 0.3 else text
    return text


def looked_at(text: str, scope: ProgramScope) -> None:
    """Everything there is to do with what an expression gives. Ends, and raises nothing but ExpressionError."""
    try:
        found = evaluate(parse(text), scope)
    except ExpressionError:
        return
    if isinstance(found, TypedValue):
        results = [found.scalar(), found.text(), found.raw(), found.address(), found.dereference(), found.index(1), found.member("id"), found.advance(2)]
        for result in (*results, found.span(2), found.inner()):
            assert not isinstance(result, Unavailable) or result.reason
        assert found.type_name


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=600, max_size=600), st.integers(0, 1 << 30))
def test_random_expressions_over_random_memory(data: bytes, seed: int) -> None:
    rng = random.Random(seed)
    scope = scope_of(Bytes(data))
    for _ in range(10):
        looked_at(random_expression(rng), scope)


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_over_pointers_that_lead_somewhere(seed: int) -> None:
    """Words that are addresses of the memory itself, so that paths go deep and in circles."""
    rng = random.Random(seed)
    for _ in range(100):
        words = [BASE + rng.randrange(0, 1000) if rng.random() < 0.7 else rng.getrandbits(64) for _ in range(128)]
        scope = scope_of(Bytes(struct.pack("<128Q", *words)))
        for _ in range(25):
            looked_at(random_expression(rng), scope)
