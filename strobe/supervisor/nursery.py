"""Starts processes, hears of their deaths, restarts them, ends them. What that means for messages, its owner decides."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol

from strobe import paths
from strobe.runtime.log import Logger
from strobe.supervisor.forking import Template
from strobe.supervisor.process import Process, State, start_ticks
from strobe.supervisor.scratch import sweep
from strobe.supervisor.table import Table

READY_S: Final = 30.0
UNHEALTHY_S: Final = 5.0
HUNG_S: Final = 15.0
KILL_GRACE_S: Final = 2.0


class Owner(Protocol):
    async def process_died(self, process: Process, how: str, by_itself: bool) -> None:
        """Before the process is restarted. `by_itself`: it crashed, nobody killed it."""

    async def process_gave_up(self, process: Process) -> None: ...
    async def process_sleeps(self, process: Process) -> None:
        """It is restarted by the next ask to it."""

    def say_bye(self, process: Process, reason: str) -> None: ...
    def crash(self, error: BaseException) -> None: ...


class Nursery:
    def __init__(self, table: Table, bus: str, template: Template, owner: Owner, changed: Callable[[], None], log: Logger) -> None:
        self._table = table
        self._bus = bus
        self.template = template
        self._owner = owner
        self._changed = changed
        self.log = log
        self.closing = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, process: Process) -> None:
        """Spawns it and watches it; READY comes by its HELLO, or in 30 s it is killed."""
        if self.closing:
            return
        try:
            process.spawn(self._bus, self.template)
        except OSError as error:  # no more processes, files or memory: tried again like a death
            process.state, process.last_error = State.BACKOFF, f"cannot be started: {error}"
            self.log.error("cannot be started", actor=process.name, error=str(error))
            self.spawn_task(self._again(process))
            return
        self.log.info("started", actor=process.name, pid=process.pid, generation=process.generation)
        self.watch(process, READY_S)

    def watch(self, process: Process, ready_s: float) -> None:
        """Hears of the end of `process`, ours or a dead supervisor's."""
        assert process.pidfd is not None
        loop = asyncio.get_running_loop()
        loop.add_reader(process.pidfd, self._ended, process, process.pidfd)
        loop.call_later(ready_s, self._check_ready, process, process.generation)
        self._changed()

    def _check_ready(self, process: Process, generation: int) -> None:
        if process.generation == generation and process.state is State.STARTING and not process.gone.is_set():
            self.log.error("not ready in time", actor=process.name, pid=process.pid)
            process.signal(signal.SIGUSR1)
            asyncio.get_running_loop().call_later(0.2, process.signal, signal.SIGKILL)

    def _ended(self, process: Process, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        process.kill_group()  # before it is reaped: its group id cannot be anyone else's yet
        status = process.child.wait() if process.child is not None else None
        process.pidfd, process.child = None, None
        self.spawn_task(self._died(process, status))

    async def _died(self, process: Process, status: int | None) -> None:
        how = describe(status)
        was_leaving = process.leaving
        process.state = State.STOPPED if was_leaving or self.closing else State.BACKOFF
        self.log.log(20 if was_leaving else 40, "ended", actor=process.name, pid=process.pid, how=how)
        if not was_leaving:
            process.last_error = " · ".join(part for part in (how, process.tail()[-300:]) if part)
        process.gone.set()
        if process.role.scratch:
            await asyncio.to_thread(sweep, paths.scratch_folder(process.identity))
        # faulthandler reads the frames of threads that run on meanwhile: a dump can be what it died of
        process.fell = status not in (None, 0, -signal.SIGKILL, -signal.SIGTERM) and not process.dumped
        await self._owner.process_died(process, how, by_itself=process.fell)
        process.pid = None
        reap_strays({p.pid for p in self._table if p.child is not None})
        if not (was_leaving or process.leaving or self.closing):
            await self._again(process)
        self._changed()

    async def _again(self, process: Process) -> None:
        """Restart now, later, when asked for, or after a rest."""
        delay_s = process.restarts.delay_s(time.monotonic())
        process.recovering = process.session_id is not None
        if delay_s is None:
            process.state = State.FAILED
            self.log.error("gave up", actor=process.name, deaths=process.restarts.total, last_error=process.last_error)
            if not process.role.per_session:  # a session's process is replaced by the next session's
                rest_s = process.restarts.rest_s()
                process.rests_until = time.monotonic() + rest_s
                asyncio.get_running_loop().call_later(rest_s, self._restart, process)
            await self._owner.process_gave_up(process)
        elif process.role.on_demand and process.session_id is not None:
            process.state = State.STOPPED
            await self._owner.process_sleeps(process)
        else:
            asyncio.get_running_loop().call_later(delay_s, self._restart, process)

    def _restart(self, process: Process) -> None:
        if process.state in (State.BACKOFF, State.FAILED) and not process.leaving:
            self.start(process)

    async def stop(self, process: Process, reason: str) -> None:
        """BYE, then TERM, then KILL. Returns when it is gone; it is not restarted."""
        process.leaving = True
        if process.pid is None:
            process.state = State.STOPPED
            return
        if process.state is State.STARTING:
            process.signal(signal.SIGTERM)  # it may not be connected yet: a BYE would be lost
        elif process.state in (State.READY, State.UNHEALTHY):
            self._owner.say_bye(process, reason)
        for wait_s, number in ((process.role.stop_s, signal.SIGTERM), (KILL_GRACE_S, signal.SIGKILL), (KILL_GRACE_S, signal.SIGKILL)):
            try:
                async with asyncio.timeout(wait_s):
                    await process.gone.wait()
                    return
            except TimeoutError:
                self.log.warning("does not end", actor=process.name, pid=process.pid, signal=number.name)
                process.signal(number)

    def check_health(self, now: float) -> list[Process]:
        """Processes to ping. One silent for 5 s is unhealthy (its stacks go to its stderr log), for 15 s it is killed."""
        awake = [process for process in self._table if process.state in (State.READY, State.UNHEALTHY)]
        for process in awake:
            silent_s = now - process.pong_at
            if silent_s > HUNG_S:
                self.log.error("hung", actor=process.name, silent_s=round(silent_s, 1))
                process.state = State.BACKOFF  # what is asked now is for its successor
                process.signal(signal.SIGKILL)
            elif silent_s > UNHEALTHY_S and not process.dumped:
                self.log.warning("unhealthy", actor=process.name, silent_s=round(silent_s, 1))
                process.state = State.UNHEALTHY
                process.dumped = True
                process.signal(signal.SIGUSR1)
        return awake

    def spawn_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs `work` to its end. An exception in it ends the supervisor: see Supervisor._crash."""
        task = asyncio.get_running_loop().create_task(work, context=Context())  # not in the name of whatever is handled now
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._owner.crash(error)


def describe(status: int | None) -> str:
    """Popen's returncode in words; None: not our child, so nobody knows."""
    if status is None:
        return "ended"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def reap_strays(ours: set[int | None]) -> None:
    """Reaps orphans that came to us as subreaper (keepers, helpers of dead actors). Children of ours wait for their own watcher."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in ours:
            return
        os.waitpid(found.si_pid, os.WNOHANG)


def is_alive(pid: int | None, ticks: int) -> bool:
    return pid is not None and ticks != 0 and start_ticks(pid) == ticks
