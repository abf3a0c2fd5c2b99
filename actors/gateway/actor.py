"""The gateway: MCP for every client of the node."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

from actors.gateway.abandoned import LOOK_EVERY_S, abandoned
from actors.gateway.calls import Calls
from actors.gateway.peer import Peer
from actors.gateway.tool import Client
from strobe import __version__, paths
from strobe.errors import StrobeError
from strobe.protocol import shim, store, supervisor
from strobe.protocol.base import Ask
from strobe.protocol.test_runs import ListTestRuns, TestRunsReply
from strobe.protocol.testing import EndTests
from strobe.runtime import Actor
from strobe.runtime.actor import SUPERVISOR_DIED
from strobe.runtime.shims import ShimMessage, ShimServer
from strobe.supervisor.start import spawn_node

SILENT_S: Final = 30.0  # a shim pings each second; one that is silent for so long was killed or suspended, and says hello again
COUNT_EVERY_S: Final = 5.0
RETURN_S: Final = 3.0  # a client whose connection broke is back by then
READS: Final = frozenset((
    "store.list_sessions", "store.query", "store.sql", "store.read_value", "store.list_test_runs", "store.baselines",
    "session.status", "session.read_memory", "session.test_state",
))  # fmt: skip


class Gateway(Actor):
    role = "gateway"

    async def starting(self) -> None:
        self._calls = Calls(self.ask, self.log)
        self._peers: dict[bytes, Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: tuple[int, int] | None = None
        self._socket = ShimServer(paths.mcp_endpoint(self.seat.home))
        await self._socket.bind()
        self._run(self._listen())
        self._run(self._look_after())
        self._run(self._end_abandoned())

    async def stopping(self, reason: str) -> None:
        del reason
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()

    async def ask(self, to: str, message: Ask, *, deadline_s: float = 5.0, cause: str | None = None) -> Any:
        """What only reads is asked again where the supervisor died before it was answered."""
        try:
            return await super().ask(to, message, deadline_s=deadline_s, cause=cause)
        except StrobeError as error:
            if error.what != SUPERVISOR_DIED or message.TYPE not in READS:
                raise
            return await super().ask(to, message, deadline_s=deadline_s, cause=cause)

    def orphaned(self) -> None:
        """Clients notice nothing of it but the calls in flight."""
        if self._peers:
            self._run(self._start_node())

    async def resumed(self) -> None:
        self._told = None
        self._count()

    async def _start_node(self) -> None:
        node = await asyncio.to_thread(spawn_node)
        while node.poll() is None:  # 75: another one was quicker
            await asyncio.sleep(1.0)

    def _run(self, work: Any) -> asyncio.Task[None]:
        """A task whose failure ends the actor, which is then restarted."""
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash(error)

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message.kind == shim.HELLO:
                await self._hello(message)
            elif (peer := self._peers.get(message.peer)) is None:
                await self._socket.send(message.peer, shim.AGAIN, b"{}")
            else:
                await self._heard(message, peer)

    async def _heard(self, message: ShimMessage, peer: Peer) -> None:
        peer.heard_at = time.monotonic()
        if message.kind == shim.MCP:
            await peer.take(message.body)
        elif message.kind == shim.PING:
            await self._socket.send(message.peer, shim.PONG, self._facts())
        elif message.kind == shim.BYE:
            self._forget(message.peer)
        else:
            self.log.error("unknown frame", kind=message.kind[:40].decode(errors="replace"), client=peer.client.id)

    async def _hello(self, message: ShimMessage) -> None:
        """A new client, or one that starts anew on the same connection."""
        identity = message.peer
        self._forget(identity)
        said = json.loads(message.body)
        client = Client(id=str(said["client"]), cwd=str(said["cwd"]), env={str(name): str(value) for name, value in said["env"].items()})
        await self._socket.send(identity, shim.HELLO, self._facts())

        async def send(line: bytes) -> bool:
            return await self._socket.send(identity, shim.MCP, line)

        peer = Peer(client, message.pid, self._calls, send, self.log)
        self._peers[identity] = peer
        if self._orphan is not None and not self._orphan.done():  # the supervisor died when there was no client: nobody has started one yet
            self._run(self._start_node())
        self._run(self._serve(identity, peer))
        self.log.info("client", client=client.id, pid=message.pid, version=said.get("version"))
        self._count()

    async def _serve(self, identity: bytes, peer: Peer) -> None:
        try:
            await peer.run()
        except Exception:
            self.log.exception("a client's server failed", client=peer.client.id)
        finally:
            if self._peers.get(identity) is peer:
                del self._peers[identity]
            self._count()

    def _forget(self, identity: bytes) -> None:
        peer = self._peers.pop(identity, None)
        if peer is not None:
            peer.leave()
            self._run(self._end_runs(peer.client.id))

    def _facts(self) -> bytes:
        return json.dumps({"version": __version__, "generation": self.seat.generation}).encode()

    async def _look_after(self) -> None:
        """Drops silent peers and keeps the supervisor's idle clock right."""
        while True:
            await asyncio.sleep(COUNT_EVERY_S)
            now = time.monotonic()
            for identity in [identity for identity, peer in self._peers.items() if now - peer.heard_at > SILENT_S or not _lives(peer.pid)]:
                self.log.info("silent client dropped", client=self._peers[identity].client.id)
                self._forget(identity)
            self._count()

    async def _end_runs(self, client: str) -> None:
        """Test runs of a client that does not come back end with everything they started."""
        await asyncio.sleep(RETURN_S)
        if any(peer.client.id == client for peer in self._peers.values()):
            return
        try:
            runs: TestRunsReply = await self.ask("store", ListTestRuns(), deadline_s=5)
        except StrobeError as error:
            self.log.warning("test runs of a client that left were not ended", client=client, error=str(error))
            return
        for run in runs.records:
            if run.client_id == client and run.status == "running":
                await self._end_run(run.run_id, client)

    async def _end_run(self, run_id: str, client: str) -> None:
        self.log.info("test run ended with its client", run=run_id)
        try:
            await self.ask(f"session:{run_id}", EndTests(), deadline_s=20)
        except StrobeError as error:
            self.log.warning("a test run of a client that left was not ended", run=run_id, client=client, error=str(error))

    async def _end_abandoned(self) -> None:
        since = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                records = (await self.ask("store", store.ListSessions())).sessions
                connected = {peer.client.id for peer in self._peers.values()}
                for record in abandoned(records, connected, self._calls.called, since, time.monotonic()):
                    self.log.info("abandoned session ended", session=record.session_id)
                    await self.ask("store", store.EndSession(session_id=record.session_id, state=str(record.state), retain=True))
                    await self.ask("supervisor", supervisor.CloseSession(session_id=record.session_id))
                known = {record.session_id for record in records}
                self._calls.called = {name: at for name, at in self._calls.called.items() if name in known}
            except StrobeError as error:
                self.log.warning("abandoned sessions not looked at", error=str(error))

    def _count(self) -> None:
        counted = (len(self._peers), self._calls.in_flight)
        if counted != self._told:
            self._told = counted
            self.notice(supervisor.ClientCount(clients=counted[0], calls_in_flight=counted[1]))


def _lives(pid: int | None) -> bool:
    return pid is None or Path(f"/proc/{pid}").exists()
