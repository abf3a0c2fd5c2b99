"""The node: router, process table, idle clock. Everything else of Strobe is a child of this process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

from strobe import paths
from strobe.config import load_settings
from strobe.protocol.base import Message
from strobe.protocol.supervisor import ActorGone
from strobe.runtime.asks import Asks
from strobe.runtime.dispatch import Dispatcher
from strobe.runtime.envelope import Envelope, Header, Kind, pack, pack_model, unpack_model
from strobe.runtime.greeting import Hello
from strobe.runtime.log import Logger, log_name
from strobe.runtime.router import Router
from strobe.supervisor.desk import Desk
from strobe.supervisor.forking import Template
from strobe.supervisor.idle import IdleClock
from strobe.supervisor.lock import NodeLock
from strobe.supervisor.nursery import Nursery, reap_strays
from strobe.supervisor.old_logs import prune_logs
from strobe.supervisor.process import Process, State, actor_environment
from strobe.supervisor.reception import Reception
from strobe.supervisor.recovery import HELLO_S, recovered
from strobe.supervisor.scratch import sweep_all
from strobe.supervisor.service import notify_service
from strobe.supervisor.sessions import Sessions
from strobe.supervisor.switchboard import SELF, Switchboard, notice_envelope
from strobe.supervisor.table import Table
from strobe.supervisor.topology import Role

TICK_S: Final = 1.0
SETTLED_S: Final = 15.0  # after which what was not needed to start may take the processor
PRUNE_EVERY_S: Final = 3600.0
EX_SOFTWARE: Final = 70


class Supervisor:
    """One node's life. `lock` is held by the caller."""

    def __init__(self, log: Logger, roles: tuple[Role, ...], lock: NodeLock) -> None:
        self.log = log
        self._lock = lock
        self._roles = roles
        self._loop = asyncio.get_running_loop()
        self._table_path = paths.run_folder() / "actors.json"
        self._end: asyncio.Future[str] = self._loop.create_future()
        self._idle = IdleClock(time.monotonic())
        self._pruned_at = float("-inf")
        self._told_up = False
        self._started_at = time.monotonic()
        bus = paths.bus_endpoint()
        self._table = Table()
        self._router = Router(bus, log)
        self._template = Template(roles, actor_environment(bus, "template"), log)
        self._nursery = Nursery(self._table, bus, self._template, self, self._save, log)
        self._switchboard = Switchboard(self._table, self._router, self._local, self._nursery.start, log)
        self._asks = Asks(self._send, "supervisor")
        self._reception = Reception(self._table, self._router, self._switchboard, self._nursery, self._asks, self._look_up, self._save, log)
        self._sessions = Sessions(self._table, self._nursery, self._template, roles, self._reception.adopt, self._switchboard.gave_up, self._save, log)
        desk = Desk(self._table, self._nursery, self._sessions, self._idle, self._finish)
        self._dispatcher = Dispatcher(desk, Desk.HANDLERS, self._send, self.crash, log)

    # Life

    async def live(self) -> int:
        """Until shutdown."""
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
        self._template.start()
        sweep_all(paths.scratch_folder())  # of a node that was killed; survivors have none
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
                if not role.late:
                    self._nursery.start(process)
        self._look_up()

    def _look_up(self) -> None:
        """Once the node is up: says so, starts the spare pair and what was to come late."""
        if not self._is_up():
            return
        if not self._told_up:
            self._told_up = True
            notify_service("READY=1")
            for process in self._table:
                if process.role.late and process.pid is None:
                    self._nursery.start(process)
        self._template.start()
        self._sessions.warm_up()

    def _is_up(self) -> bool:
        """Everything that calls may need is ready, or will not be."""
        needed = (process for process in self._table if not process.role.per_session and not process.role.late)
        return all(process.state in (State.READY, State.UNHEALTHY, State.FAILED) for process in needed)

    async def _receive(self) -> None:
        while True:
            identity, pid, envelope = await self._router.receive()
            if pid is None:
                continue
            if envelope.header.kind is Kind.HELLO:
                await self._reception.greet(identity, pid, unpack_model(Hello, envelope.body))
            elif (process := self._table.sender(identity, pid)) is not None:
                await self._from_actor(process, envelope)
            elif self._table.clients.get(identity, (None,))[0] == pid:
                await self._from_client(identity, envelope)
            else:
                self.log.warning("message of an unknown sender dropped", identity=identity, pid=pid, type=envelope.header.type)

    async def _from_actor(self, process: Process, envelope: Envelope) -> None:
        process.pong_at = time.monotonic()
        if process.state is State.UNHEALTHY:
            process.state, process.dumped = State.READY, False
        if envelope.header.kind is Kind.BYE:
            process.state = State.BACKOFF  # it is about to end of itself: what is asked now is for its successor
        elif envelope.header.kind is not Kind.PONG:
            await self._switchboard.route(process.identity, process.name, envelope)
        elif process.state is State.READY and self._switchboard.has_held(process):
            await self._switchboard.ready(process)  # it had lost its connection, no more

    async def _from_client(self, identity: str, envelope: Envelope) -> None:
        self._idle.touch(time.monotonic())
        if envelope.header.kind is Kind.BYE:
            del self._table.clients[identity]
        else:
            await self._switchboard.route(identity, identity, envelope)

    async def _tick(self) -> None:
        """Pings, expiry, spares, idle clock: once a second."""
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
            self._look_up()
            if now - self._started_at > SETTLED_S and not self._idle.calls:
                self._template.import_late()
            self._look_after(now)

    def _look_after(self, now: float) -> None:
        if now - self._pruned_at > PRUNE_EVERY_S:
            self._pruned_at = now
            prune_logs(paths.logs_folder(), {log_name(process.name) for process in self._table})
        if self._lock.is_lost():
            self._finish("the home was removed")
        elif self._idle.idle_s(now, len(self._sessions.live())) > 60 * float(load_settings().values["node.idleMinutes"]):
            self._finish("idle")

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash(error)

    def crash(self, error: BaseException) -> None:
        """A supervisor that is wrong about its processes must not go on: stores and sessions wait for the next one."""
        self.log.error("supervisor failed", exc_info=error)
        os._exit(EX_SOFTWARE)

    def _finish(self, reason: str) -> None:
        if not self._end.done():
            self._end.set_result(reason)

    async def _shut_down(self, reason: str) -> None:
        """Gateway, sessions, spawners and the rest, store: each bounded by its role."""
        self.log.info("shutting down", reason=reason)
        notify_service("STOPPING=1")
        self._switchboard.closed = reason
        self._nursery.closing = True
        self._template.close()
        for order in sorted({role.stop_order for role in self._roles}):
            group = [process for process in self._table if process.role.stop_order == order]
            await asyncio.gather(*(self._nursery.stop(process, reason) for process in group))
        for endpoint in (paths.data_endpoint(), paths.mcp_endpoint()):  # of an actor that was ended while it was starting
            Path(endpoint.removeprefix("ipc://")).unlink(missing_ok=True)
        sweep_all(paths.scratch_folder())
        self._table_path.unlink(missing_ok=True)
        self.log.info("ended", reason=reason)

    def _reap(self) -> None:
        reap_strays({process.child.pid for process in self._table if process.child is not None})

    def _save(self) -> None:
        if not self._nursery.closing:
            self._table.save(self._table_path)

    # What the nursery tells

    async def process_died(self, process: Process, how: str, by_itself: bool) -> None:
        if by_itself:
            self._switchboard.blame(process)
        await self._switchboard.died(process, how)
        if not process.leaving and not self._sessions.is_warm(process):
            await self._publish(ActorGone(name=process.name, session_id=process.session_id, how=how))

    async def process_gave_up(self, process: Process) -> None:
        await self._switchboard.gave_up(process)
        if self._sessions.is_warm(process):
            return  # the next session gets new ones
        await self._publish(ActorGone(name=process.name, session_id=process.session_id, how=process.last_error or "", gave_up=True))
        if process.role.name == "session" and process.session_id is not None:  # lost: the store has marked it, its spawner goes too
            self._nursery.spawn_task(self._sessions.close(process.session_id, "its session is lost"))

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
