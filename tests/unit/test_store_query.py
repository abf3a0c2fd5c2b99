"""debug_query's filters, orders, pages and totals, each against a plain filter over all events of the same session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from actors.store.query.run import run_query
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError
from strobe.model.query import ArgumentFilter, FileFilter, Query, ReturnFilter, TextFilter, ThreadNameFilter
from tests.bench.store_records import STARTED_NS, Lane, record, records
from tests.harness.store_session import SESSION, Event, Session


@pytest.fixture(scope="module", params=[2_000_000, 400], ids=["one block", "small blocks"])
def session(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Session]:
    """The trace map's blocks are a 64th of what the session may hold: with 400, a page lies in a few of many."""
    made = Session(tmp_path_factory.mktemp("query") / "demo.duckdb", request.param)
    assert "evicted" not in made.file.losses
    yield made
    made.file.close()


@pytest.fixture(scope="module")
def events(session: Session) -> list[Event]:
    return session.all()


def argument(event: Event, name: str) -> Any:
    return next((one["value"] for one in event.get("arguments", []) if one["name"] == name), "absent")


def enters(event: Event) -> bool:
    return bool(event["eventType"] == "function_enter")


def exits(event: Event) -> bool:
    return bool(event["eventType"] == "function_exit")


def values(event: Event) -> list[Any]:
    return [one["value"] for one in event.get("arguments", [])]


