"""What a collector makes of a pool's chunks in states that last for an instant."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.session.collector.lanes import Lanes
from strobe.lanes.layout import CHUNK_SLOTS, ChunkState
from strobe.lanes.pool import Pool, create_pool


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    path = Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}"
    yield create_pool(path, 8)
    path.unlink()


def claim(pool: Pool, index: int) -> None:
    """As a thread does it, up to the instant before the new serial."""
    pool.chunks[index]["state"] = ChunkState.OWNED
    pool.chunks[index]["pid"] = pool.chunks[index]["tid"] = os.getpid()
    pool.maps[index] = 0
    pool.chunks[index]["written"] = pool.chunks[index]["read"] = 0


def publish(pool: Pool, index: int, serial: int, count: int) -> None:
    pool.chunks[index]["serial"] = serial
    pool.chunks[index]["written"] = count
    pool.maps[index][:count] = 1


def taken(lanes: Lanes) -> list[tuple[int, int, int]]:
    lanes.look(1)
    return [(part.serial, part.start, part.end) for part in lanes.take(1 << 20, 1)]


def test_what_was_committed_of_a_chunks_last_use_says_nothing_of_its_next(pool: Pool) -> None:
    pool.chunks[3]["serial"] = 1
    claim(pool, 3)
    successor = Lanes(pool, {3: (1, CHUNK_SLOTS)})
    assert taken(successor) == [] and pool.chunks[3]["read"] == 0
    publish(pool, 3, 2, 40)
    assert taken(successor) == [(2, 0, 40)]


def test_what_was_committed_of_a_chunk_is_not_sent_again(pool: Pool) -> None:
    claim(pool, 3)
    publish(pool, 3, 1, 40)
    assert taken(Lanes(pool, {3: (1, 30)})) == [(1, 30, 40)]
    assert pool.chunks[3]["read"] == 30


def test_lanes_follow_a_pool_that_grows(tmp_path: Path) -> None:
    path = Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}"
    pool = create_pool(path, 8, chunks_most=16)
    try:
        lanes = Lanes(pool, {})
        lanes.look(1)
        lanes.grow_when_short()
        assert pool.chunk_count == 8, "nothing is in use"
        for index in range(5):
            claim(pool, index)
            publish(pool, index, 1, 10)
        pool.add_free(-5)
        lanes.grow_when_short()
        assert pool.chunk_count == 16
        claim(pool, 12)
        publish(pool, 12, 1, 30)
        assert sorted(taken(lanes)) == [(1, 0, 10)] * 5 + [(1, 0, 30)]
    finally:
        path.unlink()


def test_a_chunk_is_free_again_each_time_its_owner_dies_before_it_wrote_anything(pool: Pool) -> None:
    owner = subprocess.Popen(["true"])
    owner.wait()
    lanes = Lanes(pool, {})
    for serial in (1, 2, 3):
        claim(pool, 3)
        pool.chunks[3]["pid"] = pool.chunks[3]["tid"] = owner.pid
        pool.chunks[3]["serial"] = serial
        lanes.look(serial)
        lanes.bury(serial + 1, 0)
        lanes.look(serial + 1)
        assert pool.chunks[3]["state"] == ChunkState.FREE, f"use {serial}"
