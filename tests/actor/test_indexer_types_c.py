"""Type tables of C programs against what the programs say about themselves."""

from __future__ import annotations

from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest

from strobe.model import type_nodes as nodes
from strobe.model.type_nodes import VOID
from strobe.model.typed import Location
from strobe.model.types import TypeTable
from tests.harness.gdb import entries
from tests.harness.targets import TARGETS, program
from tests.harness.type_facts import Typed, addresses, compare

HIDDEN = str(TARGETS / "types" / "hidden.c")
BUILDS = [
    pytest.param(compiler, level, version, *extra, id="-".join([compiler, level, version, *extra]), marks=[] if quick else [pytest.mark.full])
    for compiler in ("gcc", "clang")
    for level in ("-O0", "-O2")
    for version in ("-gdwarf-4", "-gdwarf-5")
    for extra in ([""], ["-fdebug-types-section"])
    for quick in [(compiler, level, version) in {("gcc", "-O0", "-gdwarf-5"), ("gcc", "-O2", "-gdwarf-4"), ("clang", "-O2", "-gdwarf-5")}]
]


def _built(compiler: str, level: str, version: str, extra: str = "") -> Path:
    return program("types/layout.c", level, version, *([extra] if extra else []), HIDDEN, compiler=compiler)


@pytest.fixture(scope="module")
def typed() -> Typed:
    return Typed.open(_built("gcc", "-O0", "-gdwarf-5"))


@pytest.mark.parametrize(("compiler", "level", "version", "extra"), BUILDS)
def test_layout_is_what_the_program_says(compiler: str, level: str, version: str, extra: str) -> None:
    agreed, wrong = compare(Typed.open(_built(compiler, level, version, extra)))
    assert wrong == []
    assert agreed > 90


def test_names_and_kinds(typed: Typed) -> None:
    table, number = typed.type("struct scalars")
    by_name = {found.name: found.type for found in table.members(number)}
    assert {name: table[kind].name for name, kind in by_name.items()} == {
        "flag": "_Bool", "letter": "char", "tiny": "signed char", "octet": "unsigned char", "shorter": "short int", "port": "port_number",
        "number": "int", "word": "unsigned int", "longer": "long int", "longest": "long long unsigned int", "huge": "__int128",
        "huge_unsigned": "__int128 unsigned", "single": "float", "twice": "double", "extended": "long double", "pair": "complex float",
        "pair_twice": "complex double", "utf16": "char16_t", "utf32": "char32_t", "wide": "wchar_t", "color": "enum color",
        "permission": "enum permission", "anonymous": "anonymous_enum", "big": "enum big", "text": "const char *const",
        "watched": "const volatile int", "only": "char *restrict",
    }  # fmt: skip
    integers = {name: node for name, kind in by_name.items() if isinstance(node := table.stripped(kind), nodes.Integer)}
    assert {name: node.encoding for name, node in integers.items() if node.encoding != "number"} == {
        "flag": "bool", "letter": "char", "tiny": "byte", "octet": "byte",
    }  # fmt: skip
    assert {name for name, node in integers.items() if not node.signed} == {"flag", "octet", "port", "word", "longest", "huge_unsigned", "utf16", "utf32"}
    floats = {name: node.format for name, kind in by_name.items() if isinstance(node := table.stripped(kind), nodes.Float | nodes.Complex)}
    assert floats == {"single": "single", "twice": "double", "extended": "x87", "pair": "single", "pair_twice": "double"}
    enums = {node.name: (node.flags, node.signed) for kind in by_name.values() if isinstance(node := table.stripped(kind), nodes.Enum)}
    assert enums["enum permission"] == (True, False) and enums["enum color"] == (False, True)


def test_arrays_of_all_kinds(typed: Typed) -> None:
    table, number = typed.type("struct arrays")
    arrays = {found.name: node for found in table.members(number) if isinstance(node := table[found.type], nodes.Array)}
    assert {name: (array.name, array.counts, array.bound) for name, array in arrays.items() if name != "nodes"} == {
        "one": ("int[7]", (7,), "fixed"), "two": ("short int[3][5]", (3, 5), "fixed"), "three": ("char[2][3][4]", (2, 3, 4), "fixed"),
        "pointers": ("void *[6]", (6,), "fixed"), "handlers": ("callback *[2]", (2,), "fixed"), "zero": ("int[0]", (0,), "fixed"),
        "flexible": ("long int[]", (None,), "flexible"),
    }  # fmt: skip
    to_array = table.member(number, "to_array")
    assert to_array is not None and table[to_array.type].name == "int (*)[9]"
    vectors, lanes = typed.type("vector4")
    vector = vectors.stripped(lanes)
    assert isinstance(vector, nodes.Array) and vector.vector and vector.counts == (4,) and vector.size == 16


