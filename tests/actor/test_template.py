"""Processes of sessions are forked from a template: they are what started ones would be, and without the template they are started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.protocol.supervisor import CloseSession, OpenSession, OpenSessionReply
from strobe.runtime.child import Child
from tests.harness.node import actor, node, processes_of, run, until

PAIR = ("session", "spawner")
FROM_TEMPLATE = b"STROBE_IDENTITY=template"


def words_of(pid: int) -> list[str]:
    return [word.decode() for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if word]


def is_forked(pid: int) -> bool:
    """It has the environment that its template was started with."""
    return FROM_TEMPLATE in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def pid_of(client: Client, name: str) -> int:
    """Once it is ready."""

    async def ready() -> bool:
        return (await actor(client, name)).state == "ready"

    await until(ready, within_s=30)
    return (await actor(client, name)).pid or 0


def test_they_are_what_started_ones_would_be(tmp_path: Path) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            for role in PAIR:
                pid = await pid_of(client, f"{role}:warm-1")
                assert is_forked(pid)
                assert parent_of(pid) == client.node_pid
                assert words_of(pid)[-5:] == ["-P", "-m", f"actors.{role}", "--name", f"{role}:warm-1"]
                assert os.getpgid(pid) == os.getsid(pid) == pid
                assert Path(f"/proc/{pid}/cwd").readlink() == tmp_path
                log = f"{role}-warm-1.stderr"
                assert {Path(f"/proc/{pid}/fd/{number}").readlink().name for number in (0, 1, 2)} <= {"null", log}, log
            host = next(int(line.split()[0]) for line in processes_of(tmp_path) if "actors.spawner.host" in line)
            assert is_forked(host) and os.getsid(host) == host

    run(check())


@pytest.mark.parametrize("by", [signal.SIGSEGV, signal.SIGKILL])
def test_how_one_ended_is_told(tmp_path: Path, by: signal.Signals) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            os.kill(await pid_of(client, "session:warm-1"), by)

            async def again() -> bool:
                return (await actor(client, "session:warm-1")).generation == 2

            await until(again, within_s=20)
            assert f"killed by {by.name}" in ((await actor(client, "session:warm-1")).last_error or "")
            assert is_forked(await pid_of(client, "session:warm-1"))

    run(check())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_without_it_they_are_started(tmp_path: Path, how: signal.Signals) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            first = await pid_of(client, "session:warm-1")
            await pid_of(client, "spawner:warm-1")
            template = next(int(line.split()[0]) for line in processes_of(tmp_path) if "template of sessions" in line)
            os.kill(template, how)
            for number in (1, 2):
                opened: OpenSessionReply = await client.ask("supervisor", OpenSession(session_id=f"s{number}"), deadline_s=30)
                assert opened
            second = await pid_of(client, "session:s2")
            assert is_forked(first) and not is_forked(second)
            for number in (1, 2):
                await client.ask("supervisor", CloseSession(session_id=f"s{number}"), deadline_s=30)

    run(check())


def test_a_child_that_was_forked_tells_its_end() -> None:
    for status, told in ((3, 3), (signal.SIGTERM, -signal.SIGTERM)):
        pid = os.fork()
        if pid == 0:
            if isinstance(status, signal.Signals):
                signal.signal(status, signal.SIG_DFL)
                os.kill(os.getpid(), status)
            os._exit(status)
        child = Child(pid)
        assert child.wait(10) == told
        child.kill()  # it is gone: nobody else is hit
        assert child.wait() == told


def test_actors_of_the_node_are_forked_when_they_have_to_be_started_again(tmp_path: Path) -> None:
    async def check() -> None:
        async with node(tmp_path) as client:
            template = next(int(line.split()[0]) for line in processes_of(tmp_path) if "template of sessions" in line)

            async def has_imported() -> bool:
                """The last of it, DuckDB, and it waits for the next request."""
                state = Path(f"/proc/{template}/stat").read_text().rpartition(")")[2].split()[0]
                return "duckdb" in Path(f"/proc/{template}/maps").read_text() and state == "S"

            await until(has_imported, within_s=60)
            for name in ("gateway", "indexer", "stuck_detector", "store"):
                before = await pid_of(client, name)
                assert not is_forked(before)
                os.kill(before, signal.SIGKILL)

                async def another(name: str = name, before: int = before) -> bool:
                    now = await actor(client, name)
                    return now.state == "ready" and now.pid != before

                await until(another, within_s=20)
                assert is_forked(await pid_of(client, name)), name

    run(check())
