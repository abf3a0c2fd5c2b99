"""Damaged memory and damaged types: an answer that JSON can say, of bounded size, in bounded time, whatever is wrong."""

from __future__ import annotations

import dataclasses
import json
import random
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import pytest

from strobe.lanes.layout import RegionState
from strobe.model import type_nodes as nodes
from strobe.model.type_nodes import Node, TypeId
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values import forms
from strobe.values.forms import Form, Number
from strobe.values.memory import PAYLOAD_BASE, Image, Missing, Region
from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters
from strobe.values.view import VALUES_MAX

ROUNDS: Final = 400
SHOW_S: Final = 5.0  # far more than any showing takes: a bound, not a measurement
BASE: Final = 0x7F00_0000_0000
ROOM: Final = 4096
_BASES: Final = ((0, False, None), (8, False, None), (None, True, -24), (None, True, None))
_NAMES: Final = ("int", "std::vector<int>", "std::string", "std::map<int, int>", "struct list", "")


class Noise:
    """Memory of random words, many of which are addresses in it: chains, cycles and rows of any length."""

    def __init__(self, chance: random.Random) -> None:
        words = [
            chance.choice((0, 1, 7, BASE + chance.randrange(ROOM), BASE + 8 * chance.randrange(ROOM // 8), chance.getrandbits(64))) for _ in range(ROOM // 8)
        ]
        self.data = struct.pack(f"<{len(words)}Q", *words)

    def read(self, address: int, size: int) -> bytes | Missing:
        start = address - BASE
        if not 0 <= start < ROOM:
            return Missing("unreadable", address)
        return self.data[start : start + size] if start + size <= ROOM else Missing("cut", BASE + ROOM)


class Everything:
    """Symbols that know each address, wrongly."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def function(self, address: int, /) -> str | None:
        return self.chance.choice((None, "f", "std::_Function_handler<int (int), main::{lambda(int)#1}>::_M_invoke", "_Function_handler<", "<<(,>"))

    def dynamic(self, address: int, /) -> TypeId | None:
        return self.chance.choice((None, self.chance.randrange(-3, 60)))


def _random_value(chance: random.Random, name: str, kind: str, count: int, here: int) -> Any:
    """Of the node `here`: it mostly contains what comes before it."""
    number = chance.choice((0, 1, 2, 3, 4, 8, 16, 24, chance.randrange(64), -1, 1 << 20, 1 << 40, 1 << 63, -(1 << 40)))
    before = here if chance.random() < 0.9 else count
    target = chance.choice((chance.randrange(before), chance.randrange(before), chance.randrange(count + 3), 0, 1, -1))
    choices: dict[str, Callable[[], Any]] = {
        "name": lambda: chance.choice(_NAMES), "language": lambda: chance.choice(("c", "c++", "rust", "")),
        "target": lambda: target, "element": lambda: target, "result": lambda: target, "type": lambda: target,
        "owner": lambda: chance.choice((None, target)), "underlying": lambda: chance.choice((None, target)),
        "form": lambda: chance.choice(("pointer", "lvalue", "rvalue")) if kind == "Pointer" else chance.choice(("struct", "union", "class")),
        "format": lambda: chance.choice(("half", "bfloat", "single", "double", "x87", "quad", "decimal", "unknown")),
        "encoding": lambda: chance.choice(("number", "char", "byte", "utf", "bool", "address")), "qualifier": lambda: "const",
        "counts": lambda: tuple(chance.choice((None, 0, 1, 3, 1000, 1 << 40, -1)) for _ in range(chance.randrange(4))),
        "enumerators": lambda: tuple((f"e{i}", chance.choice((i, 1 << i, -i, 1 << 70))) for i in range(chance.randrange(5))),
        "members": lambda: tuple(_member(chance, before, index) for index in range(chance.randrange(6))),
        "bases": lambda: tuple(nodes.Base(chance.randrange(before), *chance.choice(_BASES)) for _ in range(chance.choice((0, 0, 1, 2)))),
        "template": lambda: tuple(nodes.TemplateArgument("T", chance.randrange(count + 2)) for _ in range(chance.randrange(3))),
        "vtable": lambda: chance.choice((None, None, 0, number)), "statics": lambda: (), "parameters": lambda: (), "bound": lambda: "fixed",
        "variant_part": lambda: _variants(chance, before) if chance.random() < 0.2 else None, "vtable_of": lambda: None, "problem": lambda: None,
        "alignment": lambda: chance.choice((None, None, 1, 8, -3)), "signed": lambda: chance.random() < 0.5, "size": lambda: number,
        "to_function": lambda: chance.random() < 0.5, "flags": lambda: chance.random() < 0.5, "scoped": lambda: False,
        "vector": lambda: chance.random() < 0.2, "variadic": lambda: False,
    }  # fmt: skip
    return choices[name]()


def _member(chance: random.Random, count: int, index: int) -> nodes.Member:
    offset = chance.choice((8 * index, 8 * index, chance.randrange(64), -8, 1 << 40))
    bits = chance.choice((None, None, None, 3, 64, 200, -1))
    names = ("", f"m{index}", "_M_start", "count", "__begin_", "_M_impl")
    return nodes.Member(
        chance.choice(names),
        chance.randrange(-1, count + 2) if chance.random() < 0.02 else chance.randrange(count),
        offset,
        bits,
        chance.randrange(9) if bits else 0,
    )


def _variants(chance: random.Random, count: int) -> nodes.VariantPart:
    some = [
        nodes.Variant(chance.choice((None, ((0, 3),), ((-1, 1 << 70),))), tuple(_member(chance, count, 0) for _ in range(chance.randrange(2))))
        for _ in range(3)
    ]
    return nodes.VariantPart(chance.choice((None, _member(chance, count, 1))), tuple(some))


_KINDS: Final = (
    nodes.Integer, nodes.Float, nodes.Complex, nodes.Enum, nodes.Pointer, nodes.MemberPointer, nodes.Function, nodes.Array, nodes.Record, nodes.Record,
    nodes.Record, nodes.Record, nodes.Typedef, nodes.Qualified, nodes.Unspecified,
)  # fmt: skip


def _table(chance: random.Random) -> TypeTable:
    count = chance.randrange(4, 40)
    made: list[Node] = list(FIRST_NODES)
    while len(made) < count:
        kind = chance.choice(_KINDS)
        made.append(kind(**{field.name: _random_value(chance, field.name, kind.__name__, count, len(made)) for field in dataclasses.fields(kind)}))
    return TypeTable(tuple(made))


def _checked(show: Callable[[], Any]) -> Any:
    started = time.monotonic()
    shown = show()
    assert time.monotonic() - started < SHOW_S
    text = json.dumps(shown)
    assert len(text) < 100 * VALUES_MAX
    return shown


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 40))])
def test_random_types(seed: int) -> None:
    chance = random.Random(seed)
    formatters = Formatters.of(None)[0]
    shown = 0
    for _ in range(ROUNDS):
        table, memory = _table(chance), Noise(chance)
        reader = Reader(table, memory, formatters, Limits(depth=chance.randrange(11)), chance.choice((None, Everything(chance))))
        for _ in range(4):
            number = chance.randrange(-2, len(table) + 2)
            shown += _checked(partial(reader.at, number, BASE + 8 * chance.randrange(ROOM // 8))) is not None
            _checked(partial(reader.of, number, chance.randbytes(chance.choice((0, 1, 8, 64)))))
    assert shown > ROUNDS


class Forced(Formatters):
    """Says that a type has this form."""

    def __init__(self, number: TypeId, form: Form) -> None:
        super().__init__([])
        self.number, self.forced = number, form

    def form(self, table: TypeTable, number: TypeId) -> Form | None:
        return self.forced if number == self.number else None


def _number(chance: random.Random) -> Number:
    if chance.random() < 0.2:
        return Number(size=0, fixed=chance.choice((0, 1, 5, 1 << 60)))
    return Number(8 * chance.randrange(8), chance.choice((1, 2, 4, 8)), chance.choice((0, 0, 1, 0xFE)), chance.choice((0, 0, 1)), chance.choice((1, 1, 11)))


def _form(chance: random.Random, nesting: int = 0) -> Form:
    kind = chance.choice([one for one in _FORMS if nesting < 3 or one is not forms.Either])
    made: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in ("then", "otherwise"):
            made[field.name] = _form(chance, nesting + 1)
        elif "Number" in str(field.type):
            made[field.name] = _counts(chance) if "tuple" in str(field.type) else _number(chance)
        elif field.name in ("element", "type", "target", "key", "value") and field.type == "TypeId":
            made[field.name] = chance.randrange(2, 6)
        else:
            made[field.name] = _part(chance, field.name, str(field.type))
    return cast(Form, kind(**made))


def _part(chance: random.Random, name: str, kind: str) -> Any:
    if name == "unit":
        return chance.choice((1, 2, 4))
    if kind == "bool":
        return chance.random() < 0.3
    if kind in ("str", "str | None"):
        return chance.choice(("", "std::chrono::system_clock"))
    if "Literal" in kind:
        return chance.choice([one.strip(' "') for one in kind[kind.index("[") + 1 : kind.rindex("]")].split(",")])
    if name == "types":
        return tuple(chance.randrange(2, 6) for _ in range(3))
    if name == "parts":
        return tuple((chance.randrange(2, 6), 8 * chance.randrange(9)) for _ in range(chance.randrange(4)))
    whole = 8 * chance.randrange(8) if name not in ("stride", "size", "per_block", "leaf_size") else chance.choice((0, 4, 8, 16, 32, 1 << 30))
    return None if "None" in kind and chance.random() < 0.3 else whole


def _counts(chance: random.Random) -> tuple[tuple[str, Number], ...]:
    return tuple((f"c{index}", _number(chance)) for index in range(chance.randrange(3)))


_FORMS: Final[list[type[Any]]] = [
    forms.Text, forms.Sequence, forms.Bits, forms.Nodes, forms.Tree, forms.Blocks, forms.Ring, forms.Swiss, forms.BTree, forms.Inner, forms.Parts, forms.Maybe,
    forms.Choice, forms.Either, forms.Owner, forms.Erased, forms.Time, forms.Moment, forms.ImaginaryParts, forms.Hidden,
]  # fmt: skip
_FORMED: Final = TypeTable((
    *FIRST_NODES, nodes.Record("box", "c++", "struct", 64, ()), nodes.Integer("int", "c++", 4, True), nodes.Pointer("box *", "c++", 8, 2),
    nodes.Record("pair", "c++", "struct", 16, (nodes.Member("a", 4, 0), nodes.Member("b", 3, 8))),
))  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 40))])
def test_random_forms(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2 * ROUNDS):
        forced = Forced(2, _form(chance))
        reader = Reader(_FORMED, Noise(chance), forced, Limits(depth=chance.randrange(5)), chance.choice((None, Everything(chance))))
        _checked(partial(reader.at, 2, BASE + 8 * chance.randrange(ROOM // 8)))


def test_an_image_that_was_cut_anywhere() -> None:
    """An entry whose image ends early: what is there is shown, the rest is said to be missing."""
    record = nodes.Record("struct order", "c", "struct", 24, (nodes.Member("id", 3, 0), nodes.Member("next", 4, 8), nodes.Member("total", 5, 16)))
    table = TypeTable((
        *FIRST_NODES, record, nodes.Integer("int", "c", 4, True), nodes.Pointer("struct order *", "c", 8, 2), nodes.Float("double", "c", 8, "double"),
    ))  # fmt: skip
    first, second = struct.pack("<iiQd", 17, 0, 0x2000, -4.0), struct.pack("<iiQd", 18, 0, 0, 0.5)
    payload = struct.pack("<Q", 0x1000)
    formatters = Formatters.built_in()

    def shown(*regions: Region) -> Any:
        return Reader(table, Image(payload, regions), formatters).at(4, PAYLOAD_BASE)

    whole = shown(Region(0x1000, first, RegionState.OK), Region(0x2000, second, RegionState.OK))
    assert whole == {"@": "0x1000", "id": 17, "next": {"@": "0x2000", "id": 18, "next": None, "total": 0.5}, "total": -4.0}
    assert shown(Region(0x1000, first, RegionState.OK))["next"] == {"@": "0x2000", "*": "<not captured>"}
    assert shown(Region(0x1000, first[:16], RegionState.CUT), Region(0x2000, second, RegionState.OK))["…"] == "<cut>"
    assert shown(Region(0x1000, b"", RegionState.UNREADABLE)) == "<unreadable 0x1000>"
    assert shown(Region(0x1000, first[:8], RegionState.UNREADABLE)) == {"@": "0x1000", "id": 17, "…": "<unreadable 0x1008>"}
    assert shown() == {"@": "0x1000", "*": "<not captured>"}
    for end in range(len(first)):
        _checked(partial(shown, Region(0x1000, first[:end], RegionState.CUT)))
