"""Walk programs of types and forms: which steps, and that their targets never read more than there is."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from strobe.lanes.layout import WALK_NOTHING, WalkFlag, WalkOp
from strobe.model.type_nodes import VOID, Array, Base, Integer, Member, Node, Pointer, Record, Typedef, TypeId, Variant, VariantPart
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.values import forms
from strobe.values.behind import names_trait
from strobe.values.bundle import Code
from strobe.values.forms import Form, Number
from strobe.values.registry import Formatters
from strobe.values.walk_steps import BYTES_MAX, Condition, condition
from strobe.values.walks import WalkCompiler


@dataclass
class Types:
    """A table being written. Forms by type, as a formatter would find them."""

    nodes: list[Node] = field(default_factory=lambda: list(FIRST_NODES))
    forms: dict[TypeId, Form] = field(default_factory=dict)

    def add(self, node: Node) -> TypeId:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def integer(self, size: int = 4) -> TypeId:
        return self.add(Integer(f"int{8 * size}", "c", size, True))

    def text(self) -> TypeId:
        return self.pointer(self.add(Integer("char", "c", 1, True, "char")))

    def pointer(self, target: TypeId) -> TypeId:
        return self.add(Pointer(f"{self.nodes[target].name} *", "c", 8, target))

    def record(self, size: int, *members: tuple[TypeId, int], **more: object) -> TypeId:
        found = tuple(Member(f"m{at}", kind, at) for kind, at in members)
        return self.add(Record(f"r{len(self.nodes)}", "c++", "struct", size, found, **more))  # type: ignore[arg-type]

    def formed(self, size: int, form: Form) -> TypeId:
        number = self.record(size)
        self.forms[number] = form
        return number

    def compiler(self, elements: int = 100, text: int = 1024, codes: Sequence[Code] = ()) -> WalkCompiler:
        table = TypeTable(tuple(self.nodes))
        own = Formatters([])
        found = own._kept(table)[2]
        found.update({number: self.forms.get(number) for number in range(len(table))})
        return WalkCompiler(table, own, elements, text, codes)


Row = tuple[WalkOp, int, int, int, int | None, WalkFlag, int, int]


def programs(section: bytes) -> list[list[Row]]:
    """Each program's steps: (op, offset, size, limit, number of the target program, flags, a, b)."""
    raw = list(struct.iter_unpack("<BBHIIIQQ", section))
    starts = [0] + [index + 1 for index, row in enumerate(raw) if row[0] == WalkOp.END]
    number = {start: index for index, start in enumerate(starts[:-1])}
    found: list[list[Row]] = [[] for _ in starts[:-1]]
    program = 0
    for op, flags, limit, offset, size, target, a, b in raw:
        if op == WalkOp.END:
            program += 1
        else:
            found[program].append((WalkOp(op), offset, size, limit, None if target == WALK_NOTHING else number[target], WalkFlag(flags), a, b))
    return found


NO_FLAG = WalkFlag(0)


def steps(types: Types, number: TypeId, depth: int = 3) -> list[list[Row]]:
    compiler = types.compiler()
    at = compiler.program(number, depth)
    assert at in (0, WALK_NOTHING)
    return programs(compiler.section())


def test_numbers_need_nothing() -> None:
    types = Types()
    inner = types.record(8, (types.integer(), 0))
    assert steps(types, types.record(24, (types.integer(8), 0), (inner, 8), (types.add(Array("int[2]", "c", 8, types.integer(), (2,))), 16))) == []


def test_nested_records_are_flattened_and_pointers_share_programs() -> None:
    types = Types()
    far = types.record(16, (types.text(), 8))
    to_far = types.pointer(far)
    inner = types.record(16, (to_far, 8))
    alias = types.add(Typedef("inner_t", "c", inner))
    found = steps(types, types.record(40, (alias, 8), (to_far, 32)))
    assert found == [
        [(WalkOp.POINT, 16, 16, 0, 1, NO_FLAG, 0, 0), (WalkOp.POINT, 32, 16, 0, 1, NO_FLAG, 0, 0)],
        [(WalkOp.TEXT, 8, 1, 1024, None, NO_FLAG, 0, 0)],
    ]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_type_that_contains_itself_ends_by_depth(depth: int) -> None:
    types = Types()
    node = len(types.nodes)
    types.add(Record("node", "c", "struct", 16, (Member("next", node + 1, 8),)))
    types.add(Pointer("node *", "c", 8, node))
    found = steps(types, node, depth)
    assert [len(program) for program in found] == [1] * depth
    assert [program[0][4] for program in found] == [*range(1, depth), None], "the last node is copied, and nothing that it points to"