CASES: list[tuple[str, dict[str, Any], Callable[[Event], bool]]] = [
    ("everything", {}, lambda _: True),
    *[(kind, {"event_type": kind},
     lambda e, kind=kind: e["eventType"] == kind) for kind in ("function_enter", "function_exit", "stdout", "stderr", "crash", "pause")],
    ("function equals", {"function": TextFilter(equals="net::send")}, lambda e: e.get("function") == "net::send"),
    ("function contains", {"function": TextFilter(contains="net")}, lambda e: "net" in (e.get("function") or "")),
    ("function matches", {"function": TextFilter(matches="^(paint|p.*e)$")}, lambda e: e.get("function") in ("paint", "parse")),
    ("function all three", {"function": TextFilter(contains="net", matches="recv$")}, lambda e: e.get("function") == "net::recv"),
    ("function of none", {"function": TextFilter(equals="nosuch")}, lambda _: False),
    ("file equals", {"source_file": FileFilter(equals="/src/paint.cpp")}, lambda e: e.get("sourceFile") == "/src/paint.cpp"),
    ("file contains", {"source_file": FileFilter(contains="/net/")}, lambda e: "/net/" in (e.get("sourceFile") or "")),
    ("function and file", {"function": TextFilter(contains="e"), "source_file": FileFilter(contains="net")},
     lambda e: "e" in (e.get("function") or "") and "net" in (e.get("sourceFile") or "")),
    ("thread name", {"thread_name": ThreadNameFilter(contains="work")}, lambda e: "work" in (e["threadName"] or "")),
    ("thread id", {"thread_id": 78}, lambda e: e["threadId"] == 78),
    ("pid", {"pid": 99}, lambda e: e["pid"] == 99),
    ("pid of none", {"pid": 1}, lambda _: False),
    ("time from", {"time_from": 20_000}, lambda e: e["timestampNs"] >= 20_000),
    ("time to", {"time_to": 20_000}, lambda e: e["timestampNs"] <= 20_000),
    ("min duration", {"min_duration_ns": 2_000}, lambda e: (e.get("durationNs") or 0) >= 2_000),
    ("min duration 0", {"min_duration_ns": 0}, lambda e: e.get("durationNs") is not None),
    ("argument uint", {"argument": ArgumentFilter(name="size", equals=4294967295)}, lambda e: enters(e) and argument(e, "size") == 4294967295),
    ("argument text", {"argument": ArgumentFilter(equals="alpha")}, lambda e: enters(e) and "alpha" in values(e)),
    ("argument contains", {"argument": ArgumentFilter(contains="alpha")}, lambda e: enters(e) and any(isinstance(v, str) and "alpha" in v for v in values(e))),
    ("argument null text or pointer", {"argument": ArgumentFilter(is_null=True)}, lambda e: enters(e) and any(v is None for v in values(e))),
    ("argument not null", {"argument": ArgumentFilter(name="at", is_null=False)}, lambda e: enters(e) and argument(e, "at") not in (None, "absent")),
    ("argument pointer hex", {"argument": ArgumentFilter(equals="0xFFFFFFFFFFFFF000")}, lambda e: enters(e) and argument(e, "at") == "0xfffffffffffff000"),
    ("argument float", {"argument": ArgumentFilter(name="ratio", equals=0.1)}, lambda e: enters(e) and argument(e, "ratio") == 0.1),
    ("argument float zero", {"argument": ArgumentFilter(name="ratio", equals=0)}, lambda e: enters(e) and argument(e, "ratio") == 0.0),
    ("argument bool", {"argument": ArgumentFilter(name="on", equals=True)}, lambda e: enters(e) and argument(e, "on") is True),
    ("argument enum name", {"argument": ArgumentFilter(equals="BLUE")}, lambda e: enters(e) and argument(e, "colour") == "BLUE"),
    ("argument enum number", {"argument": ArgumentFilter(name="colour", equals=7)}, lambda e: enters(e) and argument(e, "colour") == "BLUE"),
    ("argument enum contains", {"argument": ArgumentFilter(contains="RE")}, lambda e: enters(e) and argument(e, "colour") in ("RED", "GREEN")),
    ("argument beyond six", {"argument": ArgumentFilter(name="p7", equals=-1)}, lambda e: enters(e) and argument(e, "p7") == -1),
    ("argument any of many", {"argument": ArgumentFilter(equals=5), "function": TextFilter(equals="wide")},
     lambda e: enters(e) and e["function"] == "wide" and 5 in values(e)),
    ("argument of none", {"argument": ArgumentFilter(name="size", equals=2)}, lambda _: False),
    ("argument less", {"argument": ArgumentFilter(name="ratio", lt=0.1)},
     lambda e: enters(e) and isinstance(argument(e, "ratio"), float) and argument(e, "ratio") < 0.1),
    ("argument unsigned more", {"argument": ArgumentFilter(name="size", gt=5)}, lambda e: enters(e) and argument(e, "size") == 4294967295),
    ("argument other text", {"argument": ArgumentFilter(name="name", ne="alpha")},
     lambda e: enters(e) and argument(e, "name") not in ("alpha", "absent")),
    ("argument text before", {"argument": ArgumentFilter(name="name", lt="alphabet")}, lambda e: enters(e) and argument(e, "name") == "alpha"),
    ("return between", {"return_value": ReturnFilter(gte=3, lt=250), "function": TextFilter(equals="net::send")},
     lambda e: exits(e) and e["function"] == "net::send" and e.get("returnValue") in (3, 7)),
    ("return pointer less", {"return_value": ReturnFilter(lt="0x8"), "function": TextFilter(equals="net::recv")},
     lambda e: exits(e) and e["function"] == "net::recv" and e.get("returnValue", "none") in (None, "0x3", "0x7")),
    ("argument on exits", {"argument": ArgumentFilter(equals="alpha"), "event_type": "function_exit"}, lambda e: exits(e) and "alpha" in values(e)),
    ("deep argument on exits", {"argument": ArgumentFilter(name="p7", equals=5), "min_duration_ns": 1},
     lambda e: exits(e) and argument(e, "p7") == 5 and (e["durationNs"] or 0) >= 1),
    ("return int", {"return_value": ReturnFilter(equals=7)},
     lambda e: (exits(e) and e.get("returnValue") == 7 and e["returnValue"] is not True) or e.get("returnValue") == "0x7"),
    ("return null", {"return_value": ReturnFilter(is_null=True)}, lambda e: exits(e) and "returnValue" in e and e["returnValue"] is None),
    ("return bool", {"return_value": ReturnFilter(equals=True)}, lambda e: exits(e) and e.get("returnValue") is True),
    ("all at once", {"pid": 77, "time_from": 5_000, "time_to": 60_000, "function": TextFilter(contains="net"),
                      "argument": ArgumentFilter(name="size", equals=5), "min_duration_ns": 1},
     lambda e: e["pid"] == 77 and 5_000 <= e["timestampNs"] <= 60_000 and exits(e) and argument(e, "size") == 5 and (e["durationNs"] or 0) >= 1),
]  # fmt: skip


def orders(events: list[Event], order: str) -> list[Event]:
    number = {event["id"]: int(event["id"].rpartition("-")[2]) for event in events}
    match order:
        case "thread":
            return sorted(events, key=lambda e: (e["threadId"] if e["threadId"] is not None else 1 << 62, e["timestampNs"], number[e["id"]]))
        case "duration":
            return sorted(events, key=lambda e: (-(e["durationNs"] if e.get("durationNs") is not None else -1), e["timestampNs"], number[e["id"]]))
        case _:
            return sorted(events, key=lambda e: (e["timestampNs"], number[e["id"]]))


