"""The spawner's process: one per session, only where something must be injected."""

from __future__ import annotations

from actors.spawner.injector import Injector
from strobe.artifacts import artifact
from strobe.protocol.base import Done
from strobe.protocol.spawner import Prepare, PrepareReply, Warm
from strobe.runtime import Actor, Context, handles


class Spawner(Actor):
    role = "spawner"

    async def starting(self) -> None:
        self._injector = Injector(artifact("strobe-recorder.so"), artifact("agent.js"))

    async def stopping(self, reason: str) -> None:
        del reason
        await self._injector.close()

    @handles(Warm, completes=True)
    async def warm(self, ask: Warm, context: Context) -> Done:
        del ask, context
        await self._injector.warm()
        return Done()

    @handles(Prepare, completes=True)
    async def prepare(self, ask: Prepare, context: Context) -> PrepareReply:
        del context
        return await self._injector.prepare(ask)