def test_recursion_ends(typed: Typed) -> None:
    table, number = typed.type("struct tree")
    left, items = table.member(number, "left"), table.member(number, "items")
    assert left is not None and items is not None
    pointer, list_pointer = table[left.type], table[items.type]
    assert isinstance(pointer, nodes.Pointer) and pointer.target == number
    assert isinstance(list_pointer, nodes.Pointer) and list_pointer.name == "list_node *"
    node = table.stripped(list_pointer.target)
    assert isinstance(node, nodes.Record) and node.name == "struct list_node"
    following = table[node.members[1].type]
    assert isinstance(following, nodes.Pointer) and table[following.target] is node


def test_a_struct_that_another_unit_defines(typed: Typed) -> None:
    table, number = typed.type("struct mixed")
    targets = {}
    for name in ("hidden", "opaque", "nothing"):
        found = table.member(number, name)
        assert found is not None
        pointer = table[found.type]
        assert isinstance(pointer, nodes.Pointer)
        targets[name] = pointer.target
    hidden, opaque = table[targets["hidden"]], table[targets["opaque"]]
    assert isinstance(hidden, nodes.Record) and [member.name for member in hidden.members] == ["key", "next", "tag"]
    assert isinstance(opaque, nodes.Opaque) and (opaque.name, opaque.form) == ("struct never_defined", "struct")
    assert targets["nothing"] == VOID


def test_function(typed: Typed) -> None:
    table, take = typed.function("take")
    assert [(one.name, table[one.type].name) for one in take.parameters] == [
        ("tree", "struct tree *"), ("scalars", "const struct scalars *"), ("call", "callback *"), ("color", "enum color"), ("mixed", "struct mixed"),
    ]  # fmt: skip
    assert table[take.result].name == "int" and take.variadic
    call = table[take.parameters[2].type]
    assert isinstance(call, nodes.Pointer)
    function = table.stripped(call.target)
    assert isinstance(function, nodes.Function)
    assert (function.name, [table[one].name for one in function.parameters]) == ("int (const char *, void *)", ["const char *", "void *"])
    table, sum_of = typed.function("sum_of")
    assert [table[one.type].name for one in sum_of.parameters] == ["int", "long int *"] and not sum_of.variadic


@pytest.mark.parametrize(("compiler", "level", "version", "extra"), BUILDS)
def test_variables(compiler: str, level: str, version: str, extra: str) -> None:
    typed = Typed.open(_built(compiler, level, version, extra))
    said = addresses(typed.path)
    bias = said["main"] - entries(typed.path)["main"]
    for name in ("global_scalars", "global_mixed", "file_local", "table_of", "hidden_first"):
        graph = typed.graph()
        (found,) = graph.variables(name)
        assert (found.name, found.location) == (name, Location("address", said[name] - bias))
        assert graph.table().size(found.type)
    graph = typed.graph()
    kinds = {name: [one.location.kind for one in graph.variables(name)] for name in ("per_thread", "folded", "calls_seen", "no_such_variable")}
    assert kinds["folded"] in (["address"], ["constant"], ["removed"])
    assert kinds["per_thread"] == ["thread_local"] and kinds["calls_seen"] == ["address"] and kinds["no_such_variable"] == []


def test_limits_are_told(typed: Typed) -> None:
    graph = typed.graph(nodes=12)
    number = graph.named("struct scalars")
    table = graph.table()
    assert number is not None and len(table) == 12 and table.cut > 10
    record = table[number]
    assert isinstance(record, nodes.Record) and 0 < sum(member.type == nodes.CUT for member in record.members) <= table.cut
    assert graph.named("struct tree") == nodes.CUT


def test_wire_form_keeps_everything(typed: Typed) -> None:
    graph = typed.graph()
    for name in ("struct scalars", "struct bits", "struct arrays", "struct mixed", "struct anonymous"):
        assert graph.named(name) is not None
    table = graph.table()
    body = msgpack.packb(table.to_wire())
    assert TypeTable.from_wire(msgpack.unpackb(body)) == table
    assert len(body) < 60 * len(table)
    for wrong in (None, [], [2, 0, []], [1, 0, [[99]]], [1, 0, [[2, "int"]]], [1, 0, []]):
        with pytest.raises(ValueError, match=r"type|row"):
            TypeTable.from_wire(wrong)  # type: ignore[arg-type]


def test_pointers_and_arrays_by_name(typed: Typed) -> None:
    graph = typed.graph()
    numbers = [graph.named(name) for name in ("struct tree **", "list_node*[3]", "enum color[2][3]", "void *", "no_such_type *")]
    table = graph.table()
    assert [None if number is None else (table[number].name, table.size(number)) for number in numbers] == [
        ("struct tree **", 8), ("list_node *[3]", 24), ("enum color[2][3]", 24), ("void *", 8), None,
    ]  # fmt: skip
    outer = table[numbers[0] or 0]
    assert isinstance(outer, nodes.Pointer)
    inner = table[outer.target]
    assert isinstance(inner, nodes.Pointer) and inner.target == graph.named("struct tree")
