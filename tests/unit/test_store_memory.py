"""What the store answers from memory: blocks of rows read before, and the thread that watches deadlines."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from actors.store.blocks import BlockCache, BlockName
from actors.store.deadlines import Deadlines
from actors.store.query.run import run_query
from actors.store.reading import NeedsStatementError
from strobe.model.query import Query
from tests.bench.store_records import Lane, Traffic, record
from tests.unit.test_store_session_file import Feeder

SESSION = record().session_id


def block(number: int) -> BlockName:
    return BlockName("enter", number, number << 10, 0, 2)


def test_the_blocks_asked_for_last_are_kept() -> None:
    cache = BlockCache(bytes_max=10_000)
    for number in range(3):
        cache.put(block(number), {"n": np.zeros(375)})  # 3,000 bytes and its overhead
    assert cache.get(block(0)) is not None
    cache.put(block(3), {"n": np.zeros(375)})
    assert [number for number in range(4) if cache.get(block(number)) is not None] == [0, 2, 3]
    assert cache.bytes <= 10_000
    cache.put(block(3), {"n": np.zeros(0)})
    assert cache.bytes <= 7_000
    cache.put(block(4), {"text": np.array(["x" * 50_000], dtype=np.object_)})
    assert cache.get(block(4)) is None and cache.bytes == 0


class Work:
    def __init__(self) -> None:
        self.interrupted = threading.Event()

    def interrupt(self) -> None:
        self.interrupted.set()


def test_work_is_interrupted_at_its_deadline_and_never_after_it_was_left() -> None:
    deadlines = Deadlines("test")
    left, late, patient = Work(), Work(), Work()
    now = time.monotonic()
    with deadlines.watch(patient, now + 600):
        with deadlines.watch(left, now + 0.05):
            pass
        with deadlines.watch(late, now + 0.1) as watched:
            assert late.interrupted.wait(10)
            assert time.monotonic() >= now + 0.1
        assert watched.late
    assert not left.interrupted.is_set() and not patient.interrupted.is_set()
    deadlines.close()


def test_a_page_read_before_needs_no_statement_and_new_events_join_it(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb")
    feeder.hooks()
    feeder.records(Lane().enter(100, 1, 1, bytes(8)).enter(200, 2, 2, bytes(8), parent=1))
    feeder.writer.commit()
    with pytest.raises(NeedsStatementError):
        run_query(SESSION, feeder.file, Query(), None)
    first = feeder.ask()
    assert run_query(SESSION, feeder.file, Query(), None) == first
    assert [event["id"] for event in run_query(SESSION, feeder.file, Query(limit=1), None).events] == [first.events[0]["id"]]
    feeder.records(Lane().exit(300, 2, 2, 42).exit(400, 1, 1, 1))
    feeder.writer.commit()
    then = feeder.ask()
    assert [event["eventType"] for event in then.events] == ["function_enter", "function_enter", "function_exit", "function_exit"]
    assert then.events[:2] == first.events and then.total_count == 4
    feeder.file.close()


def test_evicted_events_are_not_remembered(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb", eventsMax=3000)
    feeder.hooks()
    traffic = Traffic()
    shown: list[str] = []
    for _ in range(4):
        header, frames = traffic.batch(1000)
        assert feeder.send("records", header, frames)
        feeder.writer.commit()
        page = feeder.ask(limit=1)
        assert feeder.file.reader().execute(f"SELECT count(*) FROM raw_calls WHERE n = {page.events[0]['id'].rpartition('-')[2]}").fetchall() == [(1,)]
        shown.append(page.events[0]["id"])
    assert len(set(shown)) > 1
    feeder.file.close()
