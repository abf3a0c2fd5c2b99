"""Expressions over real bytes with C's layouts. What the target's data can cause is an answer, never an exception."""

from __future__ import annotations

import struct

import pytest

from strobe.expression import COUNT_MAX, ExpressionError, Outcome, Scalar, Unavailable, evaluate, holds, parse
from tests.harness import typed_memory as t

COLOR = t.Enum("Color", 4, "I", (("Red", 0), ("Green", 1), ("Blue", 2)))
ITEM = t.Struct("Item", 16, (("price", 0, t.DOUBLE), ("count", 8, t.INT), ("color", 12, COLOR)))
NODE = t.Struct("Node", 16, (("value", 0, t.INT), ("next", 8, t.Pointer("Node*", 8, t.Struct("Node", 16, (("value", 0, t.INT), ("next", 8, t.LONG)))))))
ORDER = t.Struct("Order", 32, (("id", 0, t.UNSIGNED_LONG), ("name", 8, t.pointer(t.CHAR)), ("items", 16, t.pointer(ITEM)), ("open", 24, t.BOOL)))
BASE = 0x10000


def world() -> t.World:
    memory = t.Memory(BASE, bytearray(8))

    def place(type_: t.Type, raw: bytes) -> t.Place:
        return t.Place(memory, type_, memory.put(raw))

    name = memory.put(b"bolt\0")
    items = memory.put(b"".join(struct.pack("<diI", price, count, color) for price, count, color in ((0.5, -3, 0), (2.25, 7, 1), (100.0, 9, 2))))
    order = memory.put(struct.pack("<QQQ?", 17, name, items, True))
    last = memory.put(struct.pack("<iiQ", 2, 0, 0))
    variables: dict[str, t.Place | Scalar | Unavailable] = {
        "order": t.Place(memory, ORDER, order),
        "items": place(t.pointer(ITEM), struct.pack("<Q", items)),
        "list": place(NODE, struct.pack("<iiQ", 1, 0, last)),
        "gMode": place(t.INT, struct.pack("<i", 2)),
        "gTempo": place(t.DOUBLE, struct.pack("<d", 120.5)),
        "ratio": place(t.FLOAT, struct.pack("<f", 0.1)),
        "flags": place(t.UNSIGNED, struct.pack("<I", 0xF0)),
        "big": place(t.UNSIGNED_LONG, struct.pack("<Q", 2**64 - 1)),
        "low": place(t.LONG, struct.pack("<q", -(2**63))),
        "letter": place(t.CHAR, b"\xff"),
        "nothing": place(t.pointer(ORDER), bytes(8)),
        "wild": place(t.pointer(t.INT), struct.pack("<Q", 0xDEAD0000)),
        "buffer": place(t.array(t.CHAR, 8), b"hello\0\0\0"),
        "grid": place(t.array(t.array(t.INT, 3), 2), struct.pack("<6i", *range(6))),
        "gone": Unavailable("optimised out"),
        "LIMIT": Scalar(100),
        "Color::Green": Scalar(1),
        "color": place(COLOR, struct.pack("<I", 1)),
        "ns::Type::count": place(t.INT, struct.pack("<i", 5)),
        "args": place(t.array(t.INT, 4), struct.pack("<4i", 10, 11, 12, 13)),
        "wide": Scalar(2**70, bits=128),
    }
    arguments = [("order", place(t.pointer(ORDER), struct.pack("<Q", order))), ("cents", place(t.INT, struct.pack("<i", 250)))]
    return t.World(memory, variables, arguments, place(t.INT, struct.pack("<i", -1)), {"Item": ITEM, "struct Order": ORDER, "int": t.INT})


def number(outcome: Outcome) -> object:
    """What a test compares: a scalar's plain value, or the reason with the text's part at fault."""
    if not isinstance(outcome, Scalar | Unavailable):
        scalar = outcome.scalar()
        assert scalar is not None
        outcome = scalar
    return outcome.value if isinstance(outcome, Scalar) else outcome.reason


