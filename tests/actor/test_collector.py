"""The collector between a real keeper, a pool filled by a C program as the recorder fills it, and a real stream."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from actors.session.crash import GREGS
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import Clock
from strobe.launch.keeper import Keeper
from tests.harness.collecting import Bench, all_free, call_times, ended, entries_of, hooks_known
from tests.harness.launching import eventually, output_of, sh


def test_every_record_arrives_once_in_order_and_chunks_come_back(bench: Bench) -> None:
    keeper = bench.write("run", 4, 60_000, 0, 1)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    for hook in range(1, 5):
        assert np.array_equal(done.words(hook), np.arange(60_000)), f"thread {hook}"
    every = done.records()
    assert bench.said(keeper) == {"recorded": 240_000, "dropped": 0, "ns": bench.said(keeper)["ns"]}
    assert len(every) == 240_000 and not done.losses()
    numbers = [np.frombuffer(content, dtype=np.uint64) for content in done.payloads() if content and len(content) == 32]
    assert all(number[1] == ~number[0] for number in numbers) and len(numbers) >= 120_000
    names = {(part["thread"], part["comm"]) for part in done.slices()}
    assert {name for _, name in names} == {f"writer-{i}" for i in range(1, 5)} and len(names) == 4
    assert {part["pid"] for part in done.slices()} == {keeper.status().pid}
    assert done.batches[-1].kind == "end" and done.kinds["end"] == 1
    assert all_free(bench.pool)


def test_times_convert_to_the_monotonic_clock(bench: Bench) -> None:
    keeper = bench.write("run", 1, 2_000, 4_000, 1)
    collector = bench.collect(keeper)
    before = time.monotonic_ns()
    keeper.continue_target()
    ended(keeper)
    after = time.monotonic_ns()
    collector.finish()
    last = 0
    for batch in bench.sink.committed.of("records"):
        ticks = entries_of(batch)["ts"].astype(np.int64)
        clock = batch.header["clock"]
        if bench.pool.clock is Clock.TSC:
            tsc0, mono0, tsc1, mono1 = clock
            assert 0.9e9 < mono1 - mono0 < 1.1e9
            ticks = mono0 + ((ticks - tsc0) * ((mono1 - mono0) / (tsc1 - tsc0))).astype(np.int64)
        assert ticks.min() >= before - 20_000 and ticks.max() <= after + 20_000
        assert ticks.min() >= last - 100
        last = int(ticks.max())


def test_more_threads_than_chunks_come_and_go(bench: Bench) -> None:
    keeper = bench.write("run", 60, 3_000, 0, 1)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    for hook in range(1, 61):
        assert np.array_equal(bench.sink.committed.words(hook), np.arange(3_000))
    assert len({part["thread"] for part in bench.sink.committed.slices()}) == 60 and all_free(bench.pool)


def test_a_counter_of_free_chunks_that_is_off_is_mended(bench: Bench) -> None:
    keeper = bench.write("hold")
    collector = bench.collect(keeper)
    bench.pool.add_free(-3)  # as three writers would leave it that were killed between counting and claiming
    eventually(lambda: int(bench.pool.header["chunks_free"]) == 16, "mended")
    keeper.continue_target()
    eventually(lambda: int(bench.pool.header["chunks_free"]) == 15, "one is claimed")
    collector.flush(5)


def test_drops_are_counted_exactly(bench: Bench) -> None:
    keeper = bench.write("run", 3, 400_000, 0, 0)
    collector = bench.collect(keeper)
    collector._submissions.append(hooks_known(3))
    collector.flush(10)
    bench.sink.paused.set()  # nothing is committed, so nothing is freed: the lanes fill
    keeper.continue_target()
    eventually(lambda: sum(collector.losses().values()) > 1000, "lanes overflow")
    bench.sink.paused.clear()
    ended(keeper)
    collector.finish()
    done, said = bench.sink.committed, bench.said(keeper)
    lost = {hook: done.losses()["lanesFull", hook] for hook in (1, 2, 3)}
    assert said["dropped"] == sum(lost.values()) > 0
    for hook in (1, 2, 3):
        words = done.words(hook)
        assert len(words) + lost[hook] == 400_000 and (np.diff(words.astype(np.int64)) > 0).all()
    assert collector.losses() == {"lanesFull": said["dropped"]}
    assert all_free(bench.pool)


def test_a_flush_means_that_all_before_it_is_committed(bench: Bench, tmp_path: Path) -> None:
    keeper = bench.keepers.start(*sh(f"while [ ! -e {tmp_path}/stop ]; do read line || exit 0; echo got $line; done"), stop=True, stdin="open")
    collector = bench.collect(keeper)
    keeper.continue_target()
    for number in range(40):
        keeper.control.write(b"%d\n" % number)
        eventually(printed(keeper, b"got %d\n" % number), "printed")
        start = time.monotonic()
        collector.flush(5)
        assert bench.sink.committed.output().endswith(b"got %d\n" % number)
        assert time.monotonic() - start < 1
    keeper.control.close_stdin()


def printed(keeper: Keeper, wanted: bytes) -> Callable[[], bool]:
    """Whether the keeper has read that much of its target's output."""
    return lambda: output_of(keeper)[0].endswith(wanted)


