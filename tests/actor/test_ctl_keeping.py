"""strobe-ctl's purge, export and top against a real store, fed through the real data stream."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from strobe import paths
from strobe.client import Client
from strobe.protocol.store import EndSession
from strobe.supervisor.start import ensure_node, node_pid
from tests.actor.test_ctl import as_json, ctl
from tests.actor.test_store import Feed, create, feed, fill
from tests.bench.store_records import Traffic
from tests.harness.node import all_ready, assert_nothing_left, environment, run, stop


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("keeping")
    with environment(made, ("store",), {}):
        ensure_node()
        try:
            run(_ready())
            yield made
        finally:
            run(stop(made))
        assert_nothing_left(made)


async def _ready() -> None:
    async with Client() as client:
        await all_ready(client)


def session(name: str, *, ended: bool = True, retained: bool = False) -> str:
    """A new session of five events; ended, it is as after the target's exit, or stopped with retain."""

    async def make() -> str:
        async with Client() as client:
            session_id: str = (await client.ask("store", create(f"/bin/{name}"))).session_id
            await asyncio.to_thread(fill, session_id)
            if retained:
                await client.ask("store", EndSession(session_id=session_id, state="exited", retain=True))
            return session_id

    session_id = run(make())
    if ended and not retained:
        with feed(session_id) as sender:
            sender.send("session", {"state": "exited", "endedAt": time.time_ns()})
            sender.flush()
    return session_id


def ids() -> set[str]:
    return {row["sessionId"] for row in as_json("sessions")}


