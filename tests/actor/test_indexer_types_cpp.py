"""Type tables of C++ programs against what the programs say about themselves, with libstdc++ and libc++."""

from __future__ import annotations

from pathlib import Path

import pytest

from strobe.model import type_nodes as nodes
from strobe.model.typed import Location
from tests.harness.gdb import entries
from tests.harness.targets import program
from tests.harness.type_facts import Typed, addresses, compare, facts, member_at

_QUICK = {("g++", "-O0", "-gdwarf-5", ""), ("clang++", "-O2", "-gdwarf-4", "-stdlib=libc++")}
BUILDS = [
    pytest.param((compiler, level, version, extra), id="-".join([compiler, level, version, extra]), marks=marks)
    for compiler, extras in (
        ("g++", ("", "-fdebug-types-section")),
        ("clang++", ("", "-fstandalone-debug", "-stdlib=libc++", "-fdebug-types-section")),
    )
    for level in ("-O0", "-O2")
    for version in ("-gdwarf-4", "-gdwarf-5")
    for extra in extras
    for marks in [[] if (compiler, level, version, extra) in _QUICK else [pytest.mark.full]]
]


def _built(compiler: str, level: str, version: str, extra: str) -> Path:
    return program("types/classes.cpp", level, version, *([extra] if extra else []), compiler=compiler)


@pytest.fixture
def typed(build: tuple[str, str, str, str]) -> Typed:
    return Typed.open(_built(*build))


@pytest.mark.parametrize("build", BUILDS)
def test_layout_is_what_the_program_says(typed: Typed) -> None:
    agreed, wrong = compare(typed)
    assert wrong == []
    assert agreed > 65


@pytest.mark.parametrize("build", BUILDS)
def test_bases_and_vtables(typed: Typed) -> None:
    said = addresses(typed.path)
    slots = {(name, int(slot)): int(value) for kind, name, slot, value in (row for row in facts(typed.path) if len(row) == 4) if kind == "slot"}
    table, number = typed.type("shop::Both")
    both = table[number]
    assert isinstance(both, nodes.Record) and both.vtable == 0
    offsets = {table[base.type].name: base.offset for base in both.bases}
    assert offsets == {"shop::Left": 0, "shop::Right": said["base Both Right"], "shop::Plain": said["base Both Plain"]}
    table, number = typed.type("shop::Diamond")
    diamond = table[number]
    assert isinstance(diamond, nodes.Record) and diamond.polymorphic
    assert [(table[base.type].name, base.virtual, base.offset) for base in diamond.bases] == [
        ("shop::Sides", False, 0), ("shop::Other", False, said["base Diamond Other"]),
    ]  # fmt: skip
    sides = table[diamond.bases[0].type]
    assert isinstance(sides, nodes.Record) and sides.vtable == 0
    (top,) = sides.bases
    assert table[top.type].name == "shop::Top" and top.virtual and top.offset is None and top.slot is not None
    assert slots["Diamond", top.slot] == said["base Diamond Top"] and slots["Sides", top.slot] == said["base Sides Top"]
    for plain in ("shop::Money", "shop::Derived", "shop::Empty"):
        table, number = typed.type(plain)
        record = table[number]
        assert isinstance(record, nodes.Record) and not record.polymorphic


@pytest.mark.parametrize("build", BUILDS)
def test_names_are_those_that_users_write(typed: Typed) -> None:
    table, number = typed.type("shop::Library")
    names = {found.name: table[found.type].name for found in table.members(number)}
    assert names.items() >= {
        "text": "std::string", "view": "std::string_view", "numbers": "std::vector<int>", "list": "std::list<shop::Money>",
        "map": "std::map<int, std::string>", "hash": "std::unordered_map<std::string, shop::Money>", "pair": "std::pair<char, long>",
        "tuple": "std::tuple<char, int, double>", "maybe": "std::optional<shop::Money>", "any": "std::any",
        "variant": "std::variant<int, std::string, shop::Money>", "unique": "std::unique_ptr<shop::Order>",
        "shared": "std::shared_ptr<shop::Order>", "call": "std::function<int (int)>",
    }.items() or names == names | {"call": "std::function<int(int)>"}  # fmt: skip
    table, number = typed.type("shop::Order")
    names = {found.name: table[found.type].name for found in table.members(number)}
    assert names["field"] == "int shop::Order::*" and names["method"] == "int (shop::Order::*)(int) const"
    assert (names["self"], names["other"], names["ring"]) == ("shop::Order &", "shop::Order &&", "shop::Ring<shop::Money, 3>")


