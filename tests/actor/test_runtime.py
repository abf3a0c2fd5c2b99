"""Asks, errors, deadlines, deaths and notices through the real supervisor, with an actor that does as told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask
from strobe.protocol.supervisor import SessionEnded
from strobe.runtime.dispatch import RUNNING_MAX
from strobe.runtime.envelope import Envelope, Header, Kind, monotonic_ms, pack
from tests.harness.echo import Echo, Echoed, Look, Misbehave, Seen
from tests.harness.echo_node import echo_node, lasting_echo_node
from tests.harness.node import actor, all_ready, run, until
from tests.harness.times import times


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a node for the tests that do not mind what others did to it."""
    with lasting_echo_node(tmp_path_factory.mktemp("runtime")) as home:
        yield home


async def fails(client: Client, message: Ask, *, deadline_s: float = 10.0) -> StrobeError:
    with pytest.raises(StrobeError) as caught:
        await client.ask("store", message, deadline_s=deadline_s)
    return caught.value


async def look(client: Client) -> Seen:
    seen: Seen = await client.ask("store", Look())
    return seen


def test_ask_is_answered_and_its_cause_is_in_the_log(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            reply: Echoed = await client.ask("store", Echo(text="héllo"), deadline_s=7, cause="request-17")
            assert (reply.text, reply.cause, reply.sender) == ("héllo", "request-17", client.name)
            assert 6 < reply.deadline_s <= 7
            lines = [json.loads(line) for line in (shared / "logs" / "store.jsonl").read_text().splitlines()]
            assert [line["cause"] for line in lines if line["event"] == "echo"] == ["request-17"]

    run(check())


def test_deadline_is_kept_at_both_ends(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            before = (await look(client)).cancelled
            began = time.monotonic()
            error = await fails(client, Echo(text="slow", wait_s=30), deadline_s=0.2)
            assert time.monotonic() - began < 5
            assert error.code is Code.TIMEOUT
            assert "store" in error.what and "store.echo" in error.what
            await until(lambda: cancelled(client, before + 1))

    async def cancelled(client: Client, count: int) -> bool:
        return (await look(client)).cancelled == count

    run(check())


def test_error_of_a_handler_comes_back_whole(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            pid = (await actor(client, "store")).pid
            error = await fails(client, Misbehave(how="refuse"))
            assert (error.code, error.what, error.next_step, error.value) == (Code.INVALID_PATTERN, "the pattern ( is bad.", "Close it.", "(")
            assert (await actor(client, "store")).pid == pid

    run(check())


def test_bad_bodies_and_unknown_types_name_what_is_wrong(shared: Path) -> None:
    async def answer(client: Client, message_type: str, body: bytes) -> StrobeError:
        """The error for an ask packed by hand."""
        ask_id = os.urandom(4).hex()
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        client._asks._pending[ask_id] = (Look(), future)
        client._bus.send(Envelope("store", client.name, Header(ask_id, Kind.ASK, message_type, "", monotonic_ms() + 5000), body))
        with pytest.raises(StrobeError) as caught:
            await asyncio.wait_for(future, 5)
        return caught.value

    async def check() -> None:
        async with Client() as client:
            for message_type, body, field in (
                ("store.echo", pack({"text": 3}), "text"),
                ("store.echo", pack({"text": "x", "wait_ss": 1}), "wait_ss"),
                ("store.echo", pack({}), "text"),
                ("store.echo", b"\xc1", "msgpack"),
                ("store.nonsense", pack({}), "store.nonsense"),
            ):
                error = await answer(client, message_type, body)
                assert error.code is Code.VALIDATION_ERROR
                assert field in error.what
            assert (await look(client)).running == 0

    run(check())


@pytest.mark.parametrize("ways", [("raise", "exit", "kill"), ("thread", "wrong_reply", "ask_up")])
def test_actor_that_dies_of_an_ask_answers_it_and_is_restarted(tmp_path: Path, ways: tuple[str, ...]) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            for how in ways:
                first = await actor(client, "store")
                began = time.monotonic()
                error = await fails(client, Misbehave(how=how), deadline_s=20)
                assert time.monotonic() - began < 5, "told at the deadline instead of at the death"
                assert error.code is Code.ACTOR_UNAVAILABLE
                assert "store" in error.what and "store.misbehave" in error.what
                reply: Echoed = await client.ask("store", Echo(text="again"), deadline_s=20)
                assert reply.pid != first.pid
                assert (await actor(client, "store")).generation == first.generation + 1

    run(check())


def test_ask_that_kills_twice_is_not_tried_a_third_time(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            for _ in range(2):
                await fails(client, Misbehave(how="exit", salt="poison"))
            generation = (await client.ask("store", Echo(text="up"))).pid
            error = await fails(client, Misbehave(how="exit", salt="poison"))
            assert "twice" in error.what
            assert (await client.ask("store", Echo(text="still up"))).pid == generation

    run(check())


def test_one_death_with_the_same_ask_of_three_in_hand_is_one(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path) as client:
            waiting = [asyncio.create_task(fails(client, Echo(text="same", wait_s=30), deadline_s=30)) for _ in range(3)]
            await until(lambda: in_hand(client))
            os.kill((await actor(client, "store")).pid or 0, signal.SIGSEGV)
            await asyncio.gather(*waiting)
            assert (await client.ask("store", Echo(text="up"), deadline_s=20)).text == "up"
            error = await fails(client, Echo(text="same", wait_s=30), deadline_s=0.5)
            assert error.code is Code.TIMEOUT, "it was given to the store again"

    async def in_hand(client: Client) -> bool:
        return (await look(client)).running == 3

    run(check())


def test_killed_from_outside_with_asks_in_hand(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            asks = [asyncio.create_task(fails(client, Echo(text=str(n), wait_s=30), deadline_s=30)) for n in range(10)]
            await until(lambda: running(client, 10))
            pid = (await actor(client, "store")).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            began = time.monotonic()
            errors = await asyncio.gather(*asks)
            assert time.monotonic() - began < 5
            assert {error.code for error in errors} == {Code.ACTOR_UNAVAILABLE}
            assert all("SIGKILL" in error.what for error in errors)

    async def running(client: Client, count: int) -> bool:
        return (await look(client)).running == count

    run(check())


def test_handlers_run_64_at_a_time_and_the_rest_wait(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            await all_ready(client)
            replies = await asyncio.gather(*(client.ask("store", Echo(text=str(n), wait_s=0.3), deadline_s=20) for n in range(300)))
            assert [reply.text for reply in replies] == [str(n) for n in range(300)]
            assert (await look(client)).most == RUNNING_MAX

    run(check())


def test_crash_loop_ends_in_a_clear_answer(tmp_path: Path) -> None:
    async def check() -> None:
        bounds = times(strobe__supervisor__restarts__DEATHS_MAX=2, strobe__supervisor__restarts__REST_S=2)
        async with echo_node(tmp_path, ready=False, ECHO_FAILS="1", STROBE_TEST_TIMES=bounds) as client:
            error = await fails(client, Echo(text="x"), deadline_s=30)
            assert error.code is Code.ACTOR_UNAVAILABLE
            assert "exit status 3" in error.what
            row = await actor(client, "store")
            assert row.last_error is not None and "no luck today" in row.last_error
            assert (row.state, row.restarts) == ("failed", 3)
            began = time.monotonic()
            error = await fails(client, Echo(text="x"), deadline_s=30)
            assert time.monotonic() - began < 1
            assert "tried again in" in error.next_step
            await until(partial(restarts_are, client, 4), within_s=10)  # after its rest

    run(check())


async def restarts_are(client: Client, least: int) -> bool:
    return (await actor(client, "store")).restarts >= least


def test_asks_only_go_down(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            client._bus.send(Envelope("gateway", "gateway", Header("forged", Kind.ASK, "x", "", 0), pack({})))
            error = await fails(client, Misbehave(how="ask_up"))
            assert error.code is Code.ACTOR_UNAVAILABLE
            log = (shared / "logs" / "store.jsonl").read_text()
            assert "AskOrderError" in log and "store may not ask gateway" in log

    run(check())


def test_notice_reaches_its_listeners(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client:
            await client.ask("store", Misbehave(how="notice", salt="session-x"))
            await until(lambda: heard(client, "session-x"))

    async def heard(client: Client, name: str) -> bool:
        return name in (await look(client)).notices

    run(check())
    assert SessionEnded.TYPE


def test_message_of_an_unknown_process_goes_nowhere(shared: Path) -> None:
    async def check() -> None:
        async with Client() as client, Client() as impostor:
            impostor._bus._identity = "store~77"
            await impostor._bus.reconnect()
            impostor._bus.send(Envelope("store", "store", Header("x", Kind.NOTICE, SessionEnded.TYPE, ""), pack({"sessionId": "forged"})))
            await until(lambda: logged(shared, "store~77"))
            assert "forged" not in (await look(client)).notices

    async def logged(home: Path, text: str) -> bool:
        return text in (home / "logs" / "supervisor.jsonl").read_text()

    run(check())


def test_stubborn_actor_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def check() -> None:
        async with echo_node(tmp_path, ECHO_STUBBORN="1", STROBE_TEST_TIMES=times(strobe__supervisor__nursery__KILL_GRACE_S=0.5)):
            began = time.monotonic()
        assert time.monotonic() - began < 10
        assert "stopped in order" in (tmp_path / "logs" / "store.jsonl").read_text()

    run(check())


def test_files_of_the_node_are_private(shared: Path) -> None:
    async def check() -> None:
        async with Client():
            for path in shared.rglob("*"):
                assert path.stat().st_mode & 0o077 == 0, path

    run(check())
