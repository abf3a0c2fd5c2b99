"""hotspots, callTree and summary, against sums over the plain events of the same session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from strobe.model.query import TextFilter
from tests.harness.store_session import Event, Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    made = Session(tmp_path_factory.mktemp("views") / "demo.duckdb")
    yield made
    made.file.close()


class Calls:
    """The session's calls, put together from its events."""

    def __init__(self, events: list[Event]) -> None:
        self.enters = {event["id"]: event for event in events if event["eventType"] == "function_enter"}
        self.took = {event["parentEventId"]: event["durationNs"] for event in events if event["eventType"] == "function_exit"}

    def inside(self, call: str) -> int:
        return sum(self.took.get(name, 0) for name, event in self.enters.items() if event["parentEventId"] == call)

    def hotspots(self, chosen: list[str]) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = defaultdict(lambda: {"calls": 0, "totalNs": 0, "selfNs": 0, "maxNs": 0})
        for name in chosen:
            row, took = found[self.enters[name]["function"]], self.took.get(name)
            row["calls"] += 1
            if took is not None:
                row["totalNs"] += took
                row["maxNs"] = max(row["maxNs"], took)
            row["selfNs"] += (took or 0) - self.inside(name)
        return {name: {**row, "selfNs": max(row["selfNs"], 0)} for name, row in found.items()}


CHOICES: list[tuple[dict[str, Any], Any]] = [
    ({}, lambda e: True),
    ({"function": TextFilter(contains="net")}, lambda e: "net" in e["function"]),
    ({"thread_id": 78}, lambda e: e["threadId"] == 78),
    ({"time_from": 20_000, "time_to": 50_000}, lambda e: 20_000 <= e["timestampNs"] <= 50_000),
]


@pytest.mark.parametrize(("filters", "test"), CHOICES)
def test_hotspots(session: Session, filters: dict[str, Any], test: Any) -> None:
    calls = Calls(session.all())
    wanted = calls.hotspots([name for name, event in calls.enters.items() if test(event)])
    reply = session.ask(view="hotspots", **filters)
    assert {row["function"]: {name: row[name] for name in ("calls", "totalNs", "selfNs", "maxNs")} for row in reply.events} == wanted
    assert [row["totalNs"] for row in reply.events] == sorted((row["totalNs"] for row in reply.events), reverse=True)
    assert reply.total_count == len(wanted) > 0


@pytest.mark.parametrize(("filters", "test"), CHOICES)
def test_call_tree(session: Session, filters: dict[str, Any], test: Any) -> None:
    calls = Calls(session.all())
    chosen = {name for name, event in calls.enters.items() if test(event)}
    reply = session.ask(view="callTree", limit=500, **filters)
    assert {row["id"] for row in reply.events} == chosen and reply.total_count == len(chosen)
    path: list[str] = []
    for row in reply.events:
        del path[row["depth"] :]
        parent = calls.enters[row["id"]]["parentEventId"]
        assert (path[-1] if path else None) == (parent if parent in chosen else None)
        assert row.get("durationNs") == calls.took.get(row["id"])
        path.append(row["id"])


def test_call_tree_pages(session: Session) -> None:
    whole = session.ask(view="callTree", limit=500)
    first, rest = session.ask(view="callTree", limit=20), session.ask(view="callTree", limit=500, offset=20)
    assert first.has_more and not rest.has_more
    assert {row["id"] for row in first.events} | {row["id"] for row in rest.events} == {row["id"] for row in whole.events}
    assert len(first.events) + len(rest.events) == whole.total_count


def test_summary(session: Session) -> None:
    events = session.all()
    reply = session.ask(view="summary")
    kinds = {row["eventType"]: (row["count"], row["firstNs"], row["lastNs"]) for row in reply.events if "eventType" in row}
    for kind in {event["eventType"] for event in events}:
        times = [event["timestampNs"] for event in events if event["eventType"] == kind]
        assert kinds[kind] == (len(times), min(times), max(times))
    assert len(kinds) == len({event["eventType"] for event in events}) and reply.total_count == len(events)
    functions = {row["function"]: row["count"] for row in reply.events if "function" in row}
    entered = [event["function"] for event in events if event["eventType"] == "function_enter"]
    assert functions == {name: entered.count(name) for name in set(entered)}