@pytest.mark.parametrize(("filters", "test"), [(filters, test) for _, filters, test in CASES], ids=[name for name, _, _ in CASES])
def test_filter(session: Session, events: list[Event], filters: dict[str, Any], test: Callable[[Event], bool]) -> None:
    wanted = [event for event in events if test(event)]
    for order in ("time", "thread", "duration"):
        reply = session.ask(**filters, order_by=order, limit=500, verbose=True)
        assert reply.events == orders(wanted, order)
        assert (reply.total_count, reply.has_more, reply.cursor) == (len(wanted), False, None)
    by_cursor, by_offset = (
        pages(session, filters, "time"),
        [event["id"] for offset in range(0, len(wanted), 61) for event in session.ask(**filters, limit=61, offset=offset).events],
    )
    assert by_cursor == by_offset == [event["id"] for event in orders(wanted, "time")]


def test_most_cases_match_something_and_not_everything(events: list[Event]) -> None:
    sizes = {name: sum(map(test, events)) for name, _, test in CASES}
    assert {name for name, size in sizes.items() if size == 0} == {"pause", "function of none", "pid of none", "argument of none"}
    assert {name for name, size in sizes.items() if size == len(events)} == {"everything"}


def pages(session: Session, filters: dict[str, Any], order: str, limit: int = 53) -> list[str]:
    found: list[str] = []
    reply = session.ask(**filters, order_by=order, limit=limit)
    total = reply.total_count
    while True:
        found += [event["id"] for event in reply.events]
        assert reply.total_count == total
        if not reply.has_more:
            return found
        reply = session.ask(**filters, order_by=order, limit=limit, cursor=reply.cursor)


@pytest.mark.parametrize("order", ["time", "thread", "duration"])
def test_cursor_pages_are_the_whole_in_every_order(session: Session, events: list[Event], order: str) -> None:
    assert pages(session, {}, order) == [event["id"] for event in orders(events, order)]


def test_parent_selects_children(session: Session, events: list[Event]) -> None:
    parents = {event["parentEventId"] for event in events} - {None}
    for parent in sorted(parents)[:20]:
        reply = session.ask(parent_event_id=parent, limit=500, verbose=True)
        assert reply.events == [event for event in events if event["parentEventId"] == parent] and reply.events


def test_relative_times_count_from_the_newest_event(session: Session, events: list[Event]) -> None:
    newest = max(event["timestampNs"] for event in events)
    reply = session.ask(time_from="-10us", limit=500)
    assert reply.newest_ns == newest
    assert reply.total_count == sum(event["timestampNs"] >= newest - 10_000 for event in events) > 0


def test_polling_by_after_event_id_sees_every_event_once(session: Session, events: list[Event]) -> None:
    seen: list[str] = []
    last = f"{SESSION}-0"
    while True:
        reply = session.ask(after_event_id=last, limit=31)
        seen += [event["id"] for event in reply.events]
        assert reply.last_event_id is not None
        last = reply.last_event_id
        if not reply.has_more:
            break
    assert sorted(seen) == sorted(event["id"] for event in events) and len(set(seen)) == len(seen)
    assert session.ask(after_event_id=last).events == [] and session.ask(after_event_id=last).last_event_id == last


def test_polling_on_from_any_page_in_time_order_misses_nothing(session: Session, events: list[Event]) -> None:
    for limit in (1, 5, 40, 500):
        first = session.ask(limit=limit)
        rest = session.ask(after_event_id=first.last_event_id, limit=500)
        assert {event["id"] for event in first.events} | {event["id"] for event in rest.events} == {event["id"] for event in events}


@pytest.mark.parametrize("filters", [{}, {"after_event_id": f"{SESSION}-100"}, {"order_by": "thread"}, {"order_by": "duration"}, {"event_type": "stdout"}])
def test_the_ends_of_a_page_are_those_of_shorter_pages(session: Session, filters: dict[str, Any]) -> None:
    everything = {event["id"] for event in session.ask(**filters, limit=500).events}
    polled = {name: value for name, value in filters.items() if name not in ("after_event_id", "order_by")}
    for limit in (40, 500):
        page = run_query(SESSION, session.file, Query(**filters, limit=limit), session.connection, all_ends=True)
        assert page.ends is not None and len(page.ends) == len(page.events)
        assert not page.has_more or page.ends[-1] == (page.cursor, page.last_event_id)
        for count in sorted({1, 2, 7, len(page.events) - 1} & set(range(1, len(page.events)))):
            cursor, last_event_id = page.ends[count - 1]
            assert cursor == session.ask(**filters, limit=count).cursor
            if "order_by" not in filters:
                rest = session.ask(**polled, after_event_id=last_event_id, limit=500)
                assert {event["id"] for event in [*page.events[:count], *rest.events]} >= everything


