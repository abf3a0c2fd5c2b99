"""The store as a process: under the real supervisor, fed through the real data stream."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strobe import paths
from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.model.pending import PendingChange, PendingSet
from strobe.model.query import ArgumentFilter, Query, TextFilter
from strobe.model.session import SessionState
from strobe.protocol.store import (
    CreateSession,
    DeleteSession,
    Drain,
    EndSession,
    ListSessions,
    Pending,
    QueryReply,
    RunQuery,
    StoreStatus,
)
from strobe.protocol.supervisor import OpenSession
from strobe.runtime.stream import StreamProducer
from tests.bench.store_records import STARTED_NS, Lane, Traffic, records, two_functions
from tests.harness.node import node, run, status, until


def create(binary: str = "/bin/demo", client: str = "client", **changes: Any) -> CreateSession:
    return CreateSession(
        client_id=client, binary_path=binary, command=[binary], cwd="/tmp", project_root="/tmp",
        started_at=time.time_ns(), started_monotonic_ns=STARTED_NS, **changes,
    )  # fmt: skip


class Feed:
    """A session's sending end."""

    def __init__(self, session_id: str) -> None:
        self.producer = StreamProducer(paths.data_endpoint(), session_id)
        assert self.producer.hello(10_000)

    def send(self, kind: str, header: dict[str, Any], frames: list[bytes] | None = None) -> None:
        deadline = time.monotonic() + 20
        while self.producer.send(kind, header, frames or []) is None:
            assert time.monotonic() < deadline
            self.producer.poll(100)

    def hooks(self) -> None:
        self.send("hooks", {"hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]})

    def records(self, *lanes: Lane) -> None:
        header, frames = records(*lanes)
        self.send("records", header, frames)

    def flush(self) -> None:
        assert self.producer.flush(20_000)


@contextmanager
def feed(session_id: str) -> Iterator[Feed]:
    made = Feed(session_id)
    try:
        yield made
    finally:
        made.producer.close()


async def ask_query(client: Client, session_id: str, **filters: Any) -> QueryReply:
    reply: QueryReply = await client.ask("store", RunQuery(session_id=session_id, query=Query(**filters)), deadline_s=15)
    return reply


def test_a_session_from_birth_to_deletion(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            session_id = (await client.ask("store", create())).session_id
            assert session_id.startswith("demo-")
            await asyncio.to_thread(fill, session_id)

            everything = await ask_query(client, session_id)
            assert everything.total_count == 5 and not everything.has_more
            assert [event["eventType"] for event in everything.events] == ["function_enter", "function_enter", "stdout", "function_exit", "function_exit"]
            assert everything.settled_until_ns == 1000
            inner = await ask_query(client, session_id, function=TextFilter(equals="inner"), argument=ArgumentFilter(name="count", equals=7), verbose=True)
            assert inner.total_count == 1
            assert inner.events[0]["arguments"] == [{"name": "count", "type": "int", "value": 7}, {"name": "flags", "type": "int", "value": -8}]

            listed = (await client.ask("store", ListSessions(client_id="client"))).sessions
            assert [record.session_id for record in listed] == [session_id] and listed[0].pid == 4711
            ended = await client.ask("store", EndSession(session_id=session_id, state="exited", retain=True))
            assert ended.events_collected == 5
            assert (await ask_query(client, session_id)).total_count == 5
            await client.ask("store", DeleteSession(session_id=session_id))
            assert list((tmp_path / "sessions").glob("*.duckdb*")) == []
            with pytest.raises(StrobeError) as refused:
                await ask_query(client, session_id)
            assert refused.value.code is Code.SESSION_NOT_FOUND

    run(story())


def fill(session_id: str) -> None:
    with feed(session_id) as sender:
        sender.hooks()
        sender.send("session", {"pid": 4711})
        sender.records(Lane().enter(100, 1, 1, struct.pack("<ii", 5, -6)).enter(200, 2, 2, struct.pack("<ii", 7, -8), parent=1).exit(300, 2, 2, 42))
        segment = {"stream": 1, "offset": 0, "bytes": 3, "tsNs": STARTED_NS + 250, "approximate": False, "span": None}
        sender.send("output", {"segments": [segment]}, [b"hey"])
        sender.records(Lane().exit(400, 1, 1, 1))
        sender.send("settled", {"tsNs": STARTED_NS + 1000})
        sender.flush()


def test_one_live_session_per_client_and_binary(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            first = (await client.ask("store", create())).session_id
            with pytest.raises(StrobeError) as refused:
                await client.ask("store", create())
            assert refused.value.code is Code.SESSION_EXISTS and refused.value.value == first
            other = (await client.ask("store", create(client="another"))).session_id
            assert other != first
            await client.ask("store", EndSession(session_id=first, state="stopped", retain=False))
            await client.ask("store", create())

    run(story())


def test_pending_patterns_wait_per_client(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            assert (await client.ask("store", Pending(client_id="a", change=PendingChange(add=["x::*", "y"], depth=5)))).waiting.patterns == ["x::*", "y"]
            assert (await client.ask("store", Pending(client_id="a", change=PendingChange(remove=["x::*"])))).waiting == PendingSet(patterns=["y"], depth=5)
            assert (await client.ask("store", Pending(client_id="b"))).waiting.patterns == []
            assert (await client.ask("store", Pending(client_id="a", take=True))).waiting.patterns == ["y"]
            assert (await client.ask("store", Pending(client_id="a"))).waiting.patterns == []

    run(story())


@pytest.mark.alone
@pytest.mark.full  # a time: it means something on a machine of its own only
def test_events_are_visible_within_100_ms(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            session_id = (await client.ask("store", create())).session_id
            sender = await asyncio.to_thread(Feed, session_id)
            try:
                await asyncio.to_thread(sender.hooks)
                await asyncio.to_thread(sender.flush)
                delays = []
                for number in range(1, 21):
                    sent = time.monotonic()
                    sender.records(Lane().enter(number * 1000, number, 1, bytes(8)))

                    async def there(wanted: int = number) -> bool:
                        return (await ask_query(client, session_id, limit=1)).total_count == wanted

                    await until(there)
                    delays.append(time.monotonic() - sent)
                    await asyncio.to_thread(sender.flush)
                delays.sort()
                assert delays[len(delays) // 2] < 0.1, delays
            finally:
                sender.producer.close()

    run(story())


def test_status_and_drain(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            session_id = (await client.ask("store", create())).session_id

            def send() -> None:
                with feed(session_id) as sender:
                    sender.hooks()
                    header, frames = Traffic().batch(5000)
                    sender.send("records", header, frames)
                    sender.flush()

            await asyncio.to_thread(send)
            await client.ask("store", Drain())
            told = await client.ask("store", StoreStatus())
            assert (told.sessions, told.events, told.ingested_events) == (1, 10_000, 10_000)
            assert told.bytes > 10_000
            record = (await client.ask("store", ListSessions(session_id=session_id))).sessions[0]
            assert record.state is SessionState.RUNNING

    run(story())


def test_what_the_settings_no_longer_keep_is_purged(tmp_path: Path) -> None:
    async def kept() -> tuple[str, str]:
        async with node(tmp_path, roles=("store",)) as client:
            old = (await client.ask("store", create())).session_id
            await asyncio.to_thread(fill, old)
            await client.ask("store", EndSession(session_id=old, state="exited", retain=True))
            live = (await client.ask("store", create("/bin/other"))).session_id
            return old, live

    async def purged(old: str, live: str) -> None:
        async with node(tmp_path, roles=("store",)) as client:

            async def gone() -> bool:
                return [record.session_id for record in (await client.ask("store", ListSessions())).sessions] == [live]

            await until(gone)
            with pytest.raises(StrobeError) as refused:
                await ask_query(client, old)
            assert refused.value.code is Code.SESSION_NOT_FOUND
            assert [file.name.partition(".")[0] for file in (tmp_path / "sessions").glob("*.duckdb")] == [live]

    old, live = run(kept())
    run(still_there(tmp_path, old))  # seven days are the default
    (tmp_path / "settings.json").write_text(json.dumps({"retention.days": 0}))
    run(purged(old, live))


async def still_there(home: Path, session_id: str) -> None:
    async with node(home, roles=("store",)) as client:
        assert (await ask_query(client, session_id)).total_count == 5


def test_a_session_whose_process_is_given_up_is_lost_and_keeps_its_events(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store", "session", "spawner")) as client:
            session_id = (await client.ask("store", create())).session_id
            await asyncio.to_thread(fill, session_id)
            await client.ask("supervisor", OpenSession(session_id=session_id), deadline_s=30)
            killed: set[int] = set()

            async def given_up() -> bool:
                row = {row.name: row for row in (await status(client)).actors}.get(f"session:{session_id}")
                if row is not None and row.pid is not None and row.pid not in killed:
                    killed.add(row.pid)
                    os.kill(row.pid, signal.SIGKILL)
                return row is None

            async def lost() -> bool:
                record = (await client.ask("store", ListSessions(session_id=session_id))).sessions[0]
                return record.state is SessionState.LOST and record.ended_at is not None

            assert not await lost()
            await until(given_up, within_s=60)
            assert len(killed) > 1, "it was given up without a restart"
            await until(lost)
            assert (await ask_query(client, session_id)).total_count == 5
            await client.ask("store", create())  # the client may start that program again

    run(story())