def test_records_are_flushed_too_and_settled_moves_on(bench: Bench) -> None:
    keeper = bench.write("hold")
    collector = bench.collect(keeper)
    keeper.continue_target()
    eventually(lambda: int(bench.pool.chunks["written"].max()) >= 15, "records written")
    collector.flush(5)
    done = bench.sink.committed
    assert done.words(1).tolist() == list(range(10))
    settled = [batch.header["tsNs"] for batch in done.of("settled")]
    assert settled == sorted(settled) and settled[-1] >= max(call_times(bench).values())
    assert settled[-1] <= time.monotonic_ns()
    assert int(bench.pool.chunks["read"].max()) >= 15, "what is committed is told to the pool"


def test_a_flush_that_the_store_does_not_answer_times_out(bench: Bench) -> None:
    keeper = bench.keepers.start(*sh("echo hello; sleep 100"))
    collector = bench.collect(keeper)
    collector.flush(5)
    bench.sink.paused.set()
    collector.tell_session({"pid": 1})
    with pytest.raises(StrobeError) as raised:
        collector.flush(0.3)
    assert raised.value.code is Code.TIMEOUT
    bench.sink.paused.clear()
    collector.flush(5)
    collector.close()
    with pytest.raises(StrobeError) as raised:
        collector.flush(0.3)
    assert raised.value.code is Code.ACTOR_UNAVAILABLE


def test_a_thread_killed_within_a_record_costs_that_record_and_no_chunk(bench: Bench) -> None:
    keeper = bench.write("die", 50_000)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    assert keeper.status().signal == signal.SIGKILL
    eventually(lambda: all_free(bench.pool), "the dead thread's chunks are freed while the session goes on")
    collector.finish()
    done = bench.sink.committed
    assert done.words(1).tolist() == list(range(50_003)), "what stands behind the gap is kept"
    assert dict(done.losses()) == {("threadDied", "unfinished"): 2}
    assert collector.losses() == {"threadDied": 2}


def test_a_crash_page_is_told_once_and_freed_when_its_event_is_stored(bench: Bench) -> None:
    keeper = bench.write("crash")
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.settle_crashes()
    (crash,) = bench.crashes
    assert (crash.signo, crash.code, crash.address, crash.pid, crash.comm, crash.span) == (11, 1, 0xDEAD, keeper.status().pid, "crasher", 7)
    assert (crash.stack, crash.stack_base, crash.maps) == (b"sixteen bytes of", 0x7000, "maps\n")
    assert crash.regs == {name: 100 + number for number, name in enumerate(GREGS)}
    collector.settle_crashes()
    assert len(bench.crashes) == 1 and bench.pool.crashes["state"][0] == 2
    collector.tell_event("crash", crash.ts, crash.pid, crash.tid, "boom", {"a": 1})
    collector.finish()
    (event,) = bench.sink.committed.events()
    status = keeper.status()
    assert status.started_ns - 20_000 <= event["tsNs"] <= status.exited_ns + 20_000
    assert (event["type"], event["text"], event["data"], event["tid"]) == ("crash", "boom", {"a": 1}, crash.tid)
    assert bench.pool.crashes["state"][0] == 0