def test_texts_are_copied_at_every_depth() -> None:
    types = Types()
    assert steps(types, types.record(8, (types.text(), 0)), depth=0) == [[(WalkOp.TEXT, 0, 1, 1024, None, NO_FLAG, 0, 0)]]


def test_arrays_of_records_run_their_program_on_each() -> None:
    types = Types()
    record = types.record(24, (types.text(), 16))
    array = types.add(Array("r[500]", "c", 500 * 24, record, (500,)))
    assert steps(types, types.record(8 + 500 * 24, (array, 8)))[0] == [(WalkOp.EACH, 8, 24, 100, 1, NO_FLAG, 0, 0)]


def test_objects_of_polymorphic_classes_may_be_larger() -> None:
    types = Types()
    shape = types.record(24, (types.text(), 8), vtable=0)
    assert steps(types, types.pointer(shape))[0] == [(WalkOp.POINT, 0, 24 + 192, 0, 1, WalkFlag.SOFT, 0, 0)]


def test_virtual_bases_need_what_is_before_the_vtable() -> None:
    types = Types()
    base = types.record(8, (types.integer(8), 0))
    derived = types.record(24, vtable=0, bases=(Base(base, None, True, -24),))
    found = steps(types, types.pointer(derived))[1]
    minus_24 = (1 << 64) - 24
    assert found == [
        (WalkOp.ARRAY, 0, 8, 3, None, WalkFlag.END_POINTER, 0, minus_24),
        (WalkOp.NEAR, 0, 8, 0, None, WalkFlag.TOLD, 0, minus_24),
    ]


def test_derived_classes_are_told_by_their_vtables_place_in_its_page() -> None:
    types = Types()
    shape = types.record(16, (types.integer(8), 8), vtable=0)
    circle = types.record(24, (types.text(), 16), vtable=0, bases=(Base(shape, 0),))
    row = types.add(Array("shape[2]", "c++", 32, shape, (2,)))
    holder = types.record(40, (types.pointer(shape), 0), (row, 8))
    codes = [Code("program", 0x4010, shape), Code("program", 0x4D38, circle), Code("program", 0x4D70, circle)]
    compiler = types.compiler(codes=codes)
    compiler.program(holder, 2)
    found = programs(compiler.section())
    assert found == [
        [(WalkOp.POINT, 0, 16 + 192, 0, 1, WalkFlag.SOFT, 0, 0)],
        [(WalkOp.WHEN, 0, 2, 0xFFF, 2, NO_FLAG, 0xD38, 0xD38)],
        [(WalkOp.TEXT, 16, 1, 1024, None, NO_FLAG, 0, 0)],
    ]


def test_the_whole_of_a_much_larger_object_or_of_one_that_begins_before_its_base() -> None:
    types = Types()
    shape, named = (types.record(16, (types.integer(8), 8), vtable=0) for _ in range(2))
    large = types.record(1000, (types.text(), 992), vtable=0, bases=(Base(shape, 0), Base(named, 16)))
    huge = types.record(9000, (types.text(), 32), (types.text(), 8992), vtable=0, bases=(Base(shape, 0), Base(named, 16)))
    codes = [Code("program", 0x4000 + at, kind, top=top) for at, kind, top in ((0x10, large, 0), (0x40, large, 16), (0x80, huge, 0))]
    pointers = [types.pointer(shape), types.pointer(named)]
    compiler = types.compiler(codes=codes)
    for pointer in pointers:
        compiler.program(pointer, 1)
    text = (WalkOp.TEXT, 992, 1, 1024, None, NO_FLAG, 0, 0)
    assert programs(compiler.section()) == [
        [(WalkOp.POINT, 0, 16 + 192, 0, 1, WalkFlag.SOFT, 0, 0)],
        [(WalkOp.WHEN, 0, 2, 0xFFF, 2, NO_FLAG, 0x010, 0x010), (WalkOp.WHEN, 0, 2, 0xFFF, 3, NO_FLAG, 0x080, 0x080)],
        [(WalkOp.NEAR, 0, 1000, 0, 4, WalkFlag.SOFT, 0, 0)],
        [(WalkOp.NEAR, 0, 2048, 0, 5, WalkFlag.SOFT, 0, 0)],
        [text],
        [(WalkOp.TEXT, 32, 1, 1024, None, NO_FLAG, 0, 0)],
        [(WalkOp.POINT, 0, 16 + 192, 0, 7, WalkFlag.SOFT, 0, 0)],
        [(WalkOp.WHEN, 0, 2, 0xFFF, 8, NO_FLAG, 0x040, 0x040)],
        [(WalkOp.NEAR, 0, 1000, 0, 4, WalkFlag.SOFT, (1 << 64) - 16, 0)],
    ]


