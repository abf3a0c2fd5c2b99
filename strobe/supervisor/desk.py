"""What the supervisor answers (strobe/protocol/supervisor.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import ClassVar

from strobe import __version__, paths
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Done
from strobe.protocol.supervisor import (
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
)
from strobe.runtime.context import Context
from strobe.runtime.handlers import Handlers, collect, handles, on_notice
from strobe.supervisor.idle import IdleClock
from strobe.supervisor.nursery import Nursery
from strobe.supervisor.process import Process
from strobe.supervisor.sessions import Sessions
from strobe.supervisor.table import Table


class Desk:
    """`finish` begins the node's end."""

    HANDLERS: ClassVar[Handlers]

    def __init__(self, table: Table, nursery: Nursery, sessions: Sessions, idle: IdleClock, finish: Callable[[str], None]) -> None:
        self._table = table
        self._nursery = nursery
        self._sessions = sessions
        self._idle = idle
        self._finish = finish
        self._started = time.monotonic()

    @handles(Status)
    async def status(self, _ask: Status, _: Context) -> StatusReply:
        now = time.monotonic()
        return StatusReply(
            pid=os.getpid(),
            version=__version__,
            home=str(paths.home()),
            uptime_s=round(now - self._started, 3),
            idle_s=round(now - self._idle.active_at, 3),
            clients=self._idle.clients,
            actors=[_row(process, now) for process in self._table],
        )

    @handles(OpenSession, completes=True)
    async def open_session(self, ask: OpenSession, _: Context) -> OpenSessionReply:
        paths.safe_name(ask.session_id, what="session id")
        await self._sessions.open(ask.session_id, injects=ask.injects)
        return OpenSessionReply(session=f"session:{ask.session_id}", spawner=f"spawner:{ask.session_id}")

    @handles(CloseSession, completes=True)
    async def close_session(self, ask: CloseSession, _: Context) -> Done:
        await self._sessions.close(ask.session_id, "closed")
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
        self._finish(ask.reason)
        return Done()

    @on_notice(ClientCount)
    async def client_count(self, notice: ClientCount) -> None:
        self._idle.counted(notice.clients, notice.calls_in_flight, time.monotonic())

    @on_notice(SessionEnded)
    async def session_ended(self, notice: SessionEnded) -> None:
        await self._sessions.close(notice.session_id, "ended")


Desk.HANDLERS = collect(Desk)


def _row(process: Process, now: float) -> ActorStatus:
    return ActorStatus(
        name=process.name,
        role=process.role.name,
        pid=process.pid,
        generation=process.generation,
        state=str(process.state),
        uptime_s=round(now - process.started_at, 3) if process.pid is not None else 0.0,
        restarts=process.restarts.total,
        last_error=process.last_error,
    )
