"""A session's two processes, and the spare pair that waits warm for the next one."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from strobe.errors import Code, StrobeError
from strobe.runtime.log import Logger
from strobe.supervisor.forking import Template
from strobe.supervisor.nursery import Nursery
from strobe.supervisor.process import Process, State
from strobe.supervisor.table import Table
from strobe.supervisor.topology import Role

PAIR_READY_S: Final = 20.0
WARM_UP_AFTER_S: Final = 1.0
WARM_UP_LATER_S: Final = 20.0
SPAWNER_GRACE_S: Final = 5.0  # how long a ready session waits for a spawner that may never come: there is direct mode

Adopter = Callable[[Process, str, str, bool], Awaitable[None]]  # process, new name, session id, recovering

Remover = Callable[[Process], Awaitable[None]]  # told of a process that has no successor: who still asks it is answered


class Sessions:
    def __init__(
        self, table: Table, nursery: Nursery, template: Template, roles: tuple[Role, ...],
        adopt: Adopter, removed: Remover, changed: Callable[[], None], log: Logger,
    ) -> None:  # fmt: skip
        self._table = table
        self._nursery = nursery
        self._template = template
        self._roles = tuple(role for role in roles if role.per_session)
        self._adopt = adopt
        self._removed = removed
        self._changed = changed
        self.log = log
        self._numbers = itertools.count(1)
        self._warm: list[Process] = []
        self._taking = asyncio.Lock()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of sessions that are being opened or closed
        self._warm_after = 0.0  # CLOCK_MONOTONIC

    def live(self) -> set[str]:
        return {process.session_id for process in self._table if process.session_id is not None}

    def is_warm(self, process: Process) -> bool:
        return process in self._warm

    def warm_up(self) -> None:
        """Starts the spare pair, unless it is there or a session has just been opened: two processes that start would take the
        processor from the launch that follows."""
        if time.monotonic() >= self._warm_after:
            self._start_pair()

    def _start_pair(self) -> None:
        missing = [role for role in self._roles if all(process.role is not role for process in self._warm)]
        if not missing or self._nursery.closing:
            return
        number = next(number for number in self._numbers if not self._taken(number))
        for role in missing:
            process = Process(_spare_name(role, number), role)
            self._warm.append(process)
            self._table.add(process)
            process.state = State.STARTING
            self._nursery.spawn_task(self._start(process))

    async def _start(self, process: Process) -> None:
        await self._template.wait_ready()
        if process.pid is None and not process.leaving:
            self._nursery.start(process)

    def _taken(self, number: int) -> bool:
        """A process keeps the identity that it began with, through its session and beyond its supervisor."""
        names = tuple(f"{_spare_name(role, number)}~" for role in self._roles)
        return any(process.identity.startswith(names) for process in self._table)

    def _one_at_a_time(self, session_id: str) -> asyncio.Lock:
        """Opening and closing a session follow one another as asked: a launch that is cancelled while its pair gets ready is closed once that
        has happened, and only then can the next session take its id."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    async def open(self, session_id: str, *, injects: bool = True) -> list[Process]:
        """The pair of `session_id`, or its session process alone, ready and adopted. Raises StrobeError."""
        async with self._one_at_a_time(session_id):
            return await self._open(session_id, injects)

    async def _open(self, session_id: str, injects: bool) -> list[Process]:
        if not self._roles:
            raise StrobeError(Code.ACTOR_UNAVAILABLE, "This node runs no sessions (STROBE_ROLES).", "Start it with session and spawner.", value=session_id)
        if session_id in self.live():
            raise StrobeError(Code.SESSION_EXISTS, f"Session {session_id} already has its processes.", "Stop it first.", value=session_id)
        pair = await self._pair(injects)
        try:
            await asyncio.gather(*(self._take(process, session_id) for process in pair))
        except (StrobeError, TimeoutError) as error:
            await asyncio.gather(*(self._remove(process, "could not be opened") for process in pair))
            why = error.what if isinstance(error, StrobeError) else f"none was ready within {PAIR_READY_S:g} s."
            text = f"Session {session_id} got no processes: {why}"
            raise StrobeError(Code.ACTOR_UNAVAILABLE, text, "Retry; see `strobe-ctl actors`.", value=session_id) from error
        finally:
            self._warm_after = time.monotonic() + (WARM_UP_AFTER_S if injects else WARM_UP_LATER_S)
        return pair

    async def _pair(self, injects: bool) -> list[Process]:
        """The spare pair, or a new one where there is none or its session process has failed for good; its session process alone."""
        async with self._taking:
            if any(process.state is State.FAILED and not process.role.on_demand for process in self._warm):
                failed, self._warm = self._warm, []
                await asyncio.gather(*(self._remove(process, "its session process failed") for process in failed))
            self._start_pair()
            pair = [process for process in self._warm if injects or not process.role.on_demand]
            self._warm = [process for process in self._warm if process not in pair]
            return pair

    async def _take(self, process: Process, session_id: str) -> None:
        name = f"{process.role.name}:{session_id}"
        optional = process.role.on_demand
        try:
            grace_s = 0.0 if process.state is State.FAILED else SPAWNER_GRACE_S
            async with asyncio.timeout(grace_s if optional else PAIR_READY_S):
                await process.ready.wait()
        except TimeoutError:
            if not optional:
                raise
            self.log.warning("not ready; started again when asked for", actor=process.name)
            process.session_id, process.leaving = session_id, False
            self._table.rename(process, name)
            return
        await self._adopt(process, name, session_id, False)

    async def close(self, session_id: str, reason: str) -> None:
        """Ends what belongs to a session, the session first: it may still need its spawner to leave the target."""
        async with self._one_at_a_time(session_id):
            await self._close(session_id, reason)

    async def _close(self, session_id: str, reason: str) -> None:
        mine = [process for process in self._table if process.session_id == session_id]
        for process in mine:
            process.leaving = True
        for process in sorted(mine, key=lambda process: process.role.stop_order):
            await self._remove(process, reason)
        self._changed()

    async def _remove(self, process: Process, reason: str) -> None:
        await self._nursery.stop(process, reason)
        self._table.remove(process)
        await self._removed(process)


def _spare_name(role: Role, number: int) -> str:
    return f"{role.name}:warm-{number}"
