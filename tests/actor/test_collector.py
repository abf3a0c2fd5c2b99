"""The collector between a real keeper, a pool filled by a C program as the recorder fills it, and a real stream."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.session.collector import Collector
from actors.session.collector.order import SLACK_NS
from actors.session.crash import GREGS, Crash
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import ChunkState, Clock, Kind
from strobe.lanes.pool import Pool, create_pool, open_pool
from strobe.lanes.reader import entries, heads_of
from strobe.launch.keeper import Keeper, adopt_keeper
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher, output_of, sh
from tests.harness.sink import Sink, frames_of
from tests.harness.targets import program


@dataclass
class Bench:
    """One session's worth of parts."""

    keepers: Launcher
    sink: Sink
    pool: Pool
    collectors: list[Collector] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def write(self, *arguments: object, **options: Any) -> Keeper:
        writer = str(program("lane_writer.c", "-O2"))
        keeper = self.keepers.start(writer, str(self.pool.path), *map(str, arguments), stop=True, **options)
        status = keeper.status()
        self.pool.set_streams(status.stream_dev, status.stream_ino)
        return keeper

    def collect(self, keeper: Keeper) -> Collector:
        collector = Collector(
            session_id="s", pool=self.pool, keeper=keeper, endpoint=self.sink.endpoint, on_crash=self.crashes.append, on_failure=self.failures.append
        )
        self.collectors.append(collector)
        collector.start()
        return collector

    def said(self, keeper: Keeper) -> dict[str, int]:
        """What the writer says it did."""
        words = re.findall(rb"(\w+) (\d+)", output_of(keeper)[1])
        return {name.decode(): int(number) for name, number in words}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    pool = create_pool(Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}", 16)
    with launcher(tmp_path / "keepers") as keepers:
        sink = Sink(tmp_path / "run")
        made = Bench(keepers, sink, pool)
        try:
            yield made
        finally:
            for collector in made.collectors:
                collector.close()
            pool.unlink()
            sink.close()
        assert not made.failures


def ended(keeper: Keeper) -> None:
    keeper.wait(lambda status: status.ended, WAIT_S)


def all_free(pool: Pool) -> bool:
    return bool((pool.chunks["state"] == ChunkState.FREE).all()) and int(pool.header["chunks_free"]) == pool.chunk_count


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


def entries_of(batch: Any) -> Any:
    slot_map, slots = frames_of(batch)
    found = entries(slots, heads_of(slot_map))
    return found[found["kind"] != Kind.PAD]


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


def pass_time(seconds: float) -> None:
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until, "a moment")


def hooks_known(count: int) -> Any:
    from actors.session.collector.requests import Submission

    return Submission("hooks", {"hooks": [{"id": count}]})


def test_lines_are_placed_between_the_calls_around_them(bench: Bench) -> None:
    keeper = bench.write("lines", 3000, 0)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert done.output() == b"".join(b"line %d\n" % i for i in range(3000))
    segments = [segment for segment in done.segments() if segment["stream"] == 1]
    exact = [segment for segment in segments if not segment["approximate"]]
    assert len(exact) > 2900, f"{len(exact)} of {len(segments)}"
    calls = call_times(bench)
    for segment in exact:
        number = int(segment["data"].split()[1])
        assert segment["span"] & 0xFFFFFFFFFF == number + 1
        assert calls[2 * number] <= segment["tsNs"] + 100 and segment["tsNs"] <= calls[2 * number + 1] + 100


def call_times(bench: Bench) -> dict[int, int]:
    """Number of a call's record → its time in ns."""
    times: dict[int, int] = {}
    for batch in bench.sink.committed.of("records"):
        rows, clock = entries_of(batch), batch.header["clock"]
        for kind, word, ts in zip(rows["kind"].tolist(), rows["word"].tolist(), rows["ts"].tolist(), strict=True):
            if kind <= Kind.EXIT:
                times[word] = ts if clock is None else clock[1] + round((ts - clock[0]) * (clock[3] - clock[1]) / (clock[2] - clock[0]))
    return times


