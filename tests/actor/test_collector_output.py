"""What a target prints, through the collector: every byte once, and where it stands among the calls."""

from __future__ import annotations

import time

from actors.session.collector.order import SLACK_NS
from tests.harness.collecting import Bench, call_times, ended
from tests.harness.launching import sh


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


def test_slack_is_larger_than_a_scheduling_delay_and_smaller_than_the_wait() -> None:
    assert 5_000_000 <= SLACK_NS < 30_000_000
