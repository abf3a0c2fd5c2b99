"""The store where the machine has no more to give: a full disk, largest file sizes, files, memory. Real limits on real processes:
a clear error that names what is short, nothing lost or damaged, and recovery by itself."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.protocol.store import Drain, EndSession, ListSessions, RunSql
from tests.actor.test_store import Feed, ask_query, create
from tests.bench.store_records import Traffic
from tests.harness.node import actor, node, run, until

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may mount file systems")
EVENTS = 4000  # of a batch


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", mount], check=True)
    (mount / "home").mkdir(mode=0o700)
    (tmp_path / "logs").mkdir(mode=0o700)
    (mount / "home/logs").symlink_to(tmp_path / "logs")  # on another disk, to be read after a failure
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@contextmanager
def limited(pid: int, kind: int, soft: int) -> Iterator[None]:
    """A soft limit of a running process."""
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, before)


class Sender:
    """Sends calls to a session and knows how many."""

    def __init__(self, session_id: str) -> None:
        self.feed = Feed(session_id)
        self.feed.hooks()
        self.traffic = Traffic()
        self.sent = 0

    def send(self, batches: int) -> None:
        """Until the window is full: that is when nothing is acknowledged any more."""
        for _ in range(batches):
            header, frames = self.traffic.batch(EVENTS // 2)
            if self.feed.producer.send("records", header, frames) is None:
                return
            self.sent += EVENTS
            self.feed.producer.poll(5)

    def flush(self) -> None:
        self.feed.flush()


async def troubled(client: Client, session_id: str, sender: Sender, word: str) -> None:
    """Sends until a reply says what is short."""

    async def told() -> bool:
        await asyncio.to_thread(sender.send, 10)
        return any(word in warning for warning in (await ask_query(client, session_id, limit=1)).warnings)

    await until(told, within_s=60)


async def all_there(client: Client, session_id: str, sender: Sender) -> None:
    await asyncio.to_thread(sender.flush)
    found = await ask_query(client, session_id, limit=1)  # the store may have restarted meanwhile
    assert found.total_count == sender.sent and found.warnings == []
    assert found.events_dropped == {}


@needs_root
def test_a_full_disk_is_named_and_loses_nothing(small_disk: Path) -> None:
    home = small_disk / "home"

    async def story() -> None:
        async with node(home, roles=("store",)) as client:
            session_id = (await client.ask("store", create(events_max=100_000_000))).session_id
            store = await actor(client, "store")
            sender = await asyncio.to_thread(Sender, session_id)
            try:
                await troubled(client, session_id, sender, f"The file system {small_disk} (of ")
                filler = small_disk / "filler"
                filler.write_bytes(bytes(max(0, os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize - (1 << 16))))
                with pytest.raises(StrobeError) as refused:
                    await client.ask("store", create("/bin/another"))
                assert refused.value.code is Code.LIMIT_EXCEEDED and str(small_disk) in refused.value.what and "purge" in refused.value.next_step
                subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
                await all_there(client, session_id, sender)
            finally:
                sender.feed.producer.close()
            assert (await actor(client, "store")).generation <= store.generation + 1, "one restart at most: it is DuckDB that cannot go on"
            ended = await client.ask("store", EndSession(session_id=session_id, state="exited", retain=True))
            assert ended.events_collected == sender.sent
            await client.ask("store", Drain())
        async with node(home, roles=("store",)) as client:
            assert (await ask_query(client, session_id, limit=1)).total_count == sender.sent
            assert [one.session_id for one in (await client.ask("store", ListSessions())).sessions] == [session_id]

    run(story())


@needs_root
def test_on_a_full_disk_a_session_can_be_deleted(small_disk: Path) -> None:
    home = small_disk / "home"

    async def story() -> None:
        async with node(home, roles=("store",)) as client:
            session_id = (await client.ask("store", create(events_max=100_000_000))).session_id
            sender = await asyncio.to_thread(Sender, session_id)
            try:
                await troubled(client, session_id, sender, str(small_disk))
            finally:
                sender.feed.producer.close()
            await client.ask("store", EndSession(session_id=session_id, state="stopped", retain=False))
            assert list((home / "sessions").glob("*.duckdb*")) == []
            assert (await client.ask("store", create("/bin/another"))).session_id

    run(story())


@pytest.mark.parametrize(("kind", "soft", "word"), [(resource.RLIMIT_FSIZE, 4 << 20, "largest size allowed")])
def test_a_limit_is_named_and_loses_nothing(tmp_path: Path, kind: int, soft: int, word: str) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            session_id = (await client.ask("store", create(events_max=100_000_000))).session_id
            store = await actor(client, "store")
            assert store.pid is not None
            sender = await asyncio.to_thread(Sender, session_id)
            try:
                await asyncio.to_thread(sender.flush)
                with limited(store.pid, kind, soft):
                    await troubled(client, session_id, sender, word)
                await all_there(client, session_id, sender)
            finally:
                sender.feed.producer.close()
            assert (await actor(client, "store")).pid == store.pid

    run(story())


def test_no_more_files_is_named_and_passes(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            first = (await client.ask("store", create())).session_id
            await ask_query(client, first)
            store = await actor(client, "store")
            assert store.pid is not None
            opened = max(int(name) for name in os.listdir(f"/proc/{store.pid}/fd")) + 8  # noqa: PTH208 - numbers
            with limited(store.pid, resource.RLIMIT_NOFILE, opened):
                with pytest.raises(StrobeError) as refused:
                    for number in range(20):
                        other = (await client.ask("store", create(f"/bin/x{number}"))).session_id
                        await ask_query(client, other)
                assert refused.value.code is Code.LIMIT_EXCEEDED and "Too many open files" in refused.value.what and "ulimit -n" in refused.value.next_step
            assert (await ask_query(client, other)).total_count == 0
            assert (await ask_query(client, first)).total_count == 0
            assert (await actor(client, "store")).pid == store.pid

    run(story())


def test_little_memory_is_named_and_passes(tmp_path: Path) -> None:
    """A query that would need more address space than is left fails alone; recording and the store go on."""

    async def story() -> None:
        async with node(tmp_path, roles=("store",)) as client:
            session_id = (await client.ask("store", create())).session_id
            sender = await asyncio.to_thread(Sender, session_id)
            try:
                await asyncio.to_thread(sender.send, 20)
                await asyncio.to_thread(sender.flush)
                store = await actor(client, "store")
                assert store.pid is not None
                used = int(Path(f"/proc/{store.pid}/statm").read_text().split()[0]) * resource.getpagesize()
                heavy = "SELECT list(a.n || '-' || b.n) FROM raw_calls a, raw_calls b"
                with limited(store.pid, resource.RLIMIT_AS, used + (64 << 20)), pytest.raises(StrobeError) as refused:
                    await client.ask("store", RunSql(session_id=session_id, sql=heavy, timeout_ms=20_000), deadline_s=30)
                assert refused.value.code in (Code.LIMIT_EXCEEDED, Code.ACTOR_UNAVAILABLE), refused.value
                await asyncio.to_thread(sender.send, 5)
                await all_there(client, session_id, sender)
            finally:
                sender.feed.producer.close()

    run(story())