def test_what_is_behind_a_trait_object_is_told_by_its_vtables_place_in_its_page() -> None:
    types = Types()
    circle = types.record(24, (types.text(), 16))
    roles = [(0x4D38, "dyn shop::Shape"), (0x4E10, "dyn shop::Other"), (0x4F20, "class")]
    number = types.formed(16, forms.Erased("dyn", 8, 0, boxed=True, trait="&dyn shop::Shape"))
    compiler = types.compiler(codes=[Code("program", address, circle, role) for address, role in roles])
    compiler.program(number, 2)
    assert programs(compiler.section()) == [
        [(WalkOp.WHEN, 8, 2, 0xFFF, 1, NO_FLAG, 0xD38, 0xD38), (WalkOp.DYNAMIC, 0, 0, 256, None, NO_FLAG, 8, 0)],
        [(WalkOp.POINT, 0, 24, 0, 2, NO_FLAG, 0, 0)],
        [(WalkOp.TEXT, 16, 1, 1024, None, NO_FLAG, 0, 0)],
    ]


def test_what_is_in_an_any_lies_in_it_or_is_pointed_to() -> None:
    types = Types()
    item = types.record(24, (types.text(), 16))
    number = types.formed(16, forms.Erased("any", 0, 8, small=8))
    codes = [Code("program", 0x1010, types.text(), "any"), Code("program", 0x1020, item, "boxed any"), Code("program", 0x1030, item, "any")]
    compiler = types.compiler(codes=codes)
    compiler.program(number, 1)
    assert programs(compiler.section()) == [
        [(WalkOp.WHEN, 0, 2, 0xFFF, 1, NO_FLAG, 0x010, 0x010), (WalkOp.WHEN, 0, 2, 0xFFF, 2, NO_FLAG, 0x020, 0x020)],
        [(WalkOp.TEXT, 8, 1, 1024, None, NO_FLAG, 0, 0)],
        [(WalkOp.POINT, 8, 24, 0, 3, NO_FLAG, 0, 0)],
        [(WalkOp.TEXT, 16, 1, 1024, None, NO_FLAG, 0, 0)],
    ], "one that is too large to lie in it is not followed as if it did"


@pytest.mark.parametrize(
    ("name", "trait", "has"),
    [
        ("&dyn shop::Shape", "shop::Shape", True),
        ("alloc::boxed::Box<dyn shop::Shape, alloc::alloc::Global>", "shop::Shape", True),
        ("&(dyn core::error::Error + core::marker::Send)", "core::error::Error", True),
        ("&dyn core::ops::function::Fn<(u16), Output=u16>", "core::ops::function::Fn<(u16)>", True),
        ("&dyn core::future::future::Future<Output=u16>", "core::future::future::Future", True),
        ("&dyn shop::Shapely", "shop::Shape", False),
        ("&dyn shop::Shape::Inner", "shop::Shape", False),
        ("&dyn core::ops::function::FnMut<(u16)>", "core::ops::function::Fn<(u16)>", False),
        ("&shop::Shape", "shop::Shape", False),
    ],
)
def test_traits_in_names_of_types(name: str, trait: str, has: bool) -> None:
    assert names_trait(name, trait) is has