def test_an_unmarked_writer_falls_back_to_arrival_and_marks_find_their_bytes_again(bench: Bench) -> None:
    keeper = bench.write("lines", 60, 4)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert done.output() == b"".join(b"line %d\n" % i for i in range(60))
    wrong = []
    for segment in (segment for segment in done.segments() if segment["stream"] == 1):
        numbers = [int(line.split()[1]) for line in segment["data"].splitlines()]
        from_child = [number % 4 == 3 for number in numbers]
        if not segment["approximate"]:
            wrong += [number for number, child in zip(numbers, from_child, strict=True) if child or segment["span"] & 0xFFFFFFFFFF != number + 1]
        else:
            assert segment["span"] is None
    assert not wrong
    assert sum(not segment["approximate"] for segment in done.segments() if segment["stream"] == 1) > 30


def test_output_without_a_recorder_has_its_arrival_time(bench: Bench) -> None:
    keeper = bench.keepers.start(*sh("echo one; echo two >&2; sleep 0.05; echo three; exit 3"), stop=True)
    collector = bench.collect(keeper)
    before = time.monotonic_ns()
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert (done.output(1), done.output(2)) == (b"one\nthree\n", b"two\n")
    times = {segment["data"]: segment["tsNs"] for segment in done.segments()}
    assert times[b"three\n"] - times[b"one\n"] > 45_000_000 and all(before < ts < time.monotonic_ns() for ts in times.values())
    assert all(segment["approximate"] for segment in done.segments())


def test_large_output_is_complete_and_its_disk_space_comes_back(bench: Bench) -> None:
    keeper = bench.keepers.start(*sh("head -c 60000000 /dev/urandom | tee /dev/stderr"), stop=True)
    collector = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert len(done.output(1)) == 60_000_000 and done.output(1) == done.output(2)
    assert keeper.output_path.stat().st_size > 120_000_000
    assert keeper.output_path.stat().st_blocks * 512 < 16_000_000


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


def test_the_store_may_die_at_any_time(bench: Bench) -> None:
    keeper = bench.write("run", 2, 600_000, 300_000, 1)
    collector = bench.collect(keeper)
    keeper.continue_target()
    moments = np.random.default_rng(7).uniform(0.02, 0.25, 8)
    for moment in moments:
        pass_time(moment)
        bench.sink.cut()
        bench.sink.open()
    ended(keeper)
    collector.finish()
    for hook in (1, 2):
        assert np.array_equal(bench.sink.committed.words(hook), np.arange(600_000))
    assert not bench.sink.committed.losses() and all_free(bench.pool)


