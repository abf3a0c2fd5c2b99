"""Making and opening pools, and the clock that their records use."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from strobe.errors import Code, StrobeError
from strobe.lanes.clock import ClockLine, ClockPair, choose_clock, sample_pair
from strobe.lanes.layout import CHUNK_SLOTS, CHUNKS_OFFSET, HOOK_CAPACITY, POOL_MAGIC, ChunkState, Clock
from strobe.lanes.machine import machine
from strobe.lanes.pool import LEAST_CHUNKS, create_pool, open_pool, pool_bytes


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    place = Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}"
    yield place
    place.unlink(missing_ok=True)


def test_a_new_pool_is_allocated_private_and_says_what_it_is(path: Path) -> None:
    pool = create_pool(path, 16)
    facts = path.stat()
    assert facts.st_size == pool_bytes(16) and facts.st_blocks * 512 >= facts.st_size and facts.st_mode & 0o777 == 0o600
    header = pool.header
    assert header["magic"] == POOL_MAGIC and header["pool_bytes"] == facts.st_size and header["chunks_offset"] == CHUNKS_OFFSET
    assert [int(header[name]) for name in ("chunk_count", "chunks_free", "reserve_chunks", "recording")] == [16, 16, 2, 1]
    assert pool.shortfall is None and pool.hooks.shape == (HOOK_CAPACITY,) and pool.maps.shape == (16, CHUNK_SLOTS)
    assert (pool.chunks["state"] == ChunkState.FREE).all()
    assert pool.clock is choose_clock()


def test_two_mappings_see_each_other(path: Path) -> None:
    pool = create_pool(path, 8)
    other = open_pool(path)
    other.maps[3][5] = 7
    other.hooks[9]["flags"] = 3
    other.chunks[2]["serial"] = 77
    other.set_streams((1, 2), (3, 4))
    other.set_recording(False)
    assert pool.maps[3][5] == 7 and pool.hooks["flags"][9] == 3 and pool.heads[2, 1] == 77
    assert pool.header["stream_dev"].tolist() == [1, 2] and pool.header["stream_ino"].tolist() == [3, 4] and pool.header["recording"] == 0


def test_what_is_there_is_not_overwritten_and_what_is_no_pool_not_opened(path: Path) -> None:
    create_pool(path, 8)
    with pytest.raises(StrobeError) as raised:
        create_pool(path, 8)
    assert raised.value.code is Code.VALIDATION_ERROR and open_pool(path).chunk_count == 8
    path.write_bytes(b"something else")
    for place in (path, path.with_name("strobe-test-none")):
        with pytest.raises(StrobeError) as raised:
            open_pool(place)
        assert raised.value.value == str(place)


def test_a_shortage_of_space_makes_a_smaller_pool_and_says_so(tmp_path: Path) -> None:
    script = (
        "import resource, sys, signal\n"
        "from pathlib import Path\n"
        "from strobe.lanes.pool import create_pool\n"
        "from strobe.errors import StrobeError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))\n"
        "try: pool = create_pool(Path(sys.argv[1]), 64)\n"
        "except StrobeError as error: print(error.code, Path(sys.argv[1]).exists())\n"
        "else: print(pool.chunk_count, int(pool.header['chunks_free']), pool.shortfall)\n"
    )

    def run(limit: int) -> str:
        arguments = [sys.executable, "-c", script, str(tmp_path / f"pool{limit}"), str(limit)]
        return subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60).stdout

    said = run(pool_bytes(20))
    assert said.startswith("16 16 ") and "room for 4 MiB of records, not 16 MiB" in said
    assert run(pool_bytes(64)) == "64 64 None\n"
    assert run(pool_bytes(LEAST_CHUNKS) - 1) == "LIMIT_EXCEEDED False\n"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != pool_bytes(64)


def test_adding_free_chunks_is_atomic_against_other_writers(path: Path) -> None:
    pool, other = create_pool(path, 8), open_pool(path)
    if machine() is None:
        pytest.skip("no machine code can be mapped here")
    threads = [threading.Thread(target=lambda each=each: [each.add_free(1) for _ in range(20_000)]) for each in (pool, other, pool, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert pool.header["chunks_free"] == 8 + 80_000
    pool.add_free(-80_008)
    assert other.header["chunks_free"] == 0


GOOD = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc rdtscp nonstop_tsc\n"


@pytest.mark.parametrize(
    ("cpuinfo", "source", "wanted"),
    [
        (GOOD, "tsc\n", Clock.TSC),
        (GOOD, "kvm-clock\n", Clock.MONOTONIC),
        (GOOD.replace("nonstop_tsc", ""), "tsc\n", Clock.MONOTONIC),
        (GOOD.replace("constant_tsc", ""), "tsc\n", Clock.MONOTONIC),
        ("", "", Clock.MONOTONIC),
    ],
)
def test_the_counter_is_used_only_where_it_can_be_trusted(cpuinfo: str, source: str, wanted: Clock) -> None:
    if machine() is None:
        wanted = Clock.MONOTONIC
    assert choose_clock(cpuinfo, source) is wanted


def test_the_counter_counts() -> None:
    functions = machine()
    if functions is None:
        pytest.skip("no machine code can be mapped here")
    ticks = [functions.read_tsc() for _ in range(1000)]
    assert ticks == sorted(ticks) and ticks[-1] > ticks[0]


def test_a_line_follows_the_clock_and_never_jumps() -> None:
    if choose_clock() is not Clock.TSC:
        pytest.skip("the time-stamp counter is not the system's clock here")
    line = ClockLine()
    until = time.monotonic() + 2.3
    worst = 0
    while time.monotonic() < until:
        before = line.points()
        line.correct(time.monotonic_ns())
        after = line.points()
        if after != before:
            assert abs(convert(before, after[0]) - after[1]) <= 2, "a new line begins on the old one"
        pair = sample_pair()
        worst = max(worst, abs(line.mono(pair.tsc) - pair.mono))
        assert abs(line.ticks(line.mono(pair.tsc)) - pair.tsc) < 10
        time.sleep(0.01)
    assert worst < 50_000, f"{worst} ns off"
    assert abs(line.mono((last := sample_pair()).tsc) - last.mono) < 20_000


def convert(points: list[int], ticks: int) -> int:
    tsc0, mono0, tsc1, mono1 = points
    return mono0 + round((ticks - tsc0) * (mono1 - mono0) / (tsc1 - tsc0))


def test_a_line_steps_when_one_clock_stood_still() -> None:
    if choose_clock() is not Clock.TSC:
        pytest.skip("the time-stamp counter is not the system's clock here")
    line = ClockLine()
    asleep_ticks = round(5e9 * (line.points()[2] - line.points()[0]) / 1e9)
    line._tsc -= asleep_ticks  # as if five seconds of ticks had passed while the other clock stood still
    line._last = ClockPair(line._last.tsc - asleep_ticks, line._last.mono)
    line.correct(time.monotonic_ns() + 2_000_000_000)
    pair = sample_pair()
    assert abs(line.mono(pair.tsc) - pair.mono) < 50_000


def test_views_agree_with_the_tables(path: Path) -> None:
    pool = create_pool(path, 8)
    pool.chunks[1]["written"], pool.chunks[1]["read"], pool.chunks[1]["order"] = 5, 6, 7
    assert pool.heads[1, 5:8].tolist() == [7, 5, 6]
    pool.slots[1][:32] = 9
    assert (np.frombuffer(path.read_bytes(), dtype=np.uint8)[CHUNKS_OFFSET + 262144 + 8192 :][:33] == 9).sum() == 32


def test_a_pool_grows_in_place_up_to_what_it_was_made_for(path: Path) -> None:
    pool = create_pool(path, 8, chunks_most=24)
    other = open_pool(path)
    assert (pool.chunk_count, pool.chunks_most, path.stat().st_size) == (8, 24, pool_bytes(24))
    assert path.stat().st_blocks * 512 < pool_bytes(9), "its end is a hole"
    assert pool.grow() and pool.grow() and not pool.grow()
    assert (other.chunk_count, int(other.header["chunks_free"]), path.stat().st_blocks * 512 >= pool_bytes(24)) == (24, 24, True)
    pool.maps[23][7] = 3
    assert other.maps[23][7] == 3 and other.heads.shape == (24, 8)
    assert not create_pool(path.with_name(path.name + "2"), 8).grow()
    path.with_name(path.name + "2").unlink()


def test_a_pool_that_cannot_grow_stays_as_it_is(path: Path) -> None:
    pool = create_pool(path, 8, chunks_most=16)
    path.unlink()
    assert not pool.grow() and pool.chunk_count == 8
    assert pool.shortfall is not None and "2 MiB" in pool.shortfall and pool.grow_after > time.monotonic()