def test_rust_variants() -> None:
    types = Types()
    text = types.text()
    parts = [types.record(16, (text, 8)), types.record(16, (text, 0)), types.record(16)]
    tag = Member("", types.integer(1), 0)
    variants = tuple(Variant(values, (Member("0", part, 0),)) for values, part in zip((((0, 0),), None, ((2, 3),)), parts, strict=True))
    found = steps(types, types.add(Record("E", "rust", "struct", 16, (), variant_part=VariantPart(tag, variants))))
    assert found[0][0] == (WalkOp.WHEN, 0, 1, 0, 1, NO_FLAG, 0, 0)
    assert found[0][1][:1] + found[0][1][5:] == (WalkOp.WHEN, WalkFlag.NOT, 2, 3), "not 2 or 3"
    inner = found[found[0][1][4] or 0]
    assert inner[0][:1] + inner[0][5:] == (WalkOp.WHEN, WalkFlag.NOT, 0, 0), "and not 0"


def test_forms() -> None:
    types = Types()
    item = types.record(16, (types.text(), 8))
    count = Number(8)
    cases: list[tuple[int, Form, list[Row]]] = [
        (16, forms.Text(0, count), [(WalkOp.ARRAY, 0, 1, 1024, None, NO_FLAG, 8, 0)]),
        (24, forms.Text(0, None, 2), [(WalkOp.TEXT, 0, 2, 1024, None, NO_FLAG, 0, 0)]),
        (24, forms.Text(0, Number(8, 1), inline=True), []),
        (24, forms.Sequence(0, item, 16, end=8), [(WalkOp.ARRAY, 0, 16, 100, 1, WalkFlag.END_POINTER, 8, 0)]),
        (16, forms.Sequence(0, item, 16, Number(8, 4)), [(WalkOp.ARRAY, 0, 16, 100, 1, WalkFlag.COUNT_32, 8, 0)]),
        (16, forms.Sequence(0, item, 16, Number(fixed=3, size=0)), [(WalkOp.POINT, 0, 48, 0, 1, NO_FLAG, 0, 0)]),
        (16, forms.Sequence(0, item, 16, Number(8, 8, mask=0xFE, shift=1)), [(WalkOp.POINT, 0, 1600, 0, None, WalkFlag.SOFT, 0, 0)]),
        (56, forms.Sequence(8, item, 16, Number(0), inline=True), [(WalkOp.EACH, 8, 16, 3, 1, NO_FLAG, 0, 0)]),
        (40, forms.Bits(0, end=16, end_bit=Number(24, 4)),
         [(WalkOp.ARRAY, 0, 1, 16, None, WalkFlag.END_POINTER, 16, 0), (WalkOp.POINT, 16, 8, 0, None, WalkFlag.SOFT, 0, 0)]),
        (24, forms.Nodes(0, 0, 16, item, 32, sentinel=0), [(WalkOp.LIST, 0, 32, 100, 1, WalkFlag.SENTINEL, 0, 0)]),
        (48, forms.Tree(16, 16, 24, 32, item, 48), [(WalkOp.TREE, 16, 48, 100, 1, NO_FLAG, 16, 24)]),
        (80, forms.Blocks(item, 16, 32, 16, finish=48), [(WalkOp.BLOCKS, 16, 16, 100, 1, NO_FLAG, 48, 32)]),
        (48, forms.Blocks(item, 16, 256, 8, first=Number(32), count=Number(40)), [(WalkOp.MAPPED, 8, 16, 100, 1, NO_FLAG, 32 | 40 << 32, 256)]),
        (32, forms.Ring(8, Number(0), Number(16), Number(24), item, 16), [(WalkOp.RING, 8, 16, 100, 1, NO_FLAG, 0 | 16 << 32, 24)]),
        (48, forms.Swiss(0, Number(8), Number(24), item, 16), [(WalkOp.SWISS, 0, 16, 100, 1, NO_FLAG, 8, 0)]),
        (24, forms.Owner(0, item), [(WalkOp.POINT, 0, 16, 0, 1, NO_FLAG, 0, 0)]),
        (24, forms.Owner(0, item, skip=16, control=0, counts=(("strong", Number(0)), ("weak", Number(8)))),
         [(WalkOp.POINT, 0, 16, 0, None, NO_FLAG, 0, 0), (WalkOp.POINT, 0, 32, 0, 1, NO_FLAG, 0, 0)]),
        (16, forms.Owner(0, item, length=Number(8), skip=16), [(WalkOp.ARRAY, 0, 16, 100, 1, NO_FLAG, 8, 16)]),
        (16, forms.Erased("dyn", 8, 0, boxed=True), [(WalkOp.DYNAMIC, 0, 0, 256, None, NO_FLAG, 8, 0)]),
        (32, forms.Erased("function", 24, 0), []),
        (24, forms.Maybe(Number(16, 1), item, 0), [(WalkOp.WHEN, 16, 1, 0, 1, WalkFlag.NOT, 0, 0)]),
        (24, forms.Choice(Number(16, 1), (VOID, item), 0), [(WalkOp.WHEN, 16, 1, 0, 1, NO_FLAG, 1, 1)]),
        (24, forms.Either(Number(0, 1, mask=1), 0, 0, forms.Text(1, Number(0, 1, shift=1), inline=True), forms.Text(16, Number(8))),
         [(WalkOp.WHEN, 0, 1, 1, 1, WalkFlag.NOT, 0, 0)]),
    ]  # fmt: skip
    for size, form, expected in cases:
        types.forms.clear()
        found = steps(types, types.formed(size, form))
        assert (found[0] if found else []) == expected, form


