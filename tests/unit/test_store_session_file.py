"""A session's file: what a commit holds together, what eviction takes, what a reopened file still knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
import structlog

from actors.store.query.run import run_query
from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from strobe.model.query import Query
from strobe.model.session import SessionState
from tests.bench.store_records import STARTED_NS, Lane, Traffic, record, records, two_functions


class Feeder:
    def __init__(self, path: Path, **detail: Any) -> None:
        self.path = path
        path.parent.mkdir(exist_ok=True)
        self.file = SessionFile(path, record(detail=detail))
        self.writer = SessionWriter(self.file, structlog.get_logger())
        self.seq = self.file.position.seq

    def send(self, kind: str, header: dict[str, Any] | None = None, frames: list[bytes] | None = None) -> bool:
        taken = self.writer.accept({**(header or {}), "kind": kind, "epoch": 1, "seq": self.seq + 1}, frames or [])
        self.seq += taken
        return taken

    def hooks(self) -> None:
        assert self.send("hooks", {"hooks": [one.model_dump(by_alias=True) for one in two_functions()]})

    def records(self, *lanes: Lane) -> None:
        header, frames = records(*lanes)
        assert self.send("records", header, frames)

    def reopen(self) -> None:
        self.file.close()
        self.file = SessionFile(self.path, record())
        self.writer = SessionWriter(self.file, structlog.get_logger())

    def ask(self, **filters: Any) -> Any:
        connection = self.file.reader()
        try:
            return run_query(record().session_id, self.file, Query(**filters), connection)
        finally:
            self.file.give_back(connection)


def test_a_batch_is_taken_once_and_in_order(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb")
    feeder.hooks()
    header, frames = records(Lane().enter(1, 1, 1, bytes(8)))
    batch = {**header, "epoch": 1}
    take = feeder.writer.accept
    assert take({**batch, "seq": 2}, frames)
    assert not take({**batch, "seq": 2}, frames)  # again
    assert not take({**batch, "seq": 4}, frames)  # one is missing
    assert not take({**batch, "epoch": 2, "seq": 2}, frames)  # a new epoch begins at 1
    assert not take({**batch, "epoch": 0, "seq": 1}, frames)  # an old one never
    assert take({**batch, "epoch": 2, "seq": 1, "resume": b"mark"}, frames)
    feeder.writer.commit()
    assert (feeder.file.position.epoch, feeder.file.position.seq, feeder.file.position.resume) == (2, 1, b"mark")
    assert feeder.ask().total_count == 2
    feeder.reopen()
    assert (feeder.file.position.epoch, feeder.file.position.seq, feeder.file.position.resume) == (2, 1, b"mark")
    feeder.file.close()


def test_open_calls_survive_reopening(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb")
    feeder.hooks()
    feeder.records(Lane().enter(100, 1, 1, bytes(8)))
    feeder.writer.commit()
    feeder.reopen()
    feeder.records(Lane().enter(150, 2, 2, bytes(8), parent=1).exit(180, 2, 2).exit(400, 1, 1, 9))
    segment = {"stream": "stdout", "offset": 0, "bytes": 2, "tsNs": STARTED_NS + 160, "approximate": True, "span": 1 << 40 | 2}
    assert feeder.send("output", {"segments": [segment]}, [b"hi"])
    feeder.writer.commit()
    enter, inner, printed, left, last = feeder.ask(verbose=True).events
    assert (inner["parentEventId"], last["parentEventId"]) == (enter["id"], enter["id"])
    assert (printed["parentEventId"], printed["threadId"], printed["approximate"]) == (inner["id"], 77, True)
    assert (left["durationNs"], last["durationNs"], last["returnValue"]) == (30, 300, 9)
    feeder.file.close()


def test_output_is_kept_byte_for_byte(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb")
    content = bytes(range(256)) + "é".encode()
    sizes = [100, 156, 1, 1]
    segments, at = [], 0
    for size in sizes:
        segments.append({"stream": 2, "offset": at, "bytes": size, "tsNs": STARTED_NS + at, "approximate": False, "span": None})
        at += size
    assert feeder.send("output", {"segments": segments}, [content])
    feeder.writer.commit()
    rows = feeder.file.reader().execute("SELECT text, bytes FROM output ORDER BY start").fetchall()
    assert b"".join(raw if raw is not None else text.encode() for text, raw in rows) == content
    assert feeder.ask(event_type="stderr").total_count == 4 and feeder.ask(event_type="stdout").total_count == 0
    feeder.file.close()


@pytest.mark.parametrize("events_max", [100, 10_000])
def test_the_newest_trace_events_stay_and_the_rest_is_counted(tmp_path: Path, events_max: int) -> None:
    feeder = Feeder(tmp_path / "a.duckdb", eventsMax=events_max)
    feeder.hooks()
    traffic, sent = Traffic(2), 0
    for number in range(12):
        header, frames = traffic.batch(1000)
        assert feeder.send("records", header, frames)
        sent += 4000
        segment = {"stream": 1, "offset": number, "bytes": 1, "tsNs": STARTED_NS, "approximate": False, "span": None}
        assert feeder.send("output", {"segments": [segment]}, [b"x"])
        feeder.writer.commit()
        reply = feeder.ask(event_type="function_enter")
        kept = reply.total_count + feeder.ask(event_type="function_exit").total_count
        assert kept <= events_max and kept + reply.events_dropped.get("evicted", 0) == sent
        assert sent < events_max or kept > events_max - 4096
        assert kept == feeder.file.reader().execute("SELECT count(*) + count(exit_n) FROM raw_calls").fetchall()[0][0]
    assert feeder.ask(event_type="stdout").total_count == 12
    first = feeder.ask(event_type="function_enter", limit=1).events[0]["timestampNs"]
    assert first > 0.5 * feeder.ask().newest_ns
    before = feeder.ask().total_count
    feeder.reopen()
    assert feeder.ask().total_count == before and feeder.ask().events_dropped == {"evicted": sent - kept}
    feeder.file.close()


def test_a_failed_commit_stores_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb", eventsMax=1000)
    feeder.hooks()
    feeder.writer.commit()
    header, frames = Traffic().batch(2000)
    assert feeder.send("records", header, frames)
    connection = feeder.file.reader()
    connection.execute("ALTER TABLE more_values RENAME TO hidden")
    with pytest.raises(duckdb.Error):
        feeder.writer.commit()
    assert feeder.file.position.seq == 1 and feeder.ask().total_count == 0
    connection.execute("ALTER TABLE hidden RENAME TO more_values")
    feeder.writer.commit()
    assert feeder.file.position.seq == 2
    assert feeder.ask().total_count + feeder.ask().events_dropped["evicted"] == 4000
    feeder.file.close()


def test_the_session_row_follows_its_batches(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb", eventsMax=5)
    assert feeder.send("session", {"pid": 4, "state": "exited", "exitCode": 3, "detail": {"capabilities": {}}})
    stored = feeder.writer.commit()
    assert stored is not None and stored.record == feeder.file.record
    feeder.reopen()
    kept = feeder.file.record
    assert (kept.pid, kept.state, kept.exit_code, kept.detail) == (4, SessionState.EXITED, 3, {"eventsMax": 5, "capabilities": {}})
    feeder.file.close()


def test_a_thread_that_is_renamed_shows_the_name_of_its_time(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "a.duckdb")
    feeder.hooks()
    feeder.records(Lane(comm="before").enter(1, 1, 1, bytes(8)))
    feeder.records(Lane(comm="after").enter(2, 2, 1, bytes(8)))
    feeder.writer.commit()
    assert [event["threadName"] for event in feeder.ask(verbose=True).events] == ["before", "after"]
    assert feeder.ask(thread_id=77).total_count == 2
    feeder.file.close()


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(duckdb.Error):
        SessionFile(path, record())


@pytest.mark.parametrize(
    ("header", "frames", "lost"),
    [
        ({"kind": "nonsense"}, [], 0),
        ({"kind": "records", "slices": [], "clock": None}, [b"\x01\x01", bytes(64)], 2),
        ({"kind": "records", "slices": [{"thread": 1, "pid": 1, "tid": 1, "comm": "x", "slots": 1}], "clock": None}, [b"\x01", bytes(31)], 1),
        ({"kind": "records", "slices": [{"thread": 1, "pid": 1, "tid": 1, "comm": "x", "slots": 1}], "clock": [1, 2]}, [b"\x01", bytes(32)], 1),
        ({"kind": "output", "segments": [{"stream": 1, "offset": 0, "bytes": 1, "tsNs": 9}, {"stream": 7}]}, [b"ab"], 2),
        ({"kind": "event", "events": [{"type": "crash"}]}, [], 1),
        ({"kind": "hooks", "hooks": [{"id": 1}]}, [], 0),
        ({"kind": "session", "state": "dancing"}, [], 0),
    ],
)
def test_a_malformed_batch_goes_to_a_file_and_the_stream_goes_on(tmp_path: Path, header: dict[str, Any], frames: list[bytes], lost: int) -> None:
    feeder = Feeder(tmp_path / "sessions" / "a.duckdb")
    feeder.hooks()
    assert feeder.send(header["kind"], header, frames)
    feeder.records(Lane().enter(1, 1, 1, bytes(8)))
    feeder.writer.commit()
    reply = feeder.ask()
    assert reply.total_count == 1 and reply.events_dropped.get("rejected", 0) == lost
    assert len(list((tmp_path / "rejected").iterdir())) == 1
    assert feeder.file.position.seq == 3
    feeder.file.close()
