"""Malformed frames on the bus, to each actor of a real node: dropped or answered with a clear error, no death, no growth."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import zmq
import zmq.asyncio
from pydantic import ValidationError

from actors.gateway.schemas import messages
from strobe import __version__, paths
from strobe.client import Client
from strobe.errors import Code
from strobe.protocol.base import Ask
from strobe.runtime.envelope import PROTO, Envelope, EnvelopeError, Header, Kind, pack, pack_model, parse, unpack
from strobe.runtime.greeting import Hello
from tests.fuzz.processes import generations, grown, resident
from tests.fuzz.strange import spoiled, spoiled_bytes, strange_for_msgpack
from tests.harness.mcp import strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
FRAMES: Final = 150
FRAMES_OFTEN: Final = 10_000
CHUNK: Final = 50
ANSWER_S: Final = 20.0
ROLES: Final = ("supervisor", "gateway", "store", "indexer", "stuck_detector", "session", "spawner")
CODES: Final = {Code.VALIDATION_ERROR, Code.ACTOR_UNAVAILABLE, Code.LIMIT_EXCEEDED, Code.SESSION_NOT_FOUND}


class Stranger:
    """A client that says hello as it should, and then anything."""

    def __init__(self, home: Path, number: int) -> None:
        self.name = f"ctl:{os.getpid()}-fuzz-{number}"
        self._context = zmq.asyncio.Context()
        self._socket: zmq.asyncio.Socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IDENTITY, self.name.encode())
        self._socket.connect(paths.bus_endpoint(home))
        self._home = home

    async def greet(self) -> None:
        hello = Hello(name=self.name, role="ctl", pid=os.getpid(), generation=0, version=__version__, home=str(self._home), ready=True, notices=[])
        await self.send(Envelope("supervisor", self.name, Header("", Kind.HELLO), pack_model(hello)).frames())
        assert (await self.receive()).header.kind is Kind.HELLO

    async def send(self, frames: list[bytes]) -> None:
        await self._socket.send_multipart(frames)

    async def receive(self) -> Envelope:
        async with asyncio.timeout(ANSWER_S):
            return parse(await self._socket.recv_multipart())

    def close(self) -> None:
        self._socket.close()
        self._context.term()


@asynccontextmanager
async def stranger(home: Path, number: int) -> AsyncIterator[Stranger]:
    made = Stranger(home, number)
    try:
        await made.greet()
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("frames", [FRAMES, pytest.param(FRAMES_OFTEN, marks=[pytest.mark.full, pytest.mark.alone])])
async def test_every_actor_outlives_strange_frames(home: Path, frames: int) -> None:
    async with strobe_mcp(home) as strobe:
        session = await strobe.launch(program("echo.c", "-O1"), root=TARGETS, stdin={"open": True})
        names = {role: f"{role}:{session}" if role in ("session", "spawner") else role for role in ROLES}
        async with Client(home) as client:
            before = await generations(client)
            sizes: dict[int, int] = {}
            told: Counter[str] = Counter()
            for role, name in names.items():
                for start in range(0, frames, CHUNK):
                    async with stranger(home, start) as peer:
                        told += await _chunk(peer, name, role, Random(f"{role} {start}"))
                    after = await generations(client)
                    assert {one: after.get(one) for one in before} == before, f"after {role}, {start}"
                if not sizes:
                    sizes = resident([pid for pid, _ in before.values()])
            assert not grown(sizes, resident(list(sizes)))
        assert (await strobe.status(session))["status"] == "running"
        assert told["validation"] > frames, told
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


async def _chunk(peer: Stranger, name: str, role: str, chance: Random) -> Counter[str]:
    """Sends a chunk; each ask that can be read must be answered with an error."""
    asked: dict[str, str] = {}
    asks = [one for one in messages() if issubclass(one, Ask) and one.TYPE.startswith(f"{role}.")]
    for number in range(CHUNK):
        way = chance.randrange(4)
        if way == 0:
            await peer.send([chance.randbytes(chance.randrange(80)) for _ in range(chance.randrange(1, 7))])
        elif way == 1:
            await peer.send(_strange_header(name, peer.name, chance))
        elif way == 2:
            frames = Envelope(name, peer.name, Header(f"f{number}", Kind.ASK, f"{role}.status"), pack({})).frames()
            frames[2 + chance.randrange(2)] = spoiled_bytes(frames[2], chance)
            await peer.send(frames if not _readable(frames) else [b""])
        else:
            body = _invalid_body(chance.choice(asks) if asks and chance.random() < 0.9 else None, chance)
            asked[f"v{number}"] = body[0]
            await peer.send(Envelope(name, peer.name, Header(f"v{number}", Kind.ASK, body[0]), body[1]).frames())
    told: Counter[str] = Counter()
    while asked:
        try:
            answer = await peer.receive()
        except TimeoutError:
            pytest.fail(f"no answer from {name} to {asked}")
        kind = asked.pop(answer.header.id, None)
        if kind is None:
            continue
        error = unpack(answer.body)
        assert answer.header.kind is Kind.ERROR and error["code"] in CODES, (kind, answer)
        assert error["what"] and error["nextStep"] and "Traceback" not in str(error), error
        told["validation"] += error["code"] == Code.VALIDATION_ERROR
    return told


def _strange_header(to: str, sender: str, chance: Random) -> list[bytes]:
    head: dict[str, Any] = {"proto": PROTO, "id": "h", "cause": "", "kind": "ask", "type": "x.y", "deadline_ms": 0}
    while True:
        changed: Any = spoiled(head, chance, strange_for_msgpack) if chance.random() < 0.9 else strange_for_msgpack(chance)
        try:
            packed = pack(changed)
        except (ValueError, OverflowError, UnicodeEncodeError):  # nothing that msgpack can carry
            continue
        names = [chance.choice((to, "", "nobody", "session:", "a" * 300, "supervisor~1")) if chance.random() < 0.3 else name for name in (to, sender)]
        return [names[0].encode(), names[1].encode(), packed, b"\x80"]


def _readable(frames: list[bytes]) -> bool:
    """Bytes that were spoiled and are an envelope all the same would be answered, or end a connection."""
    try:
        parse(frames)
    except EnvelopeError:
        return False
    return True


def _invalid_body(ask: type[Ask] | None, chance: Random) -> tuple[str, bytes]:
    """(type, body) of an ask that has to be refused."""
    if ask is None:
        return chance.choice(("", "store.nothing", "x", "a.b.c", "\0")), pack({})
    while True:
        names = list(ask.model_fields) or ["x"]
        body = {chance.choice(names): strange_for_msgpack(chance) for _ in range(chance.randrange(4))} | (
            {"extra": 1} if chance.random() < 0.3 else {}
        )  # fmt: skip
        if chance.random() < 0.2:
            return ask.TYPE, spoiled_bytes(pack({"a": [1, 2, {"b": None}]}), chance) + b"\xc1"
        try:
            ask.model_validate(body)
        except ValidationError:
            try:
                return ask.TYPE, pack(body)
            except (ValueError, OverflowError, UnicodeEncodeError):
                continue