def test_maps_of_rust_run_on_as_many_keys_as_a_node_has() -> None:
    types = Types()
    text = types.text()
    form = forms.BTree(0, Number(8), Number(16), 8, 96, text, text, 190, 192, 192)
    found = steps(types, types.formed(24, form))
    assert found[0] == [(WalkOp.BTREE, 0, 192, 100, 1, NO_FLAG, 8, 192 | 190 << 32)]
    assert found[1] == [(WalkOp.EACH, 8, 8, 11, 2, WalkFlag.COUNTED, 190, 0), (WalkOp.EACH, 96, 8, 11, 2, WalkFlag.COUNTED, 190, 0)]


def test_what_lies_outside_of_a_container_is_one_pointer_away() -> None:
    types = Types()
    vector = types.formed(24, forms.Sequence(0, types.pointer(types.record(8, (types.integer(8), 0))), 8, end=8))
    assert [len(program) for program in steps(types, vector, depth=2)] == [1, 1]
    assert [row[4] for row in steps(types, vector, depth=1)[0]] == [None]
    assert steps(types, vector, depth=0) == []


def test_forms_that_speak_of_more_than_their_type_has_are_not_followed() -> None:
    types = Types()
    assert steps(types, types.formed(8, forms.Text(0, Number(8)))) == []
    small = types.record(8, (types.integer(8), 0))
    types.forms[small] = forms.Text(0, Number(64))
    assert steps(types, types.pointer(small)) == [[(WalkOp.POINT, 0, 8, 0, None, NO_FLAG, 0, 0)]]


def test_sizes_are_bounded() -> None:
    types = Types()
    huge = types.record(1 << 30, (types.text(), 0), (types.text(), 1 << 29))
    (first, *_) = steps(types, types.pointer(huge))
    assert first[0][2] == BYTES_MAX


def test_one_section_holds_what_several_objects_need_once() -> None:
    types = Types()
    item = types.record(8, (types.text(), 0))
    one, other = types.record(16, (types.pointer(item), 8)), types.record(8, (types.pointer(item), 0))
    compiler = types.compiler()
    starts = [compiler.program(one, 2), compiler.program(other, 2), compiler.program(one, 2), compiler.pointed(one, 2)]
    assert starts[0] == starts[2] == 0 and len(set(starts)) == 3
    found = programs(compiler.section())
    assert len(found) == 4 and found[2][0][4] == found[0][0][4]
    another = compiler.another()
    assert another.program(other, 2) == 0 and len(programs(another.section())) == 2


@pytest.mark.parametrize(
    ("number", "low", "high", "expected"),
    [
        (Number(4, 1), 1, 3, Condition(4, 1, 0, 1, 3)),
        (Number(0, 1, mask=1), 0, 0, Condition(0, 1, 1, 0, 0)),
        (Number(0, 8, mask=1 << 63), 0, 0, Condition(0, 8, 0, 0, (1 << 63) - 1)),
        (Number(0, 8, mask=0x30000, shift=16), 1, 2, Condition(2, 1, 3, 1, 2)),
        (Number(0, 1, mask=0xFE, shift=1), 0, 0, Condition(0, 1, 0, 0, 1)),
        (Number(size=0, fixed=5), 0, 4, False),
        (Number(0, 2), 1 << 20, 1 << 21, False),
        (Number(0, 8, mask=0xFFFFFF00FF), 1, 1, None),
    ],
)
def test_conditions(number: Number, low: int, high: int, expected: Condition | bool | None) -> None:
    assert condition(number, low, high, 0) == expected
