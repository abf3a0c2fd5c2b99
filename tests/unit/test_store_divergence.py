"""Two sessions compared: any one value that is changed is found, whatever the parts that are read; and what counts as the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.store.divergence import stream
from actors.store.divergence.run import run_compare
from actors.store.divergence.same import Numbers, differences
from strobe.model.query import TextFilter
from strobe.protocol.compare import CompareReply, CompareSessions
from tests.harness.store_session import Session

NUMBERS = Numbers({4000: 1, 4001: 2}, {5000: 1, 5001: 2})


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    folder = tmp_path_factory.mktemp("divergence")
    made = Session(folder / "a.duckdb"), Session(folder / "b.duckdb")
    yield made
    for one in made:
        one.file.close()


def compare(pair: tuple[Session, Session], within_s: float = 60, **more: Any) -> CompareReply:
    ask = CompareSessions(session_id="a-1", against="b-1", **more)
    return run_compare(ask, pair[0].file, pair[1].file, (pair[0].file.reader(), pair[1].file.reader()), within_s)


@pytest.mark.parametrize("events", [13, 131_072])
def test_the_same_events_do_not_differ(pair: tuple[Session, Session], events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "EVENTS_A_PART", events)
    reply = compare(pair)
    count = pair[0].connection.execute("SELECT count(*) FROM raw_calls").fetchall()[0][0]
    assert reply.verdict == "same" and reply.divergences == [] and reply.compared["threads"] == 3
    assert count - 30 <= reply.compared["calls"] <= count, reply  # half of the events: some calls were never left


@pytest.mark.parametrize("events", [29, 131_072])
def test_any_changed_number_is_found(pair: tuple[Session, Session], events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls drawn at random have another argument in one session: the first difference of their thread is theirs."""
    monkeypatch.setattr(stream, "EVENTS_A_PART", events)
    run = pair[1].file._connection.execute  # another process's commit would do the same
    changeable = [row[0] for row in run("SELECT n FROM raw_calls WHERE hook IN (1, 4) AND a1 IS NOT NULL ORDER BY n").fetchall()]
    for n in random.Random(events).sample(changeable, 12):
        run(f"UPDATE raw_calls SET a1 = a1 + 1 WHERE n = {n}")
        [first] = compare(pair).divergences
        assert first["kind"] == "arguments" and first["here"]["id"] == f"a-1-{n}" and first["there"]["id"] == f"b-1-{n}", first
        [one] = first["differs"]
        assert one["path"] in ("size", "p1") and one["there"] == one["here"] + 1
        run(f"UPDATE raw_calls SET a1 = a1 - 1 WHERE n = {n}")
    assert compare(pair).verdict == "same"


def test_ignored_is_not_compared(pair: tuple[Session, Session]) -> None:
    run = pair[1].file._connection.execute
    [(n,)] = run("SELECT min(n) FROM raw_calls WHERE hook = 1").fetchall()
    run(f"UPDATE raw_calls SET a1 = a1 + 1 WHERE n = {n}")
    try:
        assert compare(pair, ignored=["net::send(size)"]).verdict == "same"
        assert compare(pair, ignored=["net::send"]).verdict == "same"
        assert compare(pair, ignored=["net::send(name)"]).verdict == "differs"
        assert compare(pair, function=TextFilter(contains="recv")).verdict == "same"
    finally:
        run(f"UPDATE raw_calls SET a1 = a1 - 1 WHERE n = {n}")


def test_no_time_is_no_answer(pair: tuple[Session, Session]) -> None:
    reply = compare(pair, within_s=0)
    assert reply.verdict == "unfinished" and any("Narrow" in note for note in reply.notes)


def test_beginnings_that_were_evicted_are_not_compared(tmp_path: Path, pair: tuple[Session, Session]) -> None:
    short = Session(tmp_path / "c.duckdb", events_max=100)
    reply = compare((pair[0], short))
    short.file.close()
    assert reply.verdict == "notComparable" and "evicted" in reply.notes[0]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("0x7ffd12345678", "0x55aa00001111"),
        ("<Item at 0x7ffd12345678>", "<Item at 0x7ffd99999999>"),
        ({"@": "0x1", "id": 3}, {"@": "0x2", "id": 3}),
        (0x7F00_0000_1000, 0x7F12_0000_1000),
        (4001, 5001),
        ([1, "<not captured>"], [1, {"x": 2}]),
        ({"a": "<cut>"}, {"a": [1]}),
    ],
)
def test_what_differs_by_itself(here: Any, there: Any) -> None:
    assert differences(here, there, NUMBERS) == []


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (4001, 5000, [("", 4001, 5000)]),
        (None, "0x55aa00001111", [("", None, "0x55aa00001111")]),
        (1, True, [("", 1, True)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [("a.b[1]", 2, 3)]),
        ([1, 2], [1], [(".length", 2, 1)]),
        ({"a": 1}, {"b": 1}, [("a", 1, "<absent>"), ("b", "<absent>", 1)]),
        ([0] * 50, [1] * 50, [(f"[{number}]", 0, 1) for number in range(10)]),
    ],
)
def test_what_differs(here: Any, there: Any, expected: list[Any]) -> None:
    assert differences(here, there, NUMBERS) == expected
