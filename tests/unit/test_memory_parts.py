"""debug_memory's pure parts: mappings, the choice among variables, requests, static thread-local offsets, merged type tables, the reply as text."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from actors.gateway.tools import debug_memory
from actors.gateway.validate import parse_arguments
from actors.indexer.merged_types import MergedTypes
from actors.session.memory.mappings import Mappings
from actors.session.memory.places import choose
from actors.session.memory.polling import Sample, _changed
from actors.session.memory.request import Request
from actors.session.memory.showing import advice, failure
from actors.session.memory.thread_locals import Segment, program_headers, static_offset
from strobe.errors import StrobeError
from strobe.expression import Unavailable
from strobe.model.type_nodes import CUT, VOID, Array, Enum, Function, Integer, Member, Pointer, Record, TemplateArgument, Variant, VariantPart
from strobe.model.types import FIRST_NODES, TypeTable
from strobe.protocol.indexer import FoundVariable
from strobe.protocol.session import MemoryTarget
from strobe.render.memory import memory_text

MAPS = """\
1000-3000 r-xp 00000000 08:01 1 /bin/program
3000-4000 rw-p 00002000 08:01 1 /bin/program
4000-5000 rw-s 00000000 00:01 2 /dev/shm/pool (deleted)
6000-7000 rw-p 00000000 00:00 0
7000-8000 rw-p 00000000 08:01 3 /home/x/strobe-recorder.so
8000-9000 r--p 00000000 00:00 0 [vvar]
"""


@pytest.mark.parametrize(("address", "size", "reason"), [
    (0x3000, 8, None), (0x6FF8, 8, None), (0x2FFC, 8, "read-only memory: /bin/program (r-xp)"), (0x3FFC, 8, "Strobe's own memory"),
    (0x4000, 1, "Strobe's own memory"),
    (0x5000, 1, "nothing is mapped at 0x5000"), (0x6FFC, 8, "Strobe's own memory in the target, /home/x/strobe-recorder.so"),
    (0x8000, 1, "read-only memory: [vvar]"), (0x10, 4, "nothing is mapped"),
])  # fmt: skip
def test_where_may_be_written(address: int, size: int, reason: str | None) -> None:
    refusal = Mappings(MAPS).refusal(address, size, "/dev/shm/pool")
    assert refusal is None if reason is None else reason in (refusal or "")


def found(name: str, value: int = 1, **more: Any) -> FoundVariable:
    return FoundVariable(**{"name": name, "type": 2, "module": "/bin/program", "kind": "address", "value": value, **more})


def test_the_program_s_own_variable_is_meant_before_a_library_s() -> None:
    assert choose("count", [found("count", 8), found("count", 8, module="/lib/x.so")]) == found("count", 8)


def test_a_global_is_meant_before_a_function_s_own_and_a_whole_name_before_its_end() -> None:
    assert choose("count", [found("next::count", 8, in_function=True), found("count", 9)]) == found("count", 9)
    assert choose("count", [found("shop::count", 8), found("next::count", 9, in_function=True)]) == found("shop::count", 8)
    assert choose("::count", [found("shop::count", 8), found("count", 9)]) == found("count", 9)


def test_one_place_described_twice_is_one() -> None:
    assert choose("count", [found("count", 8, file="a.c"), found("count", 8, file="b.c")]) == found("count", 8, file="a.c")


def test_what_has_a_place_is_meant_before_what_is_declared() -> None:
    assert choose("count", [found("count", 0, kind="removed"), found("x::count", 9)]) == found("x::count", 9)


def test_of_several_none_is_guessed() -> None:
    chosen = choose("count", [found("count", 8, file="src/a.c"), found("count", 9, file="src/b.c")])
    assert isinstance(chosen, Unavailable)
    assert "`count` may be 2 variables: `a.c::count` (in backquotes); `b.c::count` (in backquotes)" in chosen.reason
    chosen = choose("count", [found("a::count", 8), found("b::count", 9)])
    assert isinstance(chosen, Unavailable)
    assert "`a::count`; `b::count`" in chosen.reason


def test_a_request_asks_once_for_all_names_and_types() -> None:
    targets = [
        MemoryTarget(variable="a->b[i] + `x y`"), MemoryTarget(variable="*(struct Order**)p"), MemoryTarget(address=16, type="Item *[4]"),
        MemoryTarget(variable="a", type="i32"),
        MemoryTarget(variable="(int*)a"), MemoryTarget(variable="a +"), MemoryTarget(variable="a", type="bytes"),
    ]  # fmt: skip
    request = Request.of(targets)
    assert request.names == {"a", "i", "x y", "p"}
    assert request.types == {"struct Order", "Item *[4]", "Item"}
    assert [one.problem is not None for one in request.wanted] == [False, False, False, False, False, True, False]
    assert [one.label for one in request.wanted[:3]] == ["a->b[i] + `x y`", "*(struct Order**)p", "0x10"]


@pytest.mark.parametrize(("size", "alignment", "address", "offset"), [(4, 4, 0x1000, 4), (5, 8, 0x1000, 8), (64, 64, 0x1010, 64 + 48), (16, 16, 0x1008, 24),
(1, 1, 7, 1), (8, 0, 8, 8)])
def test_the_program_s_own_thread_block(size: int, alignment: int, address: int, offset: int) -> None:
    """The block's begin has the alignment of the file's address, as glibc and musl place it."""
    assert static_offset(Segment(7, address, size, alignment)) == offset
    assert (-offset - address) % max(1, alignment) == 0


def test_damaged_program_headers_are_no_headers() -> None:
    assert program_headers(b"x" * 55) == []


def test_tables_merge_with_their_numbers_moved() -> None:
    first = TypeTable((*FIRST_NODES, Integer("int", "c", 4, True)))
    variants = VariantPart(Member("", 2, 0), (Variant(None, (Member("A", 3, 0),)),))
    second = TypeTable((
        *FIRST_NODES, Integer("u8", "rust", 1, False), Pointer("*R", "rust", 8, 4), Record("R", "rust", "struct", 8, (Member("p", 3, 0),),
        template=(TemplateArgument("T", 2),), variant_part=variants),
        Function("f", "c", VOID, (2, CUT)), Array("a", "c", 4, 2, (4,)), Enum("e", "c", 4, True, None, (("x", 2),)),
    ), cut=3)  # fmt: skip
    merged = MergedTypes()
    assert merged.add(first) == 0
    assert merged.add(second) == 1
    table = merged.table()
    assert table.cut == 3
    assert len(table) == 9
    record = table[5]
    assert isinstance(record, Record)
    assert (record.members[0].type, record.template[0].type) == (4, 3)
    assert record.variant_part is not None and record.variant_part.discriminant is not None
    assert (record.variant_part.discriminant.type, record.variant_part.variants[0].members[0].type) == (3, 4)
    assert table[4] == Pointer("*R", "rust", 8, 5)
    assert table[6] == Function("f", "c", VOID, (3, CUT))
    assert table[8] == Enum("e", "c", 4, True, None, (("x", 2),))


def test_only_what_changed() -> None:
    before, now = Sample({"a": 1, "b": [2]}, {"c": "gone"}), Sample({"a": 1, "b": [3], "d": None}, {"c": "gone", "e": "new"})
    assert _changed(before, now) == Sample({"b": [3], "d": None}, {"e": "new"})
    assert _changed(now, now) == Sample({}, {})
    assert now.text() == 'a = 1, b = [3], d = null, c: gone, e: new'


def test_every_failure_has_a_next_step() -> None:
    assert failure("a", "the pointer is null.") == {"target": "a", "error": "the pointer is null", "nextStep": advice("the pointer is null")}
    assert advice("anything at all")


def test_the_reply_as_text() -> None:
    reply = {
        "results": [
            {"target": "gTempo", "type": "int", "value": 120, "address": "0x10"}, {"target": "p", "type": "int *", "value": None},
            {"target": "gTempi", "error": "there is no `gTempi` here", "nextStep": "Write another."},
            {"target": "b", "type": "bytes", "address": "0x10", "size": 64, "file": "/h/1.bin", "preview": "00ff"},
            {"target": "f.level", "type": "int", "previousValue": 1, "newValue": 2, "note": "Not atomic"},
        ],
        "poll": "poll-1", "intervalMs": 50, "achievedIntervalMs": 61.5, "expectedSamples": 1200, "warnings": ["careful"],
    }  # fmt: skip
    assert memory_text(reply).splitlines() == [
        "gTempo: int = 120", "p: int * = null", "gTempi: there is no `gTempi` here. Write another.", "b: bytes, 64 from 0x10 in /h/1.bin: 00ff…",
        "f.level: int = 1 → 2. Not atomic.",
        "poll-1: about 1,200 samples, each 61.5 ms at best, as variable_snapshot events.", "Note: careful",
    ]  # fmt: skip


READ = {"sessionId": "s", "targets": [{"variable": "a"}]}


@pytest.mark.parametrize(("given", "words"), [
    ({**READ, "targets": []}, "targets"), ({**READ, "targets": [{"variable": "a"}] * 17}, "16"), ({**READ, "depth": 6}, "depth"), ({**READ, "depth": 0},
    "depth"),
    ({**READ, "targets": [{"variable": "a", "kind": 1}]}, "targets[0].kind"), ({**READ, "action": "peek"}, "action"),
    ({**READ, "targets": [{"address": 1.5}]}, "targets[0].address"),
    ({**READ, "action": "poll", "intervalMs": 49, "durationMs": 1000}, "intervalMs"), ({**READ, "action": "poll", "intervalMs": 50, "durationMs": 30_001},
    "durationMs"),
])  # fmt: skip
def test_wrong_fields_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(StrobeError) as refused:
        parse_arguments(debug_memory.TOOL, given)
    assert words in refused.value.what


@pytest.mark.parametrize(("given", "words"), [
    ({**READ, "action": "poll", "durationMs": 1000}, "`intervalMs` is missing"), ({**READ, "action": "poll", "intervalMs": 500, "durationMs": 100},
    "longer than"),
    ({**READ, "intervalMs": 500}, "does not go with action read"), ({**READ, "action": "write", "onChange": True, "targets": [{"variable": "a", "value": 1}]},
    "`onChange` does not go"),
    ({**READ, "targets": [{}]}, "neither `variable` nor `address`"), ({**READ, "targets": [{"variable": "a", "address": "0x10"}]}, "both"),
    ({**READ, "action": "write"}, "`targets[0].value` is missing"),
    ({**READ, "targets": [{"variable": "a", "value": 1}]}, "`targets[0].value` does not go"), ({**READ, "targets": [{"variable": "a", "size": 4}]},
    "needs a type"),
    ({**READ, "targets": [{"address": "0x10", "type": "i32", "size": 4}]}, "goes with type bytes"), ({**READ, "targets": [{"address": "here",
    "type": "i32"}]}, "'here' is no address"),
    ({**READ, "targets": [{"address": "0x1ffffffffffffffff", "type": "i32"}]}, "is no address"), ({**READ, "targets": [{"address": -1, "type": "i32"}]},
    "is no address"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(given: dict[str, Any], words: str) -> None:
    arguments = parse_arguments(debug_memory.TOOL, given)
    assert isinstance(arguments, debug_memory.MemoryArguments)
    with pytest.raises(StrobeError) as refused:
        debug_memory._check(arguments)
        for index, one in enumerate(arguments.targets):
            debug_memory._target(one, index, arguments.action)
    assert words in refused.value.what


def test_addresses() -> None:
    for given, number in (("0x7FfD10", 0x7FFD10), ("16", 16), (16, 16), ("0x0", 0)):
        assert debug_memory._address(given, "t") == number


def test_a_target_refuses_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        MemoryTarget.model_validate({"variable": "a", "nope": 1})
