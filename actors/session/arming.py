"""Patterns that wait for libraries: the thread that has loaded one tells, and waits until its functions are hooked (agent/native/recorder_loading.c)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from actors.session.ptrace.code_map import CodeMap
from actors.session.target import Target
from strobe import futex
from strobe.errors import StrobeError

WAIT_S: Final = 0.5
POLL_S: Final = 0.1
PATIENCE_S: Final = 2  # of a thread that has loaded a library (WAIT_NS); then it goes on

Look = Callable[[bool], Awaitable[None]]


class Arming:
    """Of one session. `look(came_back)` makes what is hooked match what is mapped now; `came_back`: libraries may have gone and come back meanwhile."""

    def __init__(self, target: Target, lock: asyncio.Lock, look: Look) -> None:
        self._target = target
        self._lock = lock
        self._look = look
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._unloads = -1
        self.late = 0  # how often a thread went on before its library was hooked
        self.problem: str | None = None  # of the last look

    @property
    def is_armed(self) -> bool:
        return self._thread is not None and not self._over.is_set()

    def settle(self) -> None:
        """After a change, under the lock: armed as long as there are patterns for a recorder that can tell."""
        journal = self._target.journal
        wanted = bool(journal.probes.patterns) and journal.recorder == "native" and not journal.stopped and not self._target.life.target_gone
        if wanted and not self.is_armed:
            self._begin()
        elif not wanted and self.is_armed:
            self.end()

    def end(self) -> None:
        """Nobody waits any more."""
        if not self.is_armed:
            return
        pool = self._target.pool
        self._over.set()
        pool.header["loading_pid"] = 0
        futex.wake(pool.word("loads_seen"))
        futex.wake(pool.word("loads"))
        self._thread = None

    def _begin(self) -> None:
        pool = self._target.pool
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._unloads = -1  # nobody knows what went before this
        pool.header["loads_seen"] = (int(pool.header["loads"]) - 1) & 0xFFFFFFFF  # one look at once: what came before this was not counted
        pool.header["loading_pid"] = self._target.pid
        self._thread = threading.Thread(target=self._watch, args=(self._over, self._loop), name="loading", daemon=True)
        self._thread.start()

    def _watch(self, over: threading.Event, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: asks for a look whenever libraries came, and now and then when some went. Where the recorder does not see them come, they are
        counted here."""
        pool, sees = self._target.pool, self._target.journal.sees_loading
        counter, told = pool.word("loads"), int(pool.header["loads_seen"])
        went, code = int(pool.header["unloads"]), None
        while not over.is_set():
            now = int(pool.header["loads"])
            if now == told:
                futex.wait(counter, now, WAIT_S if sees else POLL_S)
                if not sees and code != (code := self._code()):
                    pool.header["loads"] += 1
                if int(pool.header["loads"]) != now or int(pool.header["unloads"]) == went:
                    continue
            told, went = now, int(pool.header["unloads"])
            try:
                loop.call_soon_threadsafe(self._ask)
            except RuntimeError:  # the loop is closed: the session ends
                return

    def _code(self) -> CodeMap | None:
        try:
            return CodeMap.read(f"/proc/{self._target.pid}/maps")
        except OSError:  # it has ended
            return None

    def _ask(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._until_seen())

    async def _until_seen(self) -> None:
        header = self._target.pool.header
        while self.is_armed:
            async with self._lock:
                if self.is_armed:
                    await self.look()
            if header["loads"] == header["loads_seen"]:
                return

    def told(self) -> list[str]:
        """What went wrong since it was asked for the last time."""
        found = []
        if self.problem is not None:
            found.append(f"A library that was loaded could not be traced: {self.problem}")
        if self.late:
            found.append(f"{self.late} libraries ran on before they were hooked, as that took longer than {PATIENCE_S} s: their first calls are missing.")
        self.problem, self.late = None, 0
        return found

    async def look(self) -> None:
        """Once, under the lock. Who waits goes on afterwards, whatever came of it."""
        pool = self._target.pool
        header = pool.header
        seen, unloads = int(header["loads"]), int(header["unloads"])
        try:
            await self._look(unloads != self._unloads or not self._target.journal.sees_loading)
            self._unloads, self.problem = unloads, None
        except StrobeError as error:  # the target has ended, a limit, the indexer is away: told with the next debug_trace
            self.problem = error.what
        finally:
            header["loads_seen"] = seen
            futex.wake(pool.word("loads_seen"))
            if self.is_armed and not int(header["loading_pid"]):
                self.late += 1
                header["loading_pid"] = self._target.pid