VALUES: dict[str, object] = {
    # paths
    "gMode": 2,
    "::gMode": 2,
    "ns::Type::count": 5,
    "order.id": 17,
    "order.items->price": 0.5,
    "order.items.price": 0.5,  # gdb's: `.` follows a pointer
    "order.items[1].count": 7,
    "(*order.items).count": -3,
    "(*(order.items + 2)).price": 100.0,
    "(2 + order.items)->price": 100.0,
    "(&order.items[2] - 1)->count": 7,
    "&order.items[2] - order.items": 2,
    "order.items - &order.items[2]": -2,
    "list.next->value": 2,
    "args[0]->id": 17,
    "args[0].id": 17,
    "args.order->id": 17,
    "args[1]": 250,
    "args[2]": 12,  # the call has two: the variable of that name
    "`args`[0]": 10,
    "args[gMode]": 12,
    "ret": -1,
    "grid[1][2]": 5,
    "*grid[1]": 3,
    "**grid": 0,
    "*(*(grid + 1) + 1)": 4,
    "(&gMode)[0]": 2,
    "buffer[1]": 101,
    "*buffer": 104,
    "*(buffer + 4)": 111,
    "(*order.items@3)[2].count": 9,
    "(order.items@3)[2].count": 9,
    "(order.items[1]@2)[1].count": 9,
    "(gMode@1)[0]": 2,
    "((Item*)(items + 1))->count": 7,
    "((struct Order*)&order)->id": 17,
    "*(int*)(order.items + 0 ? &gMode : null)": 2,
    "*(int*)grid": 0,
    # arithmetic and comparison: more of it in test_expression_arithmetic.py
    "gMode * 2 + 1": 5,
    "gTempo / 2": 60.25,
    "gMode / 4.0": 0.5,
    "-7 / 2": -3,
    "-7 % 3": -1,
    "7 % -3": 1,
    "flags & 0x30": 0x30,
    "~flags & 0xff": 0x0F,
    "flags >> 4": 15,
    "-1 >> 1": -1,
    "-flags": -0xF0,
    "-big": 1,
    "big + 1": 0,
    "big > -1": False,
    "low - 1": 2**63 - 1,
    "low == -9223372036854775808": True,
    "low / -1": -(2**63),
    "low % -1": 0,
    "ratio == 0.1": False,
    "ratio == 0.1f": True,
    "big == 18446744073709551616.0": True,  # C converts to double first
    r"letter == '\xff'": True,
    "letter < 0": True,
    "'a' + 1": 98,
    "order.open == true": True,
    "order.open + 1": 2,
    "!order.open": False,
    "1.0 / 0": float("inf"),
    "-1 / 0.0": float("-inf"),
    "wide > 5": True,
    "wide == wide": True,
    "items % 8": 0,
    # texts, enums, pointers
    'order.name == "bolt"': True,
    '"bolt" == order.name': True,
    'order.name != "nut"': True,
    'order.name < "c"': True,
    'buffer == "hello"': True,
    "buffer == buffer": True,
    "buffer == \"hello\" && order.name[0] == 'b'": True,
    '"a" < "b"': True,
    "color == Green": True,
    "Green == color": True,
    "color == Color::Green": True,
    "color != Blue": True,
    "color < Blue": True,
    'color == "Green"': True,
    '"Color::Blue" == color': False,
    "order.items[2].color == Blue": True,
    "color | Blue": 3,
    "nothing == null": True,
    "null != nothing": False,
    "nothing == 0": True,
    "null == nullptr": True,
    "items != NULL": True,
    "items == &order.items[0]": True,
    "items < &order.items[1]": True,
    "!nothing": True,
    "!null": True,
    # what is not needed is not asked for
    "nothing && nothing->id > 5": False,
    "!nothing || nothing->id > 5": True,
    "nothing ? nothing->id : 3": 3,
    "gMode == 2 ? order.id : gone": 17,
    "0 && missing": False,
}


@pytest.mark.parametrize("text", VALUES)
def test_value(text: str) -> None:
    found = number(evaluate(parse(text), world()))
    assert (found, type(found)) == (VALUES[text], type(VALUES[text]))


