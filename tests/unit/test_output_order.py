"""Output order as a pure thing: simulated writers, pipes and schedulers against `StreamOrder`."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.session.collector.order import HOLD_NS, LATE_NS, MARK_WAIT_NS, SLACK_NS, Mark, Segment, StreamOrder

MS = 1_000_000


@dataclass(frozen=True)
class Write:
    """One write(2): when it returned, when the keeper read it, when its mark was seen (None: it has none)."""

    ts_ns: int
    bytes: int
    arrival_ns: int
    seen_ns: int | None
    span: int


def simulate(writes: list[Write], *, step_ns: int = 2 * MS, restart_every: int = 0) -> list[Segment]:
    """Feeds what becomes known in steps, as the collector does; with `restart_every` the state goes through `state()` now and then."""
    order, segments = StreamOrder(1), []
    offsets, at = [], 0
    for write in writes:
        offsets.append(at)
        at += write.bytes
    end = max(max(write.arrival_ns, write.seen_ns or 0) for write in writes) + 10 * LATE_NS
    now, steps, read = 0, 0, 0
    while now < end:
        now += step_ns
        steps += 1
        while read < len(writes) and writes[read].arrival_ns <= now:
            order.arrived(offsets[read], writes[read].bytes, writes[read].arrival_ns)
            read += 1
        order.marked(Mark(write.ts_ns, write.bytes, write.span) for write in writes if write.seen_ns is not None and now - step_ns < write.seen_ns <= now)
        all_read = read == len(writes) or writes[read].arrival_ns > now
        segments += order.settle(now, 1 << 20, all_read=all_read)
        if restart_every and steps % restart_every == 0:
            fresh = StreamOrder(1, order.state())
            for number in range(read):  # the successor reads the spool again from somewhere before
                fresh.arrived(offsets[number], writes[number].bytes, writes[number].arrival_ns)
            order = fresh
    assert order.idle or not order.pending_bytes
    return segments


def check_complete(segments: list[Segment], writes: list[Write]) -> None:
    at, last = 0, 0
    for segment in segments:
        assert segment.offset == at and segment.bytes > 0 and segment.ts_ns >= last
        at, last = at + segment.bytes, segment.ts_ns
    assert at == sum(write.bytes for write in writes)


def spans_by_byte(segments: list[Segment]) -> list[int | None]:
    return [None if segment.approximate else segment.span for segment in segments for _ in range(segment.bytes)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0, 3, 7]))
def test_marked_writes_get_their_own_time_and_call(seed: int, count: int, restart_every: int) -> None:
    chance = random.Random(seed)
    writes: list[Write] = []
    now = 50 * MS
    for number in range(count):
        now += chance.choice([1_000, 20_000, 3 * MS, 40 * MS])
        arrival = max(now + chance.randrange(-5_000, MS), writes[-1].arrival_ns if writes else 0)
        writes.append(Write(now, chance.randrange(1, 50), arrival, now + chance.randrange(0, 2 * MS), number + 1))
    segments = simulate(writes, restart_every=restart_every)
    check_complete(segments, writes)
    assert spans_by_byte(segments) == [write.span for write in writes for _ in range(write.bytes)]
    times = {segment.span: segment.ts_ns for segment in segments}
    assert times == {write.span: write.ts_ns for write in writes}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0, 5]))
def test_whatever_marks_say_every_byte_comes_once_and_in_order(seed: int, count: int, restart_every: int) -> None:
    chance = random.Random(seed)
    writes: list[Write] = []
    now = 50 * MS
    for number in range(count):
        now += chance.choice([1_000, 3 * MS, 40 * MS, 300 * MS])
        arrival = max(now + chance.randrange(-5_000, 200 * MS), writes[-1].arrival_ns if writes else 0)
        seen = None if chance.random() < 0.4 else now + chance.randrange(0, 400 * MS)
        writes.append(Write(now, chance.randrange(1, 50), arrival, seen, number + 1))
    check_complete(simulate(writes, restart_every=restart_every), writes)


def test_bytes_without_a_mark_have_their_arrival_time() -> None:
    segments = simulate([Write(60 * MS, 5, 61 * MS, None, 0)])
    assert segments == [Segment(1, 0, 5, 61 * MS, True, 0)]


def test_an_unmarked_writer_does_not_shift_later_marks() -> None:
    writes = [
        Write(60 * MS, 5, 60 * MS, 60 * MS, 1),
        Write(100 * MS, 7, 100 * MS, None, 0),  # a child's
        Write(160 * MS, 5, 160 * MS, 160 * MS, 2),
        Write(161 * MS, 5, 161 * MS, 161 * MS, 3),
    ]
    assert spans_by_byte(simulate(writes)) == [1] * 5 + [None] * 7 + [2] * 5 + [3] * 5


def test_an_unmarked_writer_seen_by_the_next_mark() -> None:
    # The child's bytes are older than the mark by more than the slack, and younger than the wait: the mark itself gives them away.
    writes = [Write(60 * MS, 7, 60 * MS, None, 0), Write(60 * MS + SLACK_NS + 2 * MS, 5, 60 * MS + SLACK_NS + 2 * MS, 60 * MS + SLACK_NS + 2 * MS, 1)]
    segments = simulate(writes)
    assert segments[0] == Segment(1, 0, 7, 60 * MS, True, 0) and segments[1].bytes == 5 and segments[1].ts_ns == writes[1].ts_ns


def test_a_mark_that_comes_too_late_is_spent_on_bytes_already_handed_out() -> None:
    writes = [Write(60 * MS, 5, 60 * MS, 60 * MS + 2 * MARK_WAIT_NS, 1), Write(200 * MS, 5, 200 * MS, 200 * MS, 2)]
    assert spans_by_byte(simulate(writes)) == [None] * 5 + [2] * 5


def test_marks_of_two_threads_are_put_in_order() -> None:
    # The first writer's mark is seen a little after the second's.
    writes = [Write(60 * MS, 5, 60 * MS, 60 * MS + HOLD_NS - 100_000, 1), Write(60 * MS + 50_000, 6, 60 * MS + 50_000, 60 * MS + 60_000, 2)]
    assert spans_by_byte(simulate(writes, step_ns=MS // 2)) == [1] * 5 + [2] * 6


def test_after_a_dropped_mark_nothing_is_called_exact_until_the_stream_was_quiet() -> None:
    order = StreamOrder(1)
    order.mark_missing()  # of the first 5 bytes
    order.arrived(0, 10, 60 * MS)
    order.marked([Mark(60 * MS, 5, 2)])
    first = order.settle(64 * MS, 1 << 20, all_read=True)
    later = order.settle(100 * MS, 1 << 20, all_read=True)
    assert [segment.approximate for segment in first + later] == [True, True] and all(segment.span == 0 for segment in first + later)
    order.settle(60 * MS + 3 * LATE_NS, 1 << 20, all_read=True)
    order.arrived(10, 5, 500 * MS)
    order.marked([Mark(500 * MS, 5, 3)])
    assert order.settle(510 * MS, 1 << 20, all_read=True) == [Segment(1, 10, 5, 500 * MS, False, 3)]


def test_a_large_write_is_one_mark_over_many_reads() -> None:
    order, now = StreamOrder(1), 100 * MS
    for part in range(100):  # 100 MiB at 1 GiB/s
        order.arrived(part << 20, 1 << 20, now + part * MS)
        told = order.settle(now + part * MS, 1 << 30, all_read=True)
        assert all(segment.approximate for segment in told)
    order.marked([Mark(now + 100 * MS, 100 << 20, 7)])
    order.arrived(100 << 20, 5, now + 120 * MS)
    order.marked([Mark(now + 120 * MS, 5, 8)])
    segments = order.settle(now + 130 * MS, 1 << 30, all_read=True)
    assert segments[-1] == Segment(1, 100 << 20, 5, now + 120 * MS, False, 8)


@pytest.mark.parametrize("limit", [1, 10, 1000])
def test_a_budget_cuts_between_segments(limit: int) -> None:
    order = StreamOrder(1)
    for number in range(50):
        order.arrived(number * 10, 10, 60 * MS + number)
        order.marked([Mark(60 * MS + number, 10, number + 1)])
    sizes = []
    while segments := order.settle(70 * MS, limit, all_read=True):
        sizes.append(sum(segment.bytes for segment in segments))
    assert sum(sizes) == 500 and max(sizes) <= max(10, limit + 9)