FACTORY = """
import os, signal, sys, threading
from pathlib import Path
from actors.session.collector import Collector
from strobe.lanes.pool import open_pool
from strobe.launch.keeper import adopt_keeper
folder, pool, endpoint = sys.argv[1:]
for _ in sys.stdin:
    child = os.fork()
    if not child:
        Collector(
            session_id="s", pool=open_pool(Path(pool)), keeper=adopt_keeper(Path(folder)), endpoint=endpoint,
            on_crash=print, on_failure=lambda error: (print(repr(error), flush=True), os._exit(1)),
        ).start()
        signal.pause()
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class CollectorProcesses:
    """Collectors in processes of their own, forked from one that has imported everything: a start costs milliseconds."""

    def __init__(self, bench: Bench, keeper: Keeper) -> None:
        arguments = [sys.executable, "-c", FACTORY, str(keeper.directory), str(bench.pool.path), bench.sink.endpoint]
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)

    def run_and_kill(self, moment: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        child = self._process.stdout.readline()
        assert child.strip().isdigit(), child + self._process.stdout.read()
        pass_time(moment)
        meanwhile()
        os.kill(int(child), signal.SIGKILL)
        status = self._process.stdout.readline()
        assert status == f"{int(signal.SIGKILL)}\n", status

    def close(self) -> None:
        self._process.communicate(timeout=20)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_the_collector_may_be_killed_at_any_time(bench: Bench, seed: int) -> None:
    """kill -9 at seeded instants while records and drops go on: each record, byte and loss once."""
    keeper = bench.write("run", 2, 500_000, 150_000, 0)
    processes = CollectorProcesses(bench, keeper)
    random = np.random.default_rng(seed)

    def cut_the_store() -> None:
        if random.random() < 0.3:
            bench.sink.cut()
            bench.sink.open()

    processes.run_and_kill(0.1)
    keeper.continue_target()
    for moment in random.uniform(0.005, 0.3, 15):
        processes.run_and_kill(moment, cut_the_store)
    processes.close()
    collector = bench.collect(keeper)
    collector._submissions.append(hooks_known(2))
    ended(keeper)
    collector.finish()
    done, told = bench.sink.committed, bench.said(keeper)
    lost = sum(done.losses().values())
    assert lost == told["dropped"]
    for hook in (1, 2):
        words = done.words(hook).astype(np.int64)
        assert (np.diff(words) > 0).all()
        assert len(words) + done.losses()["lanesFull", hook] == 500_000
    assert done.output(2) == output_of(keeper)[1]
    assert all_free(bench.pool)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_lines_survive_killed_collectors_byte_for_byte(bench: Bench, seed: int) -> None:
    keeper = bench.write("lines", 200_000, 0)
    processes = CollectorProcesses(bench, keeper)
    processes.run_and_kill(0.1)
    keeper.continue_target()
    for moment in np.random.default_rng(seed).uniform(0.005, 0.2, 12):
        processes.run_and_kill(moment)
    processes.close()
    collector = bench.collect(keeper)
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert done.output() == b"".join(b"line %d\n" % i for i in range(200_000))
    for segment in done.segments():
        if segment["stream"] == 1 and not segment["approximate"]:
            assert segment["span"] & 0xFFFFFFFFFF == int(segment["data"].split()[1]) + 1


def test_a_successor_frees_what_a_predecessor_had_committed(bench: Bench) -> None:
    keeper = bench.write("run", 1, 200_000, 0, 1)
    first = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    first.flush(10)
    first.close()
    again = Collector(
        session_id="s", pool=open_pool(bench.pool.path), keeper=adopt_keeper(keeper.directory), endpoint=bench.sink.endpoint, on_crash=print, on_failure=print
    )
    bench.collectors.append(again)
    again.start()
    again.finish()
    assert np.array_equal(bench.sink.committed.words(1), np.arange(200_000)) and all_free(bench.pool)


def test_a_collector_whose_stream_fails_says_so(bench: Bench) -> None:
    def broken() -> Any:
        raise_ = StrobeError(Code.ACTOR_UNAVAILABLE, "no stream", "wait")

        class Stream:
            window_free, acked, resume = 1, 0, b"\x81\xa1v\x63"

            def hello(self, timeout_ms: int) -> bool:
                del timeout_ms
                raise raise_

            def close(self) -> None:
                return None

        return Stream()

    heard: list[BaseException] = []
    keeper = bench.keepers.start("/bin/true")
    collector = Collector(session_id="s", pool=bench.pool, keeper=keeper, endpoint="", on_crash=print, on_failure=heard.append, open_stream=broken)
    collector.start()
    eventually(lambda: bool(heard), "failure told")
    with pytest.raises(StrobeError) as raised:
        collector.flush(1)
    assert raised.value.code is Code.ACTOR_UNAVAILABLE and "no stream" in raised.value.what


def test_slack_is_larger_than_a_scheduling_delay_and_smaller_than_the_wait() -> None:
    assert 5_000_000 <= SLACK_NS < 30_000_000
