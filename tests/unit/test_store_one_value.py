"""One value of one event: whole, at a path, in parts; and what cannot be had is told."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from actors.store.query.one_value import read_value
from strobe.errors import Code, StrobeError
from strobe.protocol.store import ReadValue, ValueReply
from tests.bench.store_records import STARTED_NS, Lane
from tests.harness.store_typed import BIAS, HEAP, SESSION, TypedSession, order_bytes, order_entry, region, with_image


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TypedSession]:
    made = TypedSession(tmp_path_factory.mktemp("value") / "demo.duckdb")
    lane = Lane().enter(100, 1, 1, order_entry(17, -4.0, 1, next_total=2.5)).exit(200, 1, 1, 7)  # 1 2
    lane.enter(300, 2, 2, struct.pack("<i", 17))  # 3
    lane.enter(500, 3, 4, struct.pack("<Q", BIAS + 0x1136)).exit(600, 3, 4)  # 4 5
    made.records(lane)
    made.records(Lane().exit(700, 2, 2, payload=with_image(struct.pack("<Q", HEAP), region(HEAP, order_bytes(17, 9.5)))))  # 6
    made.send("output", {"segments": [{"stream": 1, "offset": 0, "bytes": 5, "tsNs": STARTED_NS + 800}]}, [b"hello"])  # 7
    made.writer.commit()
    yield made
    made.file.close()


def read(session: TypedSession, n: int, path: str | None = None, limit: int = 100) -> ValueReply:
    return read_value(session.file, ReadValue(session_id=SESSION, event_id=f"{SESSION}-{n}", path=path, limit=limit), session.connection)


@pytest.mark.parametrize(
    ("n", "path", "value", "type_name"),
    [
        (1, "order.total", -4.0, "double"),
        (2, "order->next->total", 2.5, "double"),
        (1, "args[0].mode", "Test", "Mode"),
        (1, "order.items", [1, 2, 3, 4], "int[4]"),
        (1, "order.items[1..3]", [2, 3, "… 1 more"], "int[4]"),
        (1, "order.items[2..]", [3, 4], "int[4]"),
        (1, "order.items[..2]", [1, 2, "… 2 more"], "int[4]"),
        (1, "order.items[3]", 4, "int"),
        (1, "mode", "Test", "Mode"),
        (2, "ret", 7, "int"),
        (6, "ret.total", 9.5, "double"),
        (6, "id", 17, "int"),
        (4, "f", f"<function at {BIAS + 0x1136:#x}>", "void (*)(int)"),
    ],
)
def test_a_value_at_a_path(session: TypedSession, n: int, path: str, value: Any, type_name: str) -> None:
    reply = read(session, n, path)
    assert (reply.value, reply.type_name) == (value, type_name)
    assert reply.event["id"] == f"{SESSION}-{n}"
    assert bool(reply.function_addresses) is (path == "f")


def test_a_list_that_is_cut_says_where_it_goes_on(session: TypedSession) -> None:
    first = read(session, 1, "order.items", limit=3)
    assert (first.value, first.next_path) == ([1, 2, 3, "… 1 more"], "order.items[3..]")
    rest = read(session, 1, first.next_path, limit=3)
    assert (rest.value, rest.next_path) == ([4], None)


def test_an_event_with_all_its_values(session: TypedSession) -> None:
    event = read(session, 2).event
    assert event["returnValue"] == 7 and event["arguments"][0]["value"]["next"]["total"] == 2.5
    assert read(session, 7).event["text"] == "hello"


@pytest.mark.parametrize(
    ("n", "path", "said"),
    [
        (99, None, "no event 99"),
        (1, "order.totl", "totl"),
        (1, "ordr", "order, mode"),
        (1, "ret", "'ret'"),
        (7, "order", "no call"),
        (1, "order.total[1..2]", "no elements"),
        (1, "order.items[3..2]", "ends before"),
        (1, "order.items[7]", "outside"),
        (1, "order.next.next.id", "null"),
        (1, "order.", "offset"),
    ],
)
def test_what_cannot_be_had_is_told(session: TypedSession, n: int, path: str | None, said: str) -> None:
    with pytest.raises(StrobeError) as refused:
        read(session, n, path)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert said in f"{refused.value} {refused.value.to_wire()['nextStep']}"


def test_a_call_tree_shows_values_when_verbose(session: TypedSession) -> None:
    plain, verbose = session.ask(view="callTree").events, session.ask(view="callTree", verbose=True).events
    assert all("arguments" not in row for row in plain)
    assert [row["function"] for row in verbose] == ["place", "find", "each"]
    assert verbose[0]["arguments"][0]["value"]["id"] == 17 and verbose[0]["returnValue"] == 7
    assert verbose[1]["returnValue"]["total"] == 9.5 and verbose[1]["durationNs"] == 400


def test_views_go_on_by_cursor(session: TypedSession) -> None:
    found = []
    reply = session.ask(view="callTree", limit=1)
    while True:
        found += [row["function"] for row in reply.events]
        if not reply.has_more:
            break
        reply = session.ask(view="callTree", limit=1, cursor=reply.cursor)
    assert found == ["place", "find", "each"] and reply.cursor is None
    with pytest.raises(StrobeError):
        session.ask(cursor=session.ask(view="hotspots", limit=1).cursor)
