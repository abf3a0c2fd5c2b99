"""The spawner's process: one per session, only where something must be injected."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from actors.spawner.hosting import Hosting, Started
from actors.spawner.present import find_recorder
from strobe.artifacts import artifact
from strobe.errors import StrobeError
from strobe.protocol.base import Done
from strobe.protocol.spawner import Enter, FindRecorder, Prepare, PrepareReply, RecorderReply
from strobe.runtime import Actor, Context, handles


def scratch() -> Path:
    """The folder of all: our own is swept when we end, which a host may outlive."""
    return Path(os.environ["TMPDIR"]).parent


class Spawner(Actor):
    role = "spawner"
    forked_host: Started | None = None  # what __main__ has begun with

    async def starting(self) -> None:
        self._host = Hosting(scratch(), self.forked_host)
        self._warming = self.loop.create_task(self._warm())

    async def stopping(self, reason: str) -> None:
        del reason
        self._warming.cancel()
        await self._host.close()

    async def _warm(self) -> None:
        """Before there is a target. Where it fails (ptrace refused, say) the first visit fails as well, and tells its caller why."""
        try:
            await self._host.warm()
        except StrobeError as error:
            self.log.warning("warming up failed", error=repr(error))

    @handles(FindRecorder)
    async def find_recorder(self, ask: FindRecorder, context: Context) -> RecorderReply:
        del context
        return await asyncio.to_thread(find_recorder, ask.pid, artifact("strobe-recorder.so"))

    @handles(Enter, completes=True)
    async def enter(self, ask: Enter, context: Context) -> Done:
        del context
        await self._host.enter(ask)
        return Done()

    @handles(Prepare, completes=True)
    async def prepare(self, ask: Prepare, context: Context) -> PrepareReply:
        del context
        return await self._host.prepare(ask)