@pytest.mark.parametrize("build", BUILDS)
def test_kinds_of_members(typed: Typed) -> None:
    table, number = typed.type("shop::Order")
    order = table[number]
    assert isinstance(order, nodes.Record) and order.vtable == 0
    kinds = {found.name: table.stripped(found.type) for found in table.members(number)}
    assert {name: node.encoding for name, node in kinds.items() if isinstance(node, nodes.Integer) and node.encoding != "number"} == {
        "utf8": "utf", "utf16": "utf", "utf32": "utf", "wide": "utf", "done": "bool",
    }  # fmt: skip
    reference, other, field, method = (kinds[name] for name in ("self", "other", "field", "method"))
    assert isinstance(reference, nodes.Pointer) and reference.form == "lvalue" and table[reference.target] is order
    assert isinstance(other, nodes.Pointer) and other.form == "rvalue"
    assert isinstance(field, nodes.MemberPointer) and not field.to_function and field.size == 8 and field.owner == number
    assert isinstance(method, nodes.MemberPointer) and method.to_function and method.size == 16
    level, mask = kinds["level"], kinds["mask"]
    assert isinstance(level, nodes.Enum) and level.scoped and level.size == 1 and not level.signed and not level.flags
    assert isinstance(mask, nodes.Enum) and mask.flags and not mask.scoped
    nothing = kinds["nothing"]
    assert isinstance(nothing, nodes.Unspecified) and nothing.size == 8
    ring = kinds["ring"]
    assert isinstance(ring, nodes.Record)
    assert [(one.name, table[one.type].name, one.is_value, one.value) for one in ring.template] == [
        ("T", "shop::Money", False, None), ("N", "int", True, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("build", BUILDS)
def test_static_members_and_variables(typed: Typed) -> None:
    table, number = typed.type("shop::Money")
    money = table[number]
    assert isinstance(money, nodes.Record) and [member.name for member in money.members] == ["units", "cents"]
    statics = {one.name: one for one in money.statics}
    assert set(statics) == {"limit", "rate", "created", "floor"} and statics["limit"].constant == 4711 and statics["floor"].constant == 1
    assert statics["created"].linkage_name == "_ZN4shop5Money7createdE"
    said, linked = addresses(typed.path), entries(typed.path)
    bias = said["main"] - linked["main"]
    graph = typed.graph()
    for name in ("shop::library", "shop::Money::created"):
        (found,) = graph.variables(name)
        assert (found.name, found.location) == (name, Location("address", said[name] - bias))
    (hidden,) = graph.variables("hidden_count")
    assert graph.variables("shop::hidden_count") == [hidden] and graph.variables("hop::hidden_count") == []
    assert hidden.name == "shop::(anonymous namespace)::hidden_count"
    (visits,) = graph.variables("shop::visits")
    assert visits.location.kind == "thread_local"


@pytest.mark.parametrize("build", BUILDS)
def test_function(typed: Typed) -> None:
    symbol = next(name for name in entries(typed.path) if name.startswith("_ZN4shop6handle"))
    table, handle = typed.function(symbol)
    assert [(one.name, table[one.type].name) for one in handle.parameters] == [
        ("order", "shop::Order &"), ("parts", "const std::vector<shop::Money> &"), ("diamond", "shop::Diamond"),
        ("names", "std::map<int, std::string>"), ("owned", "std::unique_ptr<shop::Order>"), ("level", "shop::Level"),
    ]  # fmt: skip
    assert len(table) < 1500 and not table.cut
    symbol = next(name for name in entries(typed.path) if name.startswith("_ZN4shop9ring_next"))
    table, following = typed.function(symbol)
    assert table[following.result].name in ("shop::Money *", "T *")


# Where the two libraries keep what a reader of a container needs
_INSIDE = {
    "libstdc++": {
        "text": "_M_dataplus._M_p", "numbers": "_M_impl._M_finish", "map": "_M_t._M_impl._M_node_count", "view": "_M_len",
        "hash": "_M_h._M_element_count", "maybe": "_M_payload._M_engaged", "variant": "_M_index", "shared": "_M_ptr", "fixed": "_M_elems",
    },
    "libc++": {
        "text": "__r_.__value_", "numbers": "__end_", "map": "__tree_.__pair3_.__value_", "view": "__size", "hash": "__table_.__p2_.__value_",
        "maybe": "__engaged_", "variant": "__impl.__index", "shared": "__ptr_", "fixed": "__elems_",
    },
}  # fmt: skip
_OFFSETS = {
    "libstdc++": {"text": 0, "numbers": 8, "map": 40, "view": 0, "hash": 24, "maybe": 16, "variant": 32, "shared": 0, "fixed": 0},
    "libc++": {"text": 0, "numbers": 8, "map": 16, "view": 8, "hash": 24, "maybe": 16, "variant": 24, "shared": 0, "fixed": 0},
}


@pytest.mark.parametrize("build", BUILDS)
def test_containers_inside(typed: Typed, build: tuple[str, str, str, str]) -> None:
    library = "libc++" if build[3] == "-stdlib=libc++" else "libstdc++"
    if build[0] == "clang++" and build[3] != "-fstandalone-debug" and library == "libstdc++":
        pytest.skip("clang leaves std::string's definition to the library's own debug info")
    table, number = typed.type("shop::Library")
    for name, inside in _INSIDE[library].items():
        outer, found = table.member(number, name), member_at(table, number, f"{name}.{inside}")
        assert outer is not None and found is not None, f"{name}.{inside}"
        assert found.offset - outer.offset == _OFFSETS[library][name], name