def test_losses_settled_pids_and_crash(session: Session, events: list[Event]) -> None:
    reply = session.ask(limit=1)
    assert reply.events_dropped == {"lane_full": 6 * 13}
    assert reply.pids == [77, 99]
    assert reply.settled_until_ns == max(event["timestampNs"] for event in events if event["eventType"] != "x")
    assert reply.crash is not None
    assert {key: reply.crash[key] for key in ("signal", "address", "function", "sourceFile", "line", "text")} == {
        "signal": "SIGSEGV", "address": "0x0", "function": "parse", "sourceFile": "/src/parse.c", "line": 4, "text": "SIGSEGV in parse",
    }  # fmt: skip


def test_the_summary_form_has_its_fields_and_no_more(session: Session) -> None:
    enter = session.ask(event_type="function_enter", limit=1).events[0]
    assert set(enter) == {"id", "timestampNs", "eventType", "function", "sourceFile", "line"}
    leave = session.ask(event_type="function_exit", limit=1).events[0]
    assert set(leave) - {"unwound"} == {"id", "timestampNs", "eventType", "function", "sourceFile", "line", "durationNs", "returnType"}
    assert set(session.ask(event_type="stdout", limit=1).events[0]) == {"id", "timestampNs", "eventType", "text"}


def test_times_never_run_backwards_along_a_parent(events: list[Event]) -> None:
    by_id = {event["id"]: event for event in events}
    for event in events:
        parent = by_id.get(event["parentEventId"] or "")
        if parent is not None:
            assert parent["timestampNs"] <= event["timestampNs"] and parent["eventType"] == "function_enter"


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"function": TextFilter(matches="a(b")}, "position 1"),
        ({"function": TextFilter(matches="[z-a]")}, "z-a"),
        ({"function": TextFilter(matches="(?=x)")}, "position"),
        ({"function": TextFilter(matches="*x")}, "position 0"),
        ({"parent_event_id": "other-2026-01-01-00h00-5"}, "parentEventId"),
        ({"after_event_id": "nonsense"}, "afterEventId"),
        ({"argument": ArgumentFilter(name="siz", equals=1)}, "siz"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "WyJhIl0"}, "cursor"),
    ],
)
def test_what_cannot_be_asked_is_told_with_its_value(session: Session, filters: dict[str, Any], named: str) -> None:
    with pytest.raises(StrobeError) as refused:
        session.ask(**filters)
    assert refused.value.code is Code.VALIDATION_ERROR and named in str(refused.value)


def test_a_cursor_fits_its_own_query_only(session: Session) -> None:
    cursor = session.ask(limit=5).cursor
    assert session.ask(limit=9, verbose=True, cursor=cursor).events
    for other in ({"pid": 77}, {"order_by": "thread"}, {"event_type": "stdout"}):
        with pytest.raises(StrobeError) as refused:
            session.ask(cursor=cursor, **other)
        assert refused.value.code is Code.VALIDATION_ERROR


def test_a_cursor_fixes_what_the_first_page_saw(tmp_path: Path) -> None:
    made = Session(tmp_path / "demo.duckdb")
    try:
        everything = [event["id"] for event in made.all()]
        first = made.ask(limit=100)
        header, frames = records(Lane(1, 77, 77, "main").enter(10, 999_999, 4, bytes(16)))
        made.send("records", header, frames)
        made.send("settled", {"tsNs": STARTED_NS + 10**9})
        made.writer.commit()
        assert made.ask(limit=1).events[0]["timestampNs"] == 10
        second = made.ask(limit=500, cursor=first.cursor)
        assert [event["id"] for event in first.events + second.events] == everything
        assert (second.total_count, second.settled_until_ns) == (first.total_count, first.settled_until_ns)
    finally:
        made.file.close()


def test_reopening_changes_no_answer(tmp_path: Path) -> None:
    made = Session(tmp_path / "demo.duckdb")
    before = made.all()
    totals = [made.ask(**filters).total_count for _, filters, _ in CASES]
    made.file.close()
    made.file = SessionFile(tmp_path / "demo.duckdb", record(SESSION))
    made.connection = made.file.reader()
    assert made.all() == before
    assert [made.ask(**filters).total_count for _, filters, _ in CASES] == totals
    made.file.close()


def test_readers_need_no_writer_lock(session: Session) -> None:
    """A reader in a transaction of its own does not stop a commit, and sees none of it."""
    reader: duckdb.DuckDBPyConnection = session.file.reader()
    reader.execute("BEGIN TRANSACTION READ ONLY")
    before = reader.execute("SELECT count(*) FROM raw_calls").fetchall()
    session.file.checkpoint()
    assert reader.execute("SELECT count(*) FROM raw_calls").fetchall() == before
    reader.execute("ROLLBACK")
    reader.close()
