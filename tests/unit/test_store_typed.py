"""Typed values of stored calls: kept payloads, what a page shows of them, what eviction and reopening leave."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from actors.store.instance import open_instance
from actors.store.schema import SCHEMA_VERSION
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import Kind, StringState
from tests.bench.store_records import Lane, record
from tests.harness.store_session import Session
from tests.harness.store_typed import BIAS, BODY, CIRCLE_VTABLE, HEAP, KEY, SESSION, TypedSession, order_bytes, order_entry, region, with_image


@pytest.fixture
def session(tmp_path: Path) -> Iterator[TypedSession]:
    made = TypedSession(tmp_path / "demo.duckdb")
    yield made
    made.file.close()


def fill(session: TypedSession) -> None:
    lane = Lane()
    lane.enter(100, 1, 1, order_entry(17, -4.0, 1, next_total=2.5)).exit(200, 1, 1, 7)
    lane.enter(300, 2, 2, struct.pack("<i", 17)).exit(400, 2, 2, payload=with_image(struct.pack("<Q", HEAP), region(HEAP, order_bytes(17, 9.5))))
    lane.enter(500, 3, 3, struct.pack("<dd", 1.5, -2.0)).exit(600, 3, 3)
    lane.enter(700, 4, 4, struct.pack("<Q", BIAS + 0x1136)).exit(800, 4, 4)
    lane.enter(900, 5, 5, with_image(struct.pack("<Q", HEAP), region(HEAP, struct.pack("<Qd", BIAS + CIRCLE_VTABLE + 16, 2.5))))
    session.records(lane)


def arguments(event: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in event["arguments"]}


def test_a_page_shows_typed_values(session: TypedSession) -> None:
    fill(session)
    placed, left, finding, found, moved, *_ = session.ask(verbose=True).events
    order = arguments(placed)["order"]
    assert (order["@"], order["id"], order["total"], order["items"], order["mode"]) == (hex(HEAP), 17, -4.0, [1, 2, 3, 4], "Test")
    assert order["next"]["total"] == 2.5 and order["next"]["next"] is None
    assert arguments(placed)["mode"] == "Test" and arguments(left) == arguments(placed) and left["returnValue"] == 7
    assert arguments(finding) == {"id": 17} and found["returnValue"]["total"] == 9.5
    assert arguments(moved) == {"to": {"x": 1.5, "y": -2.0}}


def test_functions_are_left_for_whoever_knows_their_names(session: TypedSession) -> None:
    fill(session)
    reply = session.ask(verbose=True)
    each = next(event for event in reply.events if event["function"] == "each")
    assert arguments(each) == {"f": f"<function at {BIAS + 0x1136:#x}>"}
    assert reply.function_addresses == [BIAS + 0x1136]
    assert reply.modules == {"/bin/demo": BIAS, "/lib/libc.so.6": 0x7FFF_0000_0000}


def test_a_late_exit_shows_its_arguments(session: TypedSession) -> None:
    session.records(Lane().enter(100, 1, 1, order_entry(5, 1.25)))
    session.records(Lane().exit(200, 1, 1, 3))
    assert [arguments(event)["order"]["total"] for event in session.ask(verbose=True).events] == [1.25, 1.25]


def test_only_deep_entries_keep_their_payload(session: TypedSession) -> None:
    fill(session)
    rows = session.connection.execute("SELECT n, bytes, octet_length(body) FROM payloads ORDER BY n").fetchall()
    assert [(n, size) for n, size, _ in rows] == [(1, 160), (4, 96), (5, 32), (9, 64)] and all(size == held for _, size, held in rows)


def test_all_is_there_after_reopening(session: TypedSession) -> None:
    fill(session)
    before = session.ask(verbose=True)
    session.reopen()
    assert session.ask(verbose=True) == before
    assert session.file.counts.snapshot().map.bytes_total == 160 + 96 + 32 + 64


def test_types_are_stored_once(session: TypedSession) -> None:
    session.send("hooks", {"hooks": [], "types": {KEY: BODY}})
    session.writer.commit()
    session.reopen()
    session.send("hooks", {"hooks": [], "types": {KEY: BODY}, "modules": {"/lib/libc.so.6": 5}})
    session.writer.commit()
    assert session.connection.execute("SELECT count(*) FROM types").fetchall() == [(1,)]
    session.reopen()
    assert session.file.modules == {"/lib/libc.so.6": 5}


def test_damaged_types_leave_raw_values(tmp_path: Path) -> None:
    made = TypedSession(tmp_path / "demo.duckdb", hooks_known=False)
    from tests.harness.store_typed import hooks  # only here

    made.send("hooks", {"hooks": [one.model_dump(by_alias=True) for one in hooks()], "types": {KEY: b"nonsense"}})
    fill(made)
    event = made.ask(verbose=True).events[0]
    assert arguments(event) == {"order": hex(HEAP), "mode": "Test"}
    made.file.close()


def test_a_spoiled_image_is_no_fault(session: TypedSession) -> None:
    whole = order_entry(17, -4.0)
    for span, payload in enumerate([whole[:24], b"\xff" * len(whole), whole[:24] + b"\xff" * (len(whole) - 24), b""], 1):
        session.records(Lane().enter(span * 100, span, 1, payload))
    assert len(session.ask(verbose=True).events) == 4


def test_an_exception_is_told_with_the_call_it_left(session: TypedSession) -> None:
    name, message = b"St13runtime_error", b"out of stock"
    payload = struct.pack("<HHBxxxHHBxxx", 16, len(name), StringState.OK, 16 + len(name), len(message), StringState.OK) + name + message
    unnamed = struct.pack("<HHBxxxHHBxxx", 16, 1, StringState.OK, 0, 0, StringState.NULL) + b"i"
    lane = Lane().enter(100, 1, 1, order_entry(1, 1.0)).enter(200, 2, 3, struct.pack("<dd", 1, 2)).enter(250, 3, 3, struct.pack("<dd", 1, 2))
    lane.exit(300, 3, 3, payload=unnamed, kind=Kind.UNWIND).exit(300, 2, 3, payload=b"", kind=Kind.UNWIND).exit(400, 1, 1, payload=payload, kind=Kind.UNWIND)
    session.records(lane)
    for verbose in (False, True):
        leaving = session.ask(event_type="function_exit", verbose=verbose).events
        assert [event.get("exception") for event in leaving] == [{"type": "i"}, None, {"type": "St13runtime_error", "message": "out of stock"}]
        assert all(event["unwound"] and "returnValue" not in event for event in leaving)


def test_payloads_go_with_their_events(tmp_path: Path) -> None:
    made = TypedSession(tmp_path / "demo.duckdb", eventsMax=200)
    for commit in range(6):
        lane = Lane()
        for number in range(50):
            span = commit * 50 + number + 1
            lane.enter(span * 10, span, 1, order_entry(span, 1.0)).exit(span * 10 + 5, span, 1)
        made.records(lane)
    kept, lowest, size = made.connection.execute("SELECT count(*), min(n), sum(bytes) FROM payloads").fetchall()[0]
    assert made.connection.execute("SELECT count(*), min(n) FROM raw_calls").fetchall() == [(kept, lowest)] and 0 < kept < 300
    assert made.file.counts.snapshot().map.bytes_total == size
    made.file.close()


def test_bytes_of_payloads_are_limited_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.store.trace_map.PAYLOAD_BYTES_LEAST", 20_000)
    monkeypatch.setattr("actors.store.trace_map.PAYLOAD_BYTES", 0)
    made = TypedSession(tmp_path / "demo.duckdb", eventsMax=16_384)  # two numbers a block
    sent = 0
    for commit in range(5):
        lane = Lane()
        for number in range(50):
            span = commit * 50 + number + 1
            lane.enter(span * 10, span, 1, order_entry(span, 1.0)).exit(span * 10 + 5, span, 1)
        made.records(lane)
        sent += 100
        held = made.connection.execute("SELECT coalesce(sum(bytes), 0) FROM payloads").fetchall()[0][0]
        assert held <= 20_000
        reply = made.ask()
        assert reply.total_count + reply.events_dropped.get("evicted", 0) == sent
    assert held > 19_000 and reply.events_dropped["evicted"] > 0
    made.file.close()


def test_a_file_of_the_first_schema_still_answers(tmp_path: Path) -> None:
    """As the version before wrote it: without the tables of this one."""
    made = Session(tmp_path / "demo.duckdb")
    before = made.all()
    made.file.close()
    old = open_instance(tmp_path / "demo.duckdb")
    for table in ("payloads", "types", "modules"):
        old.execute(f"DROP TABLE {table}")
    old.execute("UPDATE session SET version = 1")
    old.close()
    made.file = SessionFile(tmp_path / "demo.duckdb", record(SESSION))
    made.connection = made.file.reader()
    assert made.all() == before
    assert made.connection.execute("SELECT version FROM session").fetchall() == [(SCHEMA_VERSION,)]
    made.file.close()


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    file = SessionFile(tmp_path / "demo.duckdb", record(SESSION))
    file.close()
    later: duckdb.DuckDBPyConnection = open_instance(tmp_path / "demo.duckdb")
    later.execute(f"UPDATE session SET version = {SCHEMA_VERSION + 1}")
    later.close()
    with pytest.raises(StrobeError) as refused:
        SessionFile(tmp_path / "demo.duckdb", record(SESSION))
    assert refused.value.code is Code.VALIDATION_ERROR and "later version" in str(refused.value)
