"""What the store keeps: the newest trace events of a session, never fewer of anything else; retained sessions for their days and bytes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.protocol.store import EndSession, ListSessions
from tests.actor.test_store import ask_query, create, feed
from tests.bench.store_records import STARTED_NS, Traffic
from tests.harness.node import environment, node, run, until

DAY_NS = 86_400 * 10**9
EVENTS_MAX = 20_000
BATCH = 2_000  # calls; twice as many events


def test_the_newest_trace_events_stay_and_all_else_does(tmp_path: Path) -> None:
    batches = 30

    def send(session_id: str) -> None:
        with feed(session_id) as sender:
            sender.hooks()
            traffic = Traffic()
            for number in range(batches):
                header, frames = traffic.batch(BATCH)
                sender.send("records", header, frames)
                segment = {"stream": 1, "offset": 4 * number, "bytes": 4, "tsNs": STARTED_NS + number, "approximate": False, "span": None}
                sender.send("output", {"segments": [segment]}, [b"%03d\n" % number])
                events = [{"type": kind, "tsNs": STARTED_NS + number, "pid": 77, "tid": 77, "text": str(number)} for kind in ("crash", "variable_snapshot")]
                sender.send("event", {"events": events})
                if number % 5 == 0:
                    sender.flush()
            sender.flush()

    async def check(client: Client, session_id: str) -> None:
        for kind, text in (("stdout", "%03d\n"), ("crash", "%d"), ("variable_snapshot", "%d")):
            found = await ask_query(client, session_id, event_type=kind, limit=500)
            assert [event["text"] for event in found.events] == [text % number for number in range(batches)], kind
        newest = await ask_query(client, session_id, limit=1)
        enters = (await ask_query(client, session_id, event_type="function_enter", limit=1)).total_count
        exits = (await ask_query(client, session_id, event_type="function_exit", limit=1)).total_count
        assert EVENTS_MAX * 0.8 < enters + exits <= EVENTS_MAX
        assert newest.events_dropped == {"evicted": 2 * BATCH * batches - enters - exits}, "each one is kept or counted"
        assert newest.total_count == enters + exits + 3 * batches

    async def story() -> str:
        async with node(tmp_path, roles=("store",)) as client:
            session_id: str = (await client.ask("store", create(events_max=EVENTS_MAX))).session_id
            await asyncio.to_thread(send, session_id)
            await check(client, session_id)
            return session_id

    async def again(session_id: str) -> None:
        async with node(tmp_path, roles=("store",)) as client:
            await check(client, session_id)

    run(again(run(story())))


def test_seven_days_and_then_the_oldest_retained_first(tmp_path: Path) -> None:
    """Real sessions that say they ended some days ago."""
    days = {"eight": 8.0, "six": 6.0, "five": 5.0, "four": 4.0, "plain": 6.5}

    def send(session_id: str, ended_at: int) -> None:
        with feed(session_id) as sender:
            segment = {"stream": 1, "offset": 0, "bytes": 600_000, "tsNs": STARTED_NS, "approximate": False, "span": None}
            sender.send("output", {"segments": [segment]}, [os.urandom(300_000).hex().encode()])
            sender.send("session", {"state": "exited", "endedAt": ended_at})
            sender.flush()

    async def ids(client: Client) -> set[str]:
        return {record.session_id for record in (await client.ask("store", ListSessions())).sessions}

    async def make() -> dict[str, str]:
        made = {}
        async with node(tmp_path, roles=("store",)) as client:
            for name, ago in days.items():
                made[name] = (await client.ask("store", create(f"/bin/{name}"))).session_id
                await asyncio.to_thread(send, made[name], time.time_ns() - int(ago * DAY_NS))
                if name != "plain":
                    await client.ask("store", EndSession(session_id=made[name], state="exited", retain=True))
        return made

    async def left(wanted: set[str]) -> None:
        async with node(tmp_path, roles=("store",)) as client:

            async def so() -> bool:
                return await ids(client) == wanted

            await until(so, within_s=30)
            assert {file.name.partition(".duckdb")[0] for file in (tmp_path / "sessions").glob("*.duckdb*")} == wanted

    made = run(make())
    run(left({made[name] for name in ("six", "five", "four", "plain")}))
    sizes = [file.stat().st_size for file in (tmp_path / "sessions").glob("*.duckdb*")]
    (tmp_path / "settings.json").write_text(json.dumps({"retention.maxBytes": sum(sizes) - min(sizes) // 2}))
    run(left({made[name] for name in ("five", "four", "plain")}))
    (tmp_path / "settings.json").write_text(json.dumps({"retention.maxBytes": 1 << 20}))
    run(left({made["plain"]}))  # one that was not retained is its client's until it is stopped, or its days are over


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", mount], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount file systems")
def test_a_read_only_home_is_named_by_every_command(read_only: Path) -> None:
    with environment(read_only / "home", None, {}):
        for command in ("strobe.ctl doctor", "strobe.ctl status", "strobe.cli node", "strobe.cli node --foreground", "strobe.cli mcp"):
            done = subprocess.run([sys.executable, "-m", *command.split()], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
            shown = done.stdout + done.stderr
            assert done.returncode not in (0, None), command
            assert "Traceback" not in shown, (command, shown)
            assert "Read-only file system" in shown and str(read_only) in shown and "STROBE_HOME" in shown, (command, shown)
