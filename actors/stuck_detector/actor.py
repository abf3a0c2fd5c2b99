"""Says of process trees whether they are stuck, on what, and who waits for whom."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.stuck_detector.diagnosis import Diagnosis
from actors.stuck_detector.sample import tree
from actors.stuck_detector.watching import Watched
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Done
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply, Suspicions, SuspicionsReply, Unwatch, Watch
from strobe.runtime import Actor, Context, handles

WATCHED_MAX: Final = 64


class StuckDetector(Actor):
    role = "stuck_detector"

    async def starting(self) -> None:
        self._watched: dict[str, tuple[Watched, asyncio.Task[None]]] = {}
        self._diagnosis = Diagnosis(self.ask)

    async def stopping(self, _reason: str) -> None:
        for _, task in self._watched.values():
            task.cancel()

    @handles(Diagnose)
    async def diagnose(self, ask: Diagnose, _: Context) -> DiagnoseReply:
        return await self._diagnosis.of(ask.pid, ask.stacks)

    @handles(Watch)
    async def watch(self, ask: Watch, _: Context) -> Done:
        found = self._watched.get(ask.key)
        if found and found[0].pid == ask.pid and not found[1].done():
            return Done()
        await asyncio.to_thread(tree, ask.pid)
        self._forget(ask.key)
        for key in [key for key, (_, task) in self._watched.items() if task.done()]:
            self._forget(key)
        if len(self._watched) >= WATCHED_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{WATCHED_MAX} process trees are watched already.", "Stop a session or a test run.", value=ask.key)
        watched = Watched(ask.pid, self._diagnosis)
        task = asyncio.create_task(watched.run(), name=f"watch {ask.key}")
        task.add_done_callback(self._ended)
        self._watched[ask.key] = watched, task
        return Done()

    @handles(Unwatch)
    async def unwatch(self, ask: Unwatch, _: Context) -> Done:
        self._forget(ask.key)
        return Done()

    @handles(Suspicions)
    async def suspicions(self, ask: Suspicions, _: Context) -> SuspicionsReply:
        """Not watched, or gone: an empty answer."""
        found = self._watched.get(ask.key)
        return found[0].suspicions() if found and not found[1].done() else SuspicionsReply(watched=False)

    def _forget(self, key: str) -> None:
        found = self._watched.pop(key, None)
        if found:
            found[1].cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash(error)
