"""Filters on what lies inside of captured values, against the values that pages show."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.store.query import deep_scan
from actors.store.scan_cache import ScanCache
from strobe.errors import Code, StrobeError
from strobe.model.query import ArgumentFilter, ReturnFilter, TextFilter
from tests.bench.store_records import Lane
from tests.harness.store_typed import HEAP, SESSION, TypedSession, order_bytes, order_entry, region, with_image

Event = dict[str, Any]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TypedSession]:
    made = TypedSession(tmp_path_factory.mktemp("deep") / "demo.duckdb")
    choose, ts, span = random.Random(3), 100, 0
    for commit in range(4):
        lane = Lane()
        left: list[tuple[int, int, bytes]] = []
        for _ in range(30):
            ts, span = ts + 10, span + 1
            match choose.choice(["place", "place", "find", "move"]):
                case "place":
                    behind = choose.choice([None, 2.5, 99.0])
                    lane.enter(ts, span, 1, order_entry(choose.randrange(40), choose.choice([-4.0, 0.0, 17.5]), choose.choice([0, 1, 6]), next_total=behind))
                    left.append((span, 1, b""))
                case "find":
                    lane.enter(ts, span, 2, struct.pack("<i", choose.randrange(9)))
                    none = with_image(struct.pack("<Q", 0))
                    some = with_image(struct.pack("<Q", HEAP), region(HEAP, order_bytes(choose.randrange(40), choose.choice([1.0, 2.0]))))
                    left.append((span, 2, choose.choice([none, some])))
                case _:
                    lane.enter(ts, span, 3, struct.pack("<dd", choose.choice([1.5, -2.0]), span))
                    left.append((span, 3, b""))
            if choose.random() < 0.9:
                last, number, payload = left.pop()
                ts += 5
                lane.exit(ts, last, number, choose.choice([0, 7]), payload=payload)
        made.records(lane)
        late = Lane()
        for last, number, payload in reversed(left[: 1 if commit % 2 else len(left)]):
            ts += 5
            late.exit(ts, last, number, 7, payload=payload)
        made.records(late)
    yield made
    made.file.close()


@pytest.fixture(scope="module")
def events(session: TypedSession) -> list[Event]:
    return session.ask(limit=500, verbose=True).events


def enters(event: Event) -> bool:
    return bool(event["eventType"] == "function_enter")


def at(event: Event, name: str, *keys: Any) -> Any:
    """What a page shows at a path; "absent" where there is nothing."""
    found: Any = next((one["value"] for one in event.get("arguments", []) if one["name"] == name), "absent")
    return inside(found, keys)


def inside(found: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        if (isinstance(found, dict) and key in found) or (isinstance(found, list) and isinstance(key, int) and key < len(found)):
            found = found[key]
        else:
            return "absent"
    return found


def total(event: Event) -> float:
    found = at(event, "order", "total")
    return float("nan") if found == "absent" else found


def returned(event: Event, *keys: Any) -> Any:
    return inside(event.get("returnValue", "absent"), keys)


A, R = ArgumentFilter, ReturnFilter
CASES: list[tuple[dict[str, Any], Callable[[Event], bool]]] = [
    ({"argument": A(name="order.total", lt=0)}, lambda e: enters(e) and total(e) < 0),
    ({"argument": A(name="order->total", gte=0)}, lambda e: enters(e) and total(e) >= 0),
    ({"argument": A(name="args[0].total", gt=-4, lte=17.5)}, lambda e: enters(e) and -4 < total(e) <= 17.5),
    ({"argument": A(name="order.total", ne=0)}, lambda e: enters(e) and total(e) in (-4.0, 17.5)),
    ({"argument": A(name="order.id", equals=17)}, lambda e: enters(e) and at(e, "order", "id") == 17),
    ({"argument": A(name="order.items[2]", equals=3)}, lambda e: enters(e) and at(e, "order", "items", 2) == 3),
    ({"argument": A(name="order.next.total", gt=50)}, lambda e: enters(e) and at(e, "order", "next", "total") == 99.0),
    ({"argument": A(name="order.next", is_null=True)}, lambda e: enters(e) and at(e, "order", "next") is None),
    ({"argument": A(name="order.next", is_null=False)}, lambda e: enters(e) and isinstance(at(e, "order", "next"), dict)),
    ({"argument": A(name="order.mode", equals="Test")}, lambda e: enters(e) and at(e, "order", "mode") == "Test"),
    ({"argument": A(name="order.mode", equals=6)}, lambda e: enters(e) and at(e, "order", "mode") == "Read|Write"),
    ({"argument": A(name="order.mode", contains="Wri")}, lambda e: enters(e) and at(e, "order", "mode") == "Read|Write"),
    ({"argument": A(name="mode", equals="Read|Write")}, lambda e: enters(e) and at(e, "mode") == "Read|Write"),
    ({"argument": A(name="order", equals=hex(HEAP))}, lambda e: enters(e) and at(e, "order") != "absent"),
    ({"argument": A(name="to.x", equals=1.5)}, lambda e: enters(e) and at(e, "to", "x") == 1.5),
    ({"argument": A(name="to.y", gt=20, lt=60)}, lambda e: enters(e) and isinstance(at(e, "to", "y"), float) and 20 < at(e, "to", "y") < 60),
    ({"argument": A(name="order.total", lt=0), "event_type": "function_exit"}, lambda e: not enters(e) and total(e) < 0),
    ({"argument": A(name="order.total", lt=0), "min_duration_ns": 10}, lambda e: not enters(e) and total(e) < 0 and (e["durationNs"] or 0) >= 10),
    ({"argument": A(name="order.total", lt=0), "time_from": 500, "time_to": 1500}, lambda e: enters(e) and total(e) < 0 and 500 <= e["timestampNs"] <= 1500),
    ({"argument": A(name="order.total", lt=0), "function": TextFilter(contains="la")}, lambda e: enters(e) and total(e) < 0),
    ({"return_value": R(name="ret.total", equals=2)}, lambda e: returned(e, "total") == 2.0),
    ({"return_value": R(name="total", gt=1)}, lambda e: returned(e, "total") == 2.0),
    ({"return_value": R(name="ret.items[0]", equals=1)}, lambda e: returned(e, "items", 0) == 1),
    ({"return_value": R(is_null=True)}, lambda e: not enters(e) and "returnValue" in e and e["returnValue"] is None),
    ({"return_value": R(gt=3, lt=9)}, lambda e: returned(e) == 7),
    ({"return_value": R(name="ret.total", equals=2), "argument": A(name="id", gt=3)}, lambda e: returned(e, "total") == 2.0 and at(e, "id") > 3),
]  # fmt: skip


@pytest.mark.parametrize(("filters", "test"), CASES, ids=[str(index) for index in range(len(CASES))])
def test_filter(session: TypedSession, events: list[Event], filters: dict[str, Any], test: Callable[[Event], bool]) -> None:
    wanted = [event for event in events if test(event)]
    assert 0 < len(wanted) < len(events)
    reply = session.ask(**filters, limit=500, verbose=True)
    assert reply.events == wanted
    assert (reply.total_count, reply.has_more, reply.warnings) == (len(wanted), False, [])
    found: list[str] = []
    page = session.ask(**filters, limit=7)
    while True:
        found += [event["id"] for event in page.events]
        if not page.has_more:
            break
        page = session.ask(**filters, limit=7, cursor=page.cursor)
    assert found == [event["id"] for event in wanted]
    calls = session.ask(**filters, view="callTree", limit=500)
    assert calls.total_count == len(calls.events) <= len(wanted) or "time_from" in filters


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"argument": A(name="order.totl", equals=1)}, ["totl", "Order", "total"]),
        ({"argument": A(name="order.next.itmes[0]", equals=1)}, ["itmes", "items"]),
        ({"argument": A(name="order.id.x", equals=1)}, ["member 'x'", "int"]),
        ({"argument": A(name="ordr.total", equals=1)}, ["ordr", "order"]),
        ({"argument": A(name="mod", equals=1)}, ["mod", "mode"]),
        ({"argument": A(name="order.total", equals=1), "function": TextFilter(equals="move")}, ["order", "to"]),
        ({"argument": A(name="order..total", equals=1)}, ["offset 6"]),
        ({"argument": A(name="order.total + 1", equals=1)}, ["more than a path"]),
        ({"argument": A(name="ret.total", equals=1)}, ["returnValue"]),
        ({"return_value": R(name="ret.totale", equals=1)}, ["totale", "total"]),
        ({"return_value": R(name="args[0]", equals=1)}, ["argument"]),
    ],
)
def test_a_path_that_nothing_has_is_an_error(session: TypedSession, filters: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(StrobeError) as refused:
        session.ask(**filters)
    assert refused.value.code is Code.VALIDATION_ERROR
    text = f"{refused.value} {refused.value.to_wire()['nextStep']}"
    assert all(one in text for one in said), text


def test_polls_compare_only_what_is_new(session: TypedSession, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    plain = deep_scan.DeepScan._meeting

    def counted(self: Any, payloads: Any, *others: Any) -> Any:
        compared.append(payloads.size)
        return plain(self, payloads, *others)

    monkeypatch.setattr(deep_scan.DeepScan, "_meeting", counted)
    wanted = [event["id"] for event in events if enters(event) and at(event, "order", "id") in range(5, 30)]
    last, seen = f"{SESSION}-0", []
    for _ in range(100):
        reply = session.ask(argument=A(name="order.id", gte=5, lt=30), after_event_id=last, limit=5)
        seen += [event["id"] for event in reply.events]
        if not reply.has_more:
            break
        assert reply.last_event_id is not None
        last = reply.last_event_id
    assert sorted(seen) == sorted(wanted)
    assert sum(compared) == sum(1 for event in events if enters(event) and event["function"] == "place")


def test_what_takes_too_long_is_said_and_goes_on(session: TypedSession, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_scan, "SCAN_S", 0.0)
    monkeypatch.setattr(deep_scan, "PLAIN_AT_ONCE", 10)
    wanted = [event["id"] for event in events if enters(event) and at(event, "order", "id") not in ("absent", 3)]
    shown: list[str] = []
    asked = 0
    while asked < 100:
        asked += 1
        reply = session.ask(argument=A(name="order.id", ne=3), limit=500)
        found = [event["id"] for event in reply.events]
        assert found[: len(shown)] == shown and reply.total_count == len(found)
        shown = found
        if not reply.warnings:
            break
        assert reply.has_more and "timeFrom" in reply.warnings[0] and reply.cursor is None
        polled = session.ask(after_event_id=reply.last_event_id, argument=A(name="order.id", ne=3), limit=500)
        assert not {event["id"] for event in polled.events} & set(found)
    assert shown == wanted and asked > 2


def test_calls_compared_at_once_and_one_by_one_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over images with bytes changed anywhere: sizes, addresses, descriptors, values."""
    made = TypedSession(tmp_path / "demo.duckdb")
    choose = random.Random(11)
    lane = Lane()
    for span in range(1, 1500):
        address = HEAP + 8 * choose.randrange(4)
        total, behind = choose.choice([-4.0, 2.0]), choose.choice([None, 9.0])
        payload = bytearray(order_entry(choose.randrange(5), total, choose.randrange(4), next_total=behind, address=address))
        if choose.random() < 0.2:  # two regions that touch, the first ends within the object
            whole = order_bytes(3, -4.0, mode=2)
            cut = choose.randrange(1, 48)
            payload = bytearray(with_image(struct.pack("<QI", HEAP, 1), region(HEAP, whole[:cut]), region(HEAP + cut, whole[cut:])))
        for _ in range(choose.choice([0, 0, 1, 2, 8])):
            payload[choose.randrange(len(payload))] = choose.choice([0, 1, 8, 48, 255, choose.randrange(256)])
        lane.enter(span * 10, span, 1, bytes(payload[: choose.choice([len(payload)] * 9 + [choose.randrange(len(payload))])]))
    made.records(lane)
    filters = [
        A(name="order.total", lt=0), A(name="order.id", ne=3), A(name="order.next.total", gt=1), A(name="order.items[1]", equals=2),
        A(name="order.mode", equals="Test"), A(name="order.next", is_null=True), A(name="order.next", ne="0x0"), A(name="order.next.id", gte=1000),
    ]  # fmt: skip
    at_once = [[event["id"] for event in made.ask(argument=one, limit=500).events] for one in filters]
    totals = [made.ask(argument=one).total_count for one in filters]
    made.file.scans = ScanCache()
    monkeypatch.setattr(deep_scan, "plain_path", lambda *_: None)
    assert [[event["id"] for event in made.ask(argument=one, limit=500).events] for one in filters] == at_once
    assert [made.ask(argument=one).total_count for one in filters] == totals and min(totals) > 0
    made.file.close()