def test_purge_deletes_what_is_named_and_never_what_runs(home: Path) -> None:
    gone, live = session("gone"), session("live", ended=False)
    (paths.target_folder(gone) / "launch").write_bytes(b"SECRET=1")
    shown = as_json("purge", gone, "--dry-run")
    assert [row["sessionId"] for row in shown["purged"]] == [gone] and shown["dryRun"] and gone in ids()
    result = ctl("purge", gone, live, "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1, "a running session was named"
    assert [row["sessionId"] for row in told["purged"]] == [gone]
    assert told["freedBytes"] == told["purged"][0]["bytes"] > 0
    assert [row["sessionId"] for row in told["kept"]] == [live] and "running" in told["kept"][0]["reason"]
    assert gone not in ids() and live in ids()
    assert not list((home / "sessions").glob(f"{gone}*")) and not (home / "targets" / gone).exists()
    assert as_json("query", live)["totalCount"] == 5


def test_purge_by_age_and_by_retention(home: Path) -> None:
    plain, retained, live = session("plain"), session("retained", retained=True), session("live2", ended=False)
    assert as_json("purge", "--older-than", "1h")["purged"] == []
    told = as_json("purge", "--older-than", "0s", "--retained")
    assert [row["sessionId"] for row in told["purged"]] == [retained]
    assert {plain, live} <= ids()
    text = ctl("purge", "--older-than", "0s").stdout
    assert plain in text and "Freed " in text and live not in text
    assert plain not in ids() and live in ids()
    assert ctl("purge", "--older-than", "0s").stdout == "Nothing to delete.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ((), "VALIDATION_ERROR", "Nothing says which"),
        (("x", "--retained"), "VALIDATION_ERROR", "not by both"),
        (("--older-than", "soon"), "VALIDATION_ERROR", "'soon'"),
        (("--older-than", "-1d"), "VALIDATION_ERROR", "'-1d'"),
        (("no-such-session",), "SESSION_NOT_FOUND", "no-such-session"),
        (("../../etc/passwd",), "SESSION_NOT_FOUND", "nothing was deleted"),
    ],
)
def test_purge_refuses(home: Path, arguments: tuple[str, ...], code: str, named: str) -> None:
    before = ids()
    result = ctl("purge", *arguments, "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == code and named in error["what"] and error["nextStep"]
    assert ids() == before


def test_purge_names_one_unknown_and_deletes_none(home: Path) -> None:
    known = session("known")
    assert ctl("purge", known, "unknown").exit_code == 1
    assert known in ids()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_export_is_complete_and_in_time_order(home: Path, tmp_path: Path) -> None:
    session_id = session("long", ended=False)
    with feed(session_id) as sender:
        traffic = Traffic()
        for _ in range(3):
            header, frames = traffic.batch(1000)
            sender.send("records", header, frames)
        sender.flush()
    out = tmp_path / "out.jsonl"
    told = as_json("export", session_id, "--to", str(out))
    events = lines(out)
    total = as_json("query", session_id, "--limit", "1")["totalCount"]
    assert told["events"] == len(events) == total == 6005 and told["bytes"] == out.stat().st_size
    assert out.stat().st_mode & 0o777 == 0o600
    times = [event["timestampNs"] for event in events]
    assert times == sorted(times)
    assert len({event["id"] for event in events}) == total
    inner = next(event for event in events if event.get("function") == "inner")
    assert inner["arguments"][0] == {"name": "count", "type": "int", "value": 7}
    assert [event["text"] for event in events if event["eventType"] == "stdout"] == ["hey"]
    assert [json.loads(line) for line in ctl("export", session_id).stdout.splitlines()] == events
    again = ctl("export", session_id, "--to", str(out))
    assert again.exit_code == 1 and "File exists" in again.stderr and lines(out) == events


def test_export_of_one_moment_while_the_session_records(home: Path, tmp_path: Path) -> None:
    session_id = session("busy", ended=False)
    feeder = subprocess.Popen([sys.executable, "-c", FEEDER, session_id], env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert feeder.stdout is not None and feeder.stdout.readline() == b"sent\n"
        for form in ("jsonl", "duckdb", "parquet"):
            out = tmp_path / f"copy.{form}"
            told = as_json("export", session_id, "--to", str(out), "--format", form)
            assert told["events"] == _count(out, form) > 2000, form
            assert out.stat().st_mode & 0o777 == 0o600
        assert not list(tmp_path.glob("*.wal"))
        assert feeder.poll() is None, "it recorded all the time"
    finally:
        feeder.communicate(b"\n", timeout=30)
    assert feeder.returncode == 0


FEEDER = """
import select, sys, time
from tests.actor.test_store import Feed
from tests.bench.store_records import Traffic
feed = Feed(sys.argv[1])
traffic = Traffic()
for number in range(2000):
    header, frames = traffic.batch(1000)
    feed.send("records", header, frames)
    if number == 3:
        feed.flush()
        print("sent", flush=True)
    if select.select([sys.stdin], [], [], 0.02)[0]:
        break
feed.flush()
feed.producer.close()
"""


def _count(path: Path, form: str) -> int:
    if form == "jsonl":
        return len({event["id"] for event in lines(path)})
    if form == "parquet":
        with duckdb.connect() as connection:
            rows = connection.execute("SELECT n, ts FROM read_parquet(?)", [str(path)]).fetchall()
        assert [ts for _, ts in rows] == sorted(ts for _, ts in rows)
        return len({n for n, _ in rows})
    with duckdb.connect(str(path), read_only=True) as connection:
        return int(connection.execute("SELECT count(*) FROM events_v").fetchall()[0][0])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--format", "xml"), "'xml'"),
        (("--format", "parquet"), "needs a file"),
        (("--to", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--format", "duckdb", "--to", "/nowhere/at/all"), "/nowhere/at/all"),
    ],
)
def test_export_refuses(home: Path, arguments: tuple[str, ...], named: str) -> None:
    session_id = session("refused")
    result = ctl("export", session_id, *arguments, "--json")
    assert result.exit_code == 1
    assert named in json.loads(result.stdout)["error"]["what"]
    as_json("purge", session_id)


def test_export_of_an_unknown_session_leaves_no_file(home: Path, tmp_path: Path) -> None:
    for form in ("jsonl", "parquet", "duckdb"):
        result = ctl("export", "no-such-session", "--to", str(tmp_path / "x"), "--format", form)
        assert result.exit_code == 1 and result.stderr.startswith("SESSION_NOT_FOUND")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_enough_ends_an_export(home: Path) -> None:
    session_id = session("piped", ended=False)
    with feed(session_id) as sender:
        header, frames = Traffic().batch(2000)
        sender.send("records", header, frames)
        sender.flush()
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" -m strobe.ctl export "$1" | head -1', sys.executable, session_id], capture_output=True, text=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == 1 and done.stderr == "" and done.returncode == 141


def test_top_shows_what_is_busy(home: Path) -> None:
    session_id = session("hot", ended=False)
    sender = Feed(session_id)
    try:
        top = subprocess.Popen([sys.executable, "-m", "strobe.ctl", "top", "--once", "--json", "--interval", "3"], stdout=subprocess.PIPE, env=os.environ)
        traffic, deadline = Traffic(), time.monotonic() + 60
        while top.poll() is None:
            assert time.monotonic() < deadline
            header, frames = traffic.batch(500)
            sender.send("records", header, frames)
            sender.flush()
        assert top.stdout is not None and top.returncode == 0
        found = json.loads(top.stdout.read())
    finally:
        sender.producer.close()
    assert found["sessions"][0]["sessionId"] == session_id and found["sessions"][0]["eventsPerSecond"] > 0
    assert found["functions"][0]["sessionId"] == session_id and found["functions"][0]["callsPerSecond"] > 0
    assert {row["function"] for row in found["functions"] if row["sessionId"] == session_id} == {"outer", "inner"}
    actors = {row["name"]: row for row in found["actors"]}
    assert {"supervisor", "store"} <= set(actors)
    assert actors["store"]["cpuPercent"] > 0 and actors["supervisor"]["residentBytes"] > 1 << 20
    shown = ctl("top", "--once", "--interval", "0.1").stdout
    assert "calls/s" in shown and "inner" in shown and "store" in shown
    assert ctl("top", "--interval", "0").exit_code == 1


def test_export_and_purge_start_a_node_where_none_runs(tmp_path: Path) -> None:
    with environment(tmp_path, ("store",), {}):
        ensure_node()
        try:
            run(_ready())
            session_id = session("slept", retained=True)
            run(stop(tmp_path))
            assert node_pid() is None
            assert len(ctl("export", session_id).stdout.splitlines()) == 5
            run(stop(tmp_path))
            assert [row["sessionId"] for row in as_json("purge", "--older-than", "0s")["purged"]] == [session_id]
        finally:
            run(stop(tmp_path))
        assert_nothing_left(tmp_path)
