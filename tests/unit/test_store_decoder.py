"""Records to rows: against a plain model that takes one record at a time, and over values of every type."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.store.clock import to_session_ns
from actors.store.decoder import Decoded, Decoder
from actors.store.display import shown
from actors.store.entries import Records, arrival_ranks
from actors.store.hook_table import HookTable
from actors.store.open_calls import OPEN_MAX, OpenCalls, SpanIndex
from actors.store.schema import UNWOUND
from actors.store.strings import StringTable
from strobe.lanes.layout import Kind, StringState
from strobe.model.probe import Hook, Value
from tests.bench.store_records import STARTED_NS, Lane, hook, records, two_functions, value


def batch(*lanes: Lane, clock: list[int] | None = None) -> Records:
    header, frames = records(*lanes, clock=clock)
    slot_map, slots = (np.frombuffer(frame, dtype=np.uint8) for frame in frames)
    return Records(slot_map, slots, [(part["thread"], part["slots"]) for part in header["slices"]], header["clock"])


def decoder(hooks: list[Hook]) -> Decoder:
    return Decoder(HookTable(hooks), StringTable(), OpenCalls(), STARTED_NS)


def rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns as rows, None where not valid."""
    if not columns:
        return []
    lists = {name: [one if ok else None for one, ok in zip(c.values.tolist(), _valid(c), strict=True)] for name, c in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _valid(column: Any) -> list[bool]:
    return [True] * column.values.size if column.valid is None else column.valid.tolist()


class Model:
    """The same, one record at a time."""

    def __init__(self) -> None:
        self.open: dict[int, dict[str, Any]] = {}
        self.entered: dict[int, dict[str, Any]] = {}

    def commit(self, entries: list[tuple[int, Kind, int, int, int, int]], first_n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Entries in the order they came: (ts, kind, full span, hook, full parent or result, thread)."""
        order = sorted(range(len(entries)), key=lambda index: entries[index][0])
        number = {index: first_n + rank for rank, index in enumerate(order)}
        calls, late = [], []
        fresh: dict[int, dict[str, Any]] = {}
        for index, (ts, kind, span, hook_id, _, thread) in enumerate(entries):
            if kind is Kind.ENTER:
                fresh[span] = {"n": number[index], "ts": ts, "hook": hook_id, "thread": thread, "exit_n": None, "exit_ts": None, "ret": None, "unwound": False}
                calls.append((span, fresh[span]))
        for _, kind, span, _, word, _ in entries:
            if kind is Kind.ENTER:
                parent = fresh.get(word) or self.open.get(word)
                fresh[span] |= {"parent": parent["n"] if parent else 0, "caller": parent["hook"] if parent else 0}
        for index, (ts, kind, span, hook_id, word, thread) in enumerate(entries):
            if kind is Kind.ENTER:
                continue
            unwound = kind is Kind.UNWIND
            if span in fresh:
                fresh[span] |= {"exit_n": number[index], "exit_ts": ts, "ret": None if unwound else word, "unwound": unwound}
            else:
                entered = self.open.pop(span, None)
                late.append(
                    {"n": number[index], "ts": ts, "hook": hook_id, "thread": thread, "ret": None if unwound else word, "unwound": unwound,
                     "call": entered["n"] if entered else None, "enter_ts": entered["ts"] if entered else None}
                )  # fmt: skip
        self.open |= {span: row for span, row in fresh.items() if row["exit_n"] is None}
        return [row for _, row in calls], late


@st.composite
def histories(draw: st.DrawFn) -> list[list[Lane]]:
    """Commits of what some threads did: nested calls, some unwound, cut anywhere into commits."""
    clock = iter(range(100, 10**6, 3))
    threads = draw(st.integers(1, 3))
    stacks: list[list[tuple[int, int]]] = [[] for _ in range(threads)]
    spans = [0] * threads
    commits: list[list[Lane]] = []
    for _ in range(draw(st.integers(1, 4))):
        lanes = [Lane(thread=index + 1) for index in range(threads)]
        for _ in range(draw(st.integers(0, 25))):
            at = draw(st.integers(0, threads - 1))
            ts, stack = next(clock), stacks[at]
            leave: bool = draw(st.booleans())
            if stack and leave:
                span, number = stack.pop()
                kind = draw(st.sampled_from([Kind.EXIT, Kind.EXIT, Kind.UNWIND]))
                lanes[at].exit(ts, span, number, word=draw(st.integers(0, 1000)), kind=kind)
            else:
                spans[at] += draw(st.sampled_from([1, 1, 1, 5000]))
                number = draw(st.sampled_from([1, 2]))
                lanes[at].enter(ts, spans[at], number, struct.pack("<ii", spans[at] % 7, -1), parent=stack[-1][0] if stack else 0)
                stack.append((spans[at], number))
        commits.append([lane for lane in lanes if lane.entries])
    return [lanes for lanes in commits if lanes]


@settings(max_examples=80, deadline=None)
@given(histories())
def test_pairing_equals_the_plain_model(commits: list[list[Lane]]) -> None:
    made, model, first_n = decoder(two_functions()), Model(), 1
    for lanes in commits:
        entries = [(ts - STARTED_NS, Kind(kind), span, number, word, lane.thread) for lane in lanes for ts, span, number, kind, _, word, _ in lane.entries]
        calls, late = model.commit(entries, first_n)
        done = made.decode([batch(lane) for lane in lanes], first_n)
        first_n += done.times.size
        assert done.times.size == len(entries)
        assert [_call(row) for row in rows(done.calls)] == calls
        assert [_late(row) for row in rows(done.exits)] == late
        assert sorted(made.open_calls.calls["n"].tolist()) == sorted(row["n"] for row in model.open.values())


def _call(row: dict[str, Any]) -> dict[str, Any]:
    names = ("n", "ts", "hook", "thread", "parent", "caller")
    more = {"exit_n": row.get("exit_n"), "exit_ts": row.get("exit_ts"), "ret": row.get("ret"), "unwound": bool(row["flags"] & UNWOUND)}
    return {name: row[name] for name in names} | more


def _late(row: dict[str, Any]) -> dict[str, Any]:
    names = ("n", "ts", "hook", "thread", "call", "enter_ts")
    return {name: row[name] for name in names} | {"ret": row.get("ret"), "unwound": bool(row["flags"] & UNWOUND)}


def decode_one(arguments: list[Value], payload: bytes, result: Value | None = None, word: int = 0) -> tuple[list[Any], Any]:
    """What a call with these captured bytes shows: (arguments, result)."""
    made = decoder([hook(1, "f", arguments, result)])
    done = made.decode([batch(Lane().enter(1, 1, 1, payload).exit(2, 1, 1, word))], 1)
    texts = {number: text + "…" * cut for number, text, cut in made.strings.fresh}
    row = rows(done.calls)[0]
    more = {int(position): int(bits) for position, bits in zip(_list(done, "position"), _list(done, "bits"), strict=True)}
    captured = [row.get(f"a{position}") if position < 6 else more.get(position) for position in range(len(arguments))]
    return [shown(one, bits, texts) for one, bits in zip(arguments, captured, strict=True)], shown(result, row.get("ret"), texts) if result else None


def _list(done: Decoded, name: str) -> list[int]:
    return done.more_values[name].values.tolist() if done.more_values else []


COLOURS = {"RED": 0, "GREEN": 5, "ODD": -3}
SCALARS: list[tuple[Value, bytes, Any]] = [
    (value("a", "int", 1), struct.pack("<b", -5), -5),
    (value("a", "int", 2), struct.pack("<h", -3000), -3000),
    (value("a", "int", 4), struct.pack("<i", -(1 << 31)), -(1 << 31)),
    (value("a", "int", 8), struct.pack("<q", -(1 << 63)), -(1 << 63)),
    (value("a", "uint", 1), b"\xff", 255),
    (value("a", "uint", 2), b"\xff\xff", 65535),
    (value("a", "uint", 4), b"\xff\xff\xff\xff", (1 << 32) - 1),
    (value("a", "uint", 8), b"\xff" * 8, (1 << 64) - 1),
    (value("a", "float", 4), struct.pack("<f", 0.1), 0.1),
    (value("a", "float", 8), struct.pack("<d", -1.5e300), -1.5e300),
    (value("a", "float", 8), struct.pack("<d", float("inf")), "inf"),
    (value("a", "bool", 1), b"\x01", True),
    (value("a", "bool", 1), b"\x00", False),
    (value("a", "char", 1), b"x", "x"),
    (value("a", "char", 1), b"\xfe", -2),
    (value("a", "enum", 4, enumerators=COLOURS), struct.pack("<i", 5), "GREEN"),
    (value("a", "enum", 4, enumerators=COLOURS), struct.pack("<i", -3), "ODD"),
    (value("a", "enum", 4, enumerators=COLOURS), struct.pack("<i", 77), 77),
    (value("a", "pointer", 8), struct.pack("<Q", 0xFFFF_FFFF_FF60_0000), "0xffffffffff600000"),
    (value("a", "pointer", 8), bytes(8), None),
    (value("a", "opaque", 0, type_name="struct point"), b"", "<struct point>"),
]


@pytest.mark.parametrize(("one", "payload", "expected"), SCALARS, ids=[f"{one.scalar}{one.size}={expected}" for one, _, expected in SCALARS])
def test_each_scalar_is_read_exactly(one: Value, payload: bytes, expected: Any) -> None:
    assert decode_one([one], payload)[0] == [expected]
    shifted = one.model_copy(update={"offset": 37})  # in the second slot of payload, unaligned
    assert decode_one([shifted], bytes(37) + payload)[0] == [expected]
    if payload:
        word = int.from_bytes(payload + b"\xaa" * (8 - len(payload)), "little")
        in_word = one.model_copy(update={"source": "word"})
        assert decode_one([], b"", in_word, word)[1] == expected


def descriptor(offset: int, length: int, state: StringState) -> bytes:
    return struct.pack("<HHBxxx", offset, length, state)


def test_texts() -> None:
    arguments = [value(f"s{k}", "cstring", 8, offset=8 * k) for k in range(4)]
    tail = "héllo".encode() + b"cut he" + b""
    payload = (
        descriptor(32, 6, StringState.OK) + descriptor(38, 6, StringState.TRUNCATED) + descriptor(0, 0, StringState.NULL)
        + descriptor(0, 0, StringState.UNREADABLE) + tail
    )  # fmt: skip
    assert decode_one(arguments, payload)[0] == ["héllo", "cut he…", None, "<unreadable>"]


def test_a_descriptor_that_points_outside_is_unreadable_and_bytes_need_not_be_utf8() -> None:
    argument = [value("s", "cstring", 8)]
    assert decode_one(argument, descriptor(30, 60000, StringState.OK))[0] == ["<unreadable>"]
    assert decode_one(argument, descriptor(8, 3, StringState.OK) + b"a\xffb")[0] == ["a�b"]
    assert decode_one(argument, descriptor(8, 0, StringState.OK))[0] == [""]


def test_equal_texts_share_an_id() -> None:
    made = decoder([hook(1, "f", [value("s", "cstring", 8)])])
    texts = [b"one", b"two", b"one", b"three", b"two"]
    lane = Lane()
    for number, text in enumerate(texts):
        lane.enter(number, number + 1, 1, descriptor(8, len(text), StringState.OK) + text)
    ids = made.decode([batch(lane)], 1).calls["a0"].values.tolist()
    assert ids[0] == ids[2] and ids[1] == ids[4] and len(set(ids)) == 3
    assert sorted(text for _, text, _ in made.strings.fresh) == ["one", "three", "two"]


def test_more_than_six_arguments() -> None:
    arguments = [value(f"a{k}", "int", 4, offset=4 * k) for k in range(10)]
    assert decode_one(arguments, struct.pack("<10i", *range(10)))[0] == list(range(10))


def test_a_short_payload_gives_not_captured_not_garbage() -> None:
    arguments = [value("a", "int", 4), value("b", "int", 4, offset=40)]
    assert decode_one(arguments, struct.pack("<i", 3))[0] == [3, "<not captured>"]


def test_hooks_of_different_shapes_in_one_commit() -> None:
    made = decoder([hook(1, "f", [value("a", "int", 4)]), hook(2, "g", [value("x", "float", 8)]), hook(3, "h"), hook(900, "k", [value("b", "uint", 1)])])
    lane = (
        Lane()
        .enter(1, 1, 1, struct.pack("<i", -7))
        .enter(2, 2, 2, struct.pack("<d", 2.5))
        .enter(3, 3, 3)
        .enter(4, 4, 900, b"\xf0")
        .enter(5, 5, 1, struct.pack("<i", 8))
    )
    assert [row["a0"] for row in rows(made.decode([batch(lane)], 1).calls)] == [-7, struct.unpack("<q", struct.pack("<d", 2.5))[0], None, 240, 8]


def test_records_of_unknown_hooks_are_counted_not_stored() -> None:
    made = decoder(two_functions())
    lane = Lane().enter(1, 1, 1, bytes(8)).enter(2, 2, 9, bytes(8)).exit(3, 2, 9).enter(4, 3, 4_000_000_000, bytes(8)).exit(5, 1, 1)
    done = made.decode([batch(lane)], 1)
    assert done.strange == 3 and len(rows(done.calls)) == 1 and not done.exits


def test_other_kinds_are_no_events() -> None:
    made = decoder(two_functions())
    lane = Lane().add(1, 0, 1, Kind.OUTPUT_MARK, 0, 5, b"").enter(2, 1, 1, bytes(8)).add(3, 0, 0, Kind.PAD, 0, 0, bytes(64)).exit(4, 1, 1)
    done = made.decode([batch(lane)], 1)
    assert done.strange == 0 and [(row["n"], row["ts"], row["exit_n"], row["exit_ts"]) for row in rows(done.calls)] == [(1, 2, 2, 4)]
    assert done.times.tolist() == [2, 4], "nor do they take a number"


def test_clock_pairs_turn_ticks_into_session_time() -> None:
    ticks = np.array([1_000, 4_000, 900, (1 << 63) + 5], dtype=np.uint64)
    assert to_session_ns(ticks[:3], [1_000, 50_000, 2_000, 50_500], 50_000).tolist() == [0, 1_500, -50]
    assert to_session_ns(np.array([70_000], dtype=np.uint64), None, 50_000).tolist() == [20_000]
    origin = 3_000_000_000 * 86_400 * 30
    far = np.array([origin + 2_999_999_999], dtype=np.uint64)
    assert to_session_ns(far, [origin, 0, origin + 3_000_000_000, 1_000_000_000], 0).tolist() == [999_999_999]


def test_a_call_never_ends_before_it_began() -> None:
    made = decoder(two_functions())
    done = made.decode([batch(Lane().enter(100, 1, 1, bytes(8)).exit(90, 1, 1))], 1)
    assert done.calls["exit_ts"].values.tolist() == [100]


def test_arrival_ranks_follow_time_and_keep_ties_in_order() -> None:
    ranks, times = arrival_ranks(np.array([5, 1, 5, 3], dtype=np.int64))
    assert (ranks.tolist(), times.tolist()) == ([2, 0, 3, 1], [1, 3, 5, 5])


@given(st.lists(st.integers(0, 1 << 44), unique=True, max_size=60), st.lists(st.integers(0, 1 << 44), max_size=20))
def test_span_index_finds_what_is_there(spans: list[int], others: list[int]) -> None:
    index = SpanIndex(np.array(spans, dtype=np.int64))
    wanted = [*reversed(spans), *others]
    row, hit = index.find(np.array(wanted, dtype=np.int64))
    assert [(int(r) if h else None) for r, h in zip(row, hit, strict=True)] == [spans.index(one) if one in spans else None for one in wanted]


def test_open_calls_are_bounded_and_survive_packing() -> None:
    opened = OpenCalls()
    fresh = np.zeros(OPEN_MAX + 10, dtype=opened.calls.dtype)
    fresh["span"] = np.arange(fresh.size)[::-1]
    fresh["n"] = np.arange(fresh.size)
    opened.change(np.zeros(0, dtype=np.int64), fresh)
    assert opened.calls.size == OPEN_MAX and opened.forgotten == 10
    assert int(opened.calls["n"].min()) == 10
    assert bool((np.diff(opened.calls["span"]) > 0).all())
    assert OpenCalls(opened.pack()).calls.tolist() == opened.calls.tolist()


def test_the_end_of_the_map_is_not_trusted(tmp_path: Path) -> None:
    """A head whose size reaches past the slots (memory the target wrote to) is left out."""
    del tmp_path
    header, frames = records(Lane().enter(1, 1, 1, bytes(8)).exit(2, 1, 1))
    slot_map = np.frombuffer(frames[0], dtype=np.uint8).copy()
    slot_map[-1] = 9
    spoiled = Records(slot_map, np.frombuffer(frames[1], dtype=np.uint8), [(1, slot_map.size)], header["clock"])
    done = decoder(two_functions()).decode([spoiled], 1)
    assert [row["n"] for row in rows(done.calls)] == [1] and "exit_n" not in done.calls
