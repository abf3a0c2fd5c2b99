"""The node as its users meet it: one at a time, restarted parts, sessions and their spares, its own death, its end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strobe import paths
from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.protocol.supervisor import CloseSession, OpenSession, OpenSessionReply, RestartActor, SessionEnded
from strobe.runtime.envelope import Envelope, Header, Kind, pack
from strobe.supervisor.process import start_ticks
from strobe.supervisor.start import node_pid
from tests.harness.echo import Echo, Echoed
from tests.harness.echo_node import echo_node, start_echo_node
from tests.harness.node import actor, all_ready, assert_nothing_left, environment, node, processes_of, run, status, stop, until
from tests.harness.times import times

PAIR = ("session", "spawner")


async def gone(pid: int | None) -> bool:
    return pid is None or start_ticks(pid) is None


def test_second_node_of_one_home_names_the_first(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            second = await asyncio.to_thread(start_echo_node, tmp_path)
            assert await asyncio.to_thread(second.wait, 20) == 75
            assert f"pid {client.node_pid}" in (tmp_path / "node.stderr").read_text()
            assert (await client.ask("store", Echo(text="still served"))).text == "still served"

    run(check())


def test_no_node_is_a_clear_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))

    async def check() -> None:
        with pytest.raises(StrobeError) as caught:
            async with Client():
                pass
        assert caught.value.code is Code.ACTOR_UNAVAILABLE and str(tmp_path) in caught.value.what

    run(check())


def test_sigterm_ends_the_node_in_order(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            os.kill(client.node_pid, signal.SIGTERM)
            await until(lambda: gone(client.node_pid))
        assert '"stopped in order"' in (tmp_path / "logs" / "store.jsonl").read_text()
        assert not (tmp_path / "run" / "actors.json").exists()

    run(check())


def test_restart_on_request_gives_a_new_process(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            first: Echoed = await client.ask("store", Echo(text="a"))
            await client.ask("supervisor", RestartActor(name="store"))
            second: Echoed = await client.ask("store", Echo(text="b"))
            assert first.pid != second.pid
            assert (await actor(client, "store")).restarts == 0
            with pytest.raises(StrobeError, match="no actor nobody"):
                await client.ask("supervisor", RestartActor(name="nobody"))

    run(check())


def test_killed_supervisor_is_succeeded_and_its_store_kept(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            before: Echoed = await client.ask("store", Echo(text="before"))
            os.kill(client.node_pid, signal.SIGKILL)
            await until(lambda: gone(client.node_pid))
            successor = start_echo_node(tmp_path)
            await until(lambda: serves(tmp_path, successor.pid))
            async with Client() as new:
                after: Echoed = await new.ask("store", Echo(text="after"), deadline_s=20)
                assert after.pid == before.pid, "the store was not kept"
                assert (await actor(new, "store")).generation == 1
                os.kill(after.pid, signal.SIGKILL)
                await until(lambda: is_generation(new, 2))
                again: Echoed = await new.ask("store", Echo(text="again"), deadline_s=20)
                assert again.pid != after.pid
            await stop(tmp_path)
            await asyncio.to_thread(successor.wait, 20)

    async def is_generation(client: Client, number: int) -> bool:
        return (await actor(client, "store")).generation == number

    async def serves(home: Path, pid: int) -> bool:
        return node_pid(home) == pid

    run(check())


def test_store_without_a_successor_ends_by_itself(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path, STROBE_TEST_TIMES=times(strobe__runtime__actor__OUTLIVE_S=3)) as client:
            store = (await actor(client, "store")).pid
            os.kill(client.node_pid, signal.SIGKILL)
            await until(lambda: gone(client.node_pid))
            began = time.monotonic()
            await until(lambda: gone(store), within_s=25)
            assert time.monotonic() - began > 2, "it did not wait for a successor"
            (tmp_path / "run" / "bus").unlink()  # of the killed supervisor; its successor would have taken it over
        assert '"stopped in order"' in (tmp_path / "logs" / "store.jsonl").read_text()

    run(check())


def test_hung_actor_is_replaced(tmp_path: Path) -> None:
    async def state_is(client: Client, state: str) -> bool:
        return (await actor(client, "store")).state == state

    async def check() -> None:
        async with echo_node(tmp_path, STROBE_TEST_TIMES=times(strobe__supervisor__nursery__UNHEALTHY_S=2, strobe__supervisor__nursery__HUNG_S=5)) as client:
            first = await actor(client, "store")
            assert first.pid is not None
            os.kill(first.pid, signal.SIGSTOP)
            await until(lambda: state_is(client, "unhealthy"), within_s=15)
            await until(lambda: gone(first.pid), within_s=25)
            reply: Echoed = await client.ask("store", Echo(text="x"), deadline_s=20)
            assert reply.pid != first.pid

    run(check())


def test_idle_node_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"node.idleMinutes": 0.03}))

    async def check() -> None:
        async with echo_node(tmp_path) as client:
            pid = client.node_pid
            await until(lambda: gone(pid), within_s=20)
        assert '"reason":"idle"' in (tmp_path / "logs" / "supervisor.jsonl").read_text()

    run(check())


def test_session_gets_the_warm_pair_and_another_is_made(tmp_path: Path) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            await until(lambda: has(client, "session:warm-1", "spawner:warm-1"), within_s=20)
            await all_ready(client)
            warm = {row.name: row.pid for row in (await status(client)).actors}
            began = time.monotonic()
            opened: OpenSessionReply = await client.ask("supervisor", OpenSession(session_id="one"), deadline_s=20)
            assert time.monotonic() - began < 2, "opening a session waited for a process to start"
            assert (opened.session, opened.spawner) == ("session:one", "spawner:one")
            assert (await actor(client, "session:one")).pid == warm["session:warm-1"]
            assert (await actor(client, "spawner:one")).pid == warm["spawner:warm-1"]
            await until(lambda: has(client, "session:warm-2", "spawner:warm-2"), within_s=20)
            with pytest.raises(StrobeError) as caught:
                await client.ask("supervisor", OpenSession(session_id="one"))
            assert caught.value.code is Code.SESSION_EXISTS
            with pytest.raises(StrobeError, match="plain name"):
                await client.ask("supervisor", OpenSession(session_id="../one"))
            await client.ask("supervisor", CloseSession(session_id="one"), deadline_s=30)
            assert not {row.name for row in (await status(client)).actors} & {"session:one", "spawner:one"}
            assert await gone(warm["session:warm-1"]) and await gone(warm["spawner:warm-1"])

    run(check())


def test_dead_session_is_restarted_and_its_spawner_when_asked_for(tmp_path: Path) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            await client.ask("supervisor", OpenSession(session_id="one"), deadline_s=30)
            session, spawner = (await actor(client, "session:one")).pid, (await actor(client, "spawner:one")).pid
            assert session is not None and spawner is not None
            os.kill(session, signal.SIGKILL)
            os.kill(spawner, signal.SIGKILL)
            await until(lambda: restarted(client, "session:one", session), within_s=20)
            assert (await actor(client, "spawner:one")).state == "stopped"
            with pytest.raises(StrobeError, match=r"spawner:one does not answer"):
                await client.ask("spawner:one", Echo(text="wake up"), deadline_s=20)
            await until(lambda: restarted(client, "spawner:one", spawner), within_s=20)
            log = (tmp_path / "logs" / "session-one.jsonl").read_text()
            assert '"recovering":true' in log
            client._bus.send(Envelope("supervisor", client.name, Header("", Kind.NOTICE, SessionEnded.TYPE, ""), pack({"sessionId": "one"})))
            await until(lambda: has_not(client, "session:one"), within_s=30)

    async def restarted(client: Client, name: str, before: int) -> bool:
        row = await actor(client, name)
        return row.state == "ready" and row.pid != before

    run(check())


async def has(client: Client, *names: str) -> bool:
    return set(names) <= {row.name for row in (await status(client)).actors}


async def has_not(client: Client, name: str) -> bool:
    return not await has(client, name)


def test_systemd_is_told_when_the_node_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(20)

        async def check() -> None:
            async with echo_node(tmp_path / "home", NOTIFY_SOCKET=str(tmp_path / "notify")):
                assert channel.recv(100) == b"READY=1"
            assert channel.recv(100) == b"STOPPING=1"

        run(check())


def test_strobe_node_starts_detached_and_says_its_pid(tmp_path: Path) -> None:
    variables = {**os.environ, "STROBE_HOME": str(tmp_path), "STROBE_ROLES": "stuck_detector"}
    try:
        said = subprocess.run([sys.executable, "-m", "strobe.cli", "node"], env=variables, capture_output=True, text=True, timeout=40, check=True)
        pid = node_pid(tmp_path)
        assert said.stdout == f"The node runs (pid {pid}).\n"
        again = subprocess.run([sys.executable, "-m", "strobe.cli", "node"], env=variables, capture_output=True, text=True, timeout=40, check=True)
        assert again.stdout == said.stdout
        assert any(entry.startswith(f"{pid} ") for entry in processes_of(tmp_path))
    finally:
        with environment(tmp_path, None, {}):
            run(stop(tmp_path))
    assert_nothing_left(tmp_path)


def test_node_whose_home_was_removed_ends(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path / "home") as client:
            shutil.rmtree(tmp_path / "home")
            await until(lambda: gone(client.node_pid), within_s=20)

    run(check())


def test_temporary_files_of_a_killed_spawner_go_with_it(tmp_path: Path) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=PAIR) as client:
            await until(lambda: has(client, "spawner:warm-1"), within_s=20)
            await all_ready(client)
            everything, mine = paths.scratch_folder(), paths.scratch_folder("spawner:warm-1~1")
            (mine / "left").write_text("by a killed process")
            os.kill((await actor(client, "spawner:warm-1")).pid or 0, signal.SIGKILL)
            await until(lambda: is_generation(client, 2), within_s=20)
            assert not (mine / "left").exists()
            await client.ask("supervisor", OpenSession(session_id="one"), deadline_s=30)
            assert [(await actor(client, name)).state for name in ("session:one", "spawner:one")] == ["ready", "ready"]
        assert not everything.exists()

    async def is_generation(client: Client, number: int) -> bool:
        return (await actor(client, "spawner:warm-1")).generation == number

    run(check())


@pytest.mark.parametrize(("by", "fell"), [(signal.SIGSEGV, True), (signal.SIGKILL, False)])
def test_an_actor_is_told_whether_the_one_before_it_fell(tmp_path: Path, by: signal.Signals, fell: bool) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            first: Echoed = await client.ask("store", Echo(text="a"))
            os.kill(first.pid, by)
            await until(lambda: is_second(client))
            second: Echoed = await client.ask("store", Echo(text="b"), deadline_s=20)
            environment_of = Path(f"/proc/{second.pid}/environ").read_bytes().split(b"\0")
            assert (b"STROBE_FELL=1" in environment_of) is fell

    async def is_second(client: Client) -> bool:
        return (await actor(client, "store")).generation == 2

    run(check())