# text → reason, the part of the text at fault
UNAVAILABLE: dict[str, tuple[str, str]] = {
    "missing + 1": ("there is no `missing` here", "missing"),
    "gMods": ("there is no `gMods` here; there is `gMode`, `gTempo`, `gone`, `grid`", "gMods"),
    "1 + gone": ("optimised out", "gone"),
    "nothing->id == 3": ("the pointer is null", "nothing"),
    "1 + *wild": ("unreadable at 0xdead0000", "*wild"),
    "wild[2] > 0": ("unreadable at 0xdead0008", "wild[2]"),
    "wild[2]+1>0": ("unreadable at 0xdead0008", "wild[2]"),
    "order.total < 4.5": ("`Order` has no member `total`", "order.total"),
    "order > 4": ("this is neither a number nor a text", "order"),
    "order && 1": ("this is no number, truth or pointer", "order"),
    "1 / (gMode - 2)": ("division by zero", "1 / (gMode - 2)"),
    "1 % 0": ("division by zero", "1 % 0"),
    "1 << 64": ("a shift by 64 bits", "1 << 64"),
    "1 >> -1": ("a shift by -1 bits", "1 >> -1"),
    "1.5 % 2": ("`%` needs integers", "1.5 % 2"),
    "1.5 << 2": ("`<<` needs integers", "1.5 << 2"),
    "~1.5": ("`~` needs an integer", "~1.5"),
    '"a" + 1': ("a text takes part in comparisons only", '"a" + 1'),
    'gMode == "x"': ("this is no text", "gMode"),
    'color == "Pink"': ("this is no text, and no enum with such a name", "color"),
    "color == Pink": ("there is no `Pink` here", "Pink"),
    'null == "x"': ("null is compared", 'null == "x"'),
    "gMode == null": ("null is compared", "gMode == null"),
    "null < items": ("null has no order", "null < items"),
    "null + 1": ("null takes part", "null + 1"),
    "wide + 1": ("more than 64 bits", "wide + 1"),
    "items + items": ("pointers are not added", "items + items"),
    "items - wild": ("different sizes", "items - wild"),
    "items << 2.0": ("`<<` needs integers", "items << 2.0"),
    "order + 1": ("is no pointer", "order + 1"),
    "order * 1": ("`*` needs numbers", "order"),
    "order.items[1.5]": ("an index is an integer", "1.5"),
    "gMode[0]": ("`int` has no elements", "gMode[0]"),
    "grid[2]": ("index 2 is outside", "grid[2]"),
    "5[0]": ("no elements", "5[0]"),
    "(1 + 2).x": ("no members", "(1 + 2).x"),
    "*0x1234": ("with the type", "*0x1234"),
    "&5": ("no address", "&5"),
    "5@3": ("something in memory", "5"),
    "*items@0": ("a count from 1", "0"),
    f"*items@{COUNT_MAX + 1}": ("a count from 1", f"{COUNT_MAX + 1}"),
    "(Nope*)0x1234": ("there is no type `Nope`", "(Nope*)0x1234"),
    "(Item*)1.5": ("an address is", "1.5"),
    "args.nope": ("`int[4]` has no member", "args.nope"),
    '"text" && 1': ("neither true nor false", '"text"'),
    # a condition that cannot be told is neither true nor false
    "gone || 1": ("optimised out", "gone"),
    "gMode == 2 && nothing->id": ("the pointer is null", "nothing"),
    "gone ? 1 : 2": ("optimised out", "gone"),
    "!gone": ("optimised out", "gone"),
}


@pytest.mark.parametrize("text", UNAVAILABLE)
def test_unavailable(text: str) -> None:
    outcome = evaluate(parse(text), world())
    assert isinstance(outcome, Unavailable)
    reason, at_fault = UNAVAILABLE[text]
    assert reason in outcome.reason
    assert isinstance(holds(parse(text), world()), Unavailable)
    assert text[outcome.span.start : outcome.span.end] == at_fault


def test_a_path_is_the_value_itself() -> None:
    outcome = evaluate(parse("*order.items@2"), world())
    assert isinstance(outcome, t.Place)
    assert outcome.type.name == "Item[2]"


def test_no_call_and_no_return_value_here() -> None:
    nowhere = t.World(t.Memory(BASE), {})
    assert "no `args[0]` here" in str(number(evaluate(parse("args[0] > 1"), nowhere)))
    assert "no `args.x` here" in str(number(evaluate(parse("args.x"), nowhere)))
    assert "at a function's exit" in str(number(evaluate(parse("ret"), nowhere)))


def test_a_variable_called_ret_is_read_where_nothing_was_returned() -> None:
    assert number(evaluate(parse("ret"), t.World(t.Memory(BASE), {"ret": Scalar(5)}))) == 5


def test_holds() -> None:
    assert holds(parse("args[1] > 100 && gMode == 2"), world()) is True
    assert holds(parse("gTempo"), world()) is True
    assert holds(parse("nothing"), world()) is False


def test_cost_is_bounded_by_the_length() -> None:
    """The longest texts, whatever they are, ask the scope and the memory no more than once or so for each of their parts."""
    for part in ("+gMode", "||nothing", "==items", "<color", "-items"):
        scope = world()
        for length in (128, 64):
            try:
                expression = parse("gMode" + part * (length - 1))
            except ExpressionError:
                continue
            evaluate(expression, scope)
            break
        assert 0 < scope.called <= 128
        assert scope.memory.reads <= 4 * 128
