"""The node: router, process table, idle clock. Everything else of Strobe is a child of this process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import ClassVar, Final

from strobe import __version__, paths
from strobe.config import load_settings
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Done, Message
from strobe.protocol.supervisor import (
    ActorGone,
    ActorStatus,
    ClientCount,
    CloseSession,
    OpenSession,
    OpenSessionReply,
    RestartActor,
    SessionEnded,
    Shutdown,
    Status,
    StatusReply,
)  # fmt: skip
from strobe.runtime.asks import Asks
from strobe.runtime.context import Context
from strobe.runtime.dispatch import Dispatcher
from strobe.runtime.envelope import Envelope, Header, Kind, pack, pack_model, unpack_model
from strobe.runtime.greeting import Adopt, Greeting, Hello
from strobe.runtime.handlers import Handlers, collect, handles, on_notice
from strobe.runtime.log import Logger
from strobe.runtime.router import Router
from strobe.supervisor.nursery import Nursery, reap_strays
from strobe.supervisor.process import Process, State
from strobe.supervisor.recovery import HELLO_S, recovered
from strobe.supervisor.service import notify_service
from strobe.supervisor.sessions import Sessions
from strobe.supervisor.switchboard import SELF, Switchboard, notice_envelope
from strobe.supervisor.table import Table
from strobe.supervisor.topology import Role

TICK_S: Final = 1.0
ADOPT_S: Final = 15.0


class Supervisor:
    _handlers: ClassVar[Handlers]

    def __init__(self, log: Logger, roles: tuple[Role, ...]) -> None:
        self.log = log
        self._loop = asyncio.get_running_loop()
        self._roles = roles
        self._table_path = paths.run_folder() / "actors.json"
        bus = paths.bus_endpoint()
        self._table = Table()
        self._router = Router(bus, log)
        self._nursery = Nursery(self._table, bus, self, self._save, log)
        self._sessions = Sessions(self._table, self._nursery, self._roles, self._adopt, log)
        self._switchboard = Switchboard(self._table, self._router, self._local, self._nursery.start, log)
        self._asks = Asks(self._send, "supervisor")
        self._dispatcher = Dispatcher(self, self._handlers, self._send, self.crash, log)
        self._end: asyncio.Future[str] = self._loop.create_future()
        self._started = self._active = time.monotonic()
        self._clients = 0
        self._calls = 0

    # Life

    async def live(self) -> int:
        """Until shutdown. The node's lock is held by the caller."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._finish, f"signal {number.name}")
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        self._router.bind()
        tasks = [self._loop.create_task(work) for work in (self._receive(), self._tick())]
        for task in tasks:
            task.add_done_callback(self._task_ended)
        self._start_all()
        reason = await self._end
        await self._shut_down(reason)
        for task in tasks:
            task.cancel()
        self._router.close()
        return 0

    def _start_all(self) -> None:
        for process in recovered(Table.saved(self._table_path), self._roles):
            self._table.add(process)
            if process.pid is not None:
                self.log.info("survivor of the last node", actor=process.name, pid=process.pid)
                self._nursery.watch(process, HELLO_S)
            elif process.role.name == "session":
                self._nursery.start(process)
        for role in self._roles:
            process = self._table.named(role.name) or Process(role.name, role)
            if not role.per_session and process.pid is None:
                self._table.add(process)
                self._nursery.start(process)

    def _is_up(self) -> bool:
        """Everything that always runs is ready, or will not be."""
        return all(p.state in (State.READY, State.UNHEALTHY, State.FAILED) for p in self._table if not p.role.per_session)

    async def _receive(self) -> None:
        while True:
            identity, pid, envelope = await self._router.receive()
            if pid is None:
                continue
            if envelope.header.kind is Kind.HELLO:
                await self._greet(identity, pid, unpack_model(Hello, envelope.body))
            else:
                await self._take(identity, pid, envelope)

    async def _take(self, identity: str, pid: int, envelope: Envelope) -> None:
        if (process := self._table.sender(identity, pid)) is not None:
            process.pong_at = time.monotonic()
            if process.state is State.UNHEALTHY:
                process.state, process.dumped = State.READY, False
            if envelope.header.kind is Kind.BYE:
                process.state = State.BACKOFF  # it is about to end of itself: what is asked now is for its successor
            elif envelope.header.kind is not Kind.PONG:
                await self._switchboard.route(identity, process.name, envelope)
            elif process.state is State.READY and self._switchboard.has_held(process):
                await self._switchboard.ready(process)  # it had lost its connection, no more
        elif self._table.clients.get(identity, (None,))[0] == pid:
            self._active = time.monotonic()
            if envelope.header.kind is Kind.BYE:
                del self._table.clients[identity]
            else:
                await self._switchboard.route(identity, identity, envelope)
        else:
            self.log.warning("message of an unknown sender dropped", identity=identity, pid=pid, kind=str(envelope.header.kind), type=envelope.header.type)

    async def _tick(self) -> None:
        """Pings, expiry, idle clock, once a second."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            if now - last > 3 * TICK_S:  # we were suspended, not they silent
                for process in self._table:
                    process.pong_at = now
            last = now
            for process in self._nursery.check_health(now):
                await self._router.send(process.identity, Envelope(process.name, "supervisor", Header("", Kind.PING)))
            self._switchboard.expire()
            if self._is_up():
                self._sessions.warm_up()
            if self._clients or self._calls or self._sessions.live():
                self._active = now
            elif now - self._active > 60 * float(load_settings().values["node.idleMinutes"]):
                self._finish("idle")

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash(error)

    def crash(self, error: BaseException) -> None:
        """A supervisor that is wrong about its processes must not go on: stores and sessions wait for the next one."""
        self.log.error("supervisor failed", exc_info=error)
        os._exit(70)

    def _finish(self, reason: str) -> None:
        if not self._end.done():
            self._end.set_result(reason)

    async def _shut_down(self, reason: str) -> None:
        """Gateway, sessions, spawners and the rest, store: each bounded by its role."""
        self.log.info("shutting down", reason=reason)
        notify_service("STOPPING=1")
        self._switchboard.closed = reason
        self._nursery.closing = True
        for order in sorted({role.stop_order for role in self._roles}):
            group = [process for process in self._table if process.role.stop_order == order]
            await asyncio.gather(*(self._nursery.stop(process, reason) for process in group))
        self._table_path.unlink(missing_ok=True)
        self.log.info("ended", reason=reason)

    def _reap(self) -> None:
        reap_strays({process.child.pid for process in self._table if process.child is not None})

    def _save(self) -> None:
        if not self._nursery.closing:
            self._table.save(self._table_path)

    # Meeting actors and clients

    async def _greet(self, identity: str, pid: int, hello: Hello) -> None:
        process = self._table.sender(identity, pid)
        refusal = self._refusal(identity, pid, process, hello)
        greeting = Greeting(accepted=refusal == "", supervisor_pid=os.getpid(), reason=refusal)
        await self._router.send(identity, Envelope(hello.name, "supervisor", Header("", Kind.HELLO), pack_model(greeting)))
        if refusal:
            self.log.warning("not accepted", identity=identity, pid=pid, reason=refusal)
        elif process is not None:
            process.notices, process.pong_at = frozenset(hello.notices), time.monotonic()
            if hello.ready and process.state is State.STARTING:
                await self._is_ready(process, hello)

    def _refusal(self, identity: str, pid: int, process: Process | None, hello: Hello) -> str:
        """Why this HELLO is not accepted; empty when it is."""
        if hello.home != str(paths.home()):
            return f"this node's home is {paths.home()}"
        if process is not None:
            return "" if hello.version == __version__ else f"version {hello.version}; this node is {__version__}"
        if hello.role == "ctl" and identity.startswith("ctl:"):
            self._table.add_client(identity, pid, frozenset(hello.notices))
            return ""
        return "not in the process table"

    async def _is_ready(self, process: Process, hello: Hello) -> None:
        if process.session_id is not None and hello.session_id != process.session_id:
            self._nursery.spawn_task(self._readopt(process))
            return
        process.state = State.READY
        process.ready.set()
        self.log.info("ready", actor=process.name, pid=process.pid, after_ms=round((time.monotonic() - process.started_at) * 1000))
        await self._switchboard.ready(process)
        if self._is_up():
            notify_service("READY=1")
            self._sessions.warm_up()

    async def _readopt(self, process: Process) -> None:
        """A restarted process of a session learns whose it is before it is given anything else."""
        try:
            await self._adopt(process, process.name, str(process.session_id), True)
        except StrobeError as error:
            self.log.error("could not take its session up again", actor=process.name, error=str(error))
            process.signal(signal.SIGKILL)

    async def _adopt(self, process: Process, name: str, session_id: str, recovering: bool) -> None:
        """Raises StrobeError."""
        await self._asks.ask("supervisor", process.name, Adopt(name=name, session_id=session_id, recovering=recovering), ADOPT_S, "")
        self._table.rename(process, name)
        process.session_id = session_id
        self._save()
        if process.state is State.STARTING:
            process.state = State.READY
            process.ready.set()
            self.log.info("ready again", actor=name, pid=process.pid)
            await self._switchboard.ready(process)

    # What the nursery tells

    async def process_died(self, process: Process, how: str, by_itself: bool) -> None:
        if by_itself:
            self._switchboard.blame(process)
        await self._switchboard.died(process, how)
        if self._sessions.is_warm(process):
            process.leaving = True
            self._sessions.drop_warm(process)
        elif not process.leaving:
            await self._publish(ActorGone(name=process.name, session_id=process.session_id, how=how))

    async def process_gave_up(self, process: Process) -> None:
        await self._switchboard.gave_up(process)
        await self._publish(ActorGone(name=process.name, session_id=process.session_id, how=process.last_error or "", gave_up=True))

    async def process_sleeps(self, process: Process) -> None:
        if self._switchboard.has_held(process):
            self._nursery.start(process)

    def say_bye(self, process: Process, reason: str) -> None:
        bye = Envelope(process.name, "supervisor", Header("", Kind.BYE), pack({"reason": reason}))
        self._nursery.spawn_task(self._router.send(process.identity, bye))

    async def _publish(self, message: Message) -> None:
        await self._switchboard.publish(notice_envelope(message.TYPE, pack_model(message)))

    # Messages to and from the supervisor itself

    def _send(self, envelope: Envelope) -> None:
        self._nursery.spawn_task(self._switchboard.route(SELF, "supervisor", envelope))

    def _local(self, envelope: Envelope) -> None:
        if envelope.header.kind in (Kind.REPLY, Kind.ERROR):
            self._asks.settle(envelope)
        else:
            self._dispatcher.take(envelope)

    @handles(Status)
    async def status(self, _ask: Status, _: Context) -> StatusReply:
        now = time.monotonic()
        actors = [
            ActorStatus(
                name=p.name, role=p.role.name, pid=p.pid, generation=p.generation, state=str(p.state),
                uptime_s=round(now - p.started_at, 3) if p.pid is not None else 0.0, restarts=p.restarts.total, last_error=p.last_error,
            )
            for p in self._table
        ]  # fmt: skip
        return StatusReply(
            pid=os.getpid(), version=__version__, home=str(paths.home()), uptime_s=round(now - self._started, 3), idle_s=round(now - self._active, 3),
            clients=self._clients, actors=actors,
        )  # fmt: skip

    @handles(OpenSession, completes=True)
    async def open_session(self, ask: OpenSession, _: Context) -> OpenSessionReply:
        paths.safe_name(ask.session_id, what="session id")
        await self._sessions.open(ask.session_id)
        return OpenSessionReply(session=f"session:{ask.session_id}", spawner=f"spawner:{ask.session_id}")

    @handles(CloseSession, completes=True)
    async def close_session(self, ask: CloseSession, _: Context) -> Done:
        await self._sessions.close(ask.session_id, "closed")
        self._save()
        return Done()

    @handles(RestartActor, completes=True)
    async def restart_actor(self, ask: RestartActor, _: Context) -> Done:
        process = self._table.named(ask.name)
        if process is None:
            raise StrobeError(Code.VALIDATION_ERROR, f"There is no actor {ask.name}.", "See `strobe-ctl actors`.", value=ask.name)
        await self._nursery.stop(process, "restart asked for")
        process.restarts.deaths.clear()
        process.leaving = False
        self._nursery.start(process)
        return Done()

    @handles(Shutdown)
    async def shutdown(self, ask: Shutdown, _: Context) -> Done:
        self._loop.call_later(0.05, self._finish, ask.reason)
        return Done()

    @on_notice(ClientCount)
    async def client_count(self, notice: ClientCount) -> None:
        self._clients, self._calls = notice.clients, notice.calls_in_flight
        self._active = time.monotonic()

    @on_notice(SessionEnded)
    async def session_ended(self, notice: SessionEnded) -> None:
        await self._sessions.close(notice.session_id, "ended")
        self._save()


Supervisor._handlers = collect(Supervisor)
