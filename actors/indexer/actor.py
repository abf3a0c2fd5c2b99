"""The indexer: symbols, types, lines and saved stacks. All parsing happens in worker processes; this process only passes asks on."""

from __future__ import annotations

from typing import Any, Final

from actors.indexer.worker_process import Quarantine, WorkerProcess
from strobe.protocol.base import Ask
from strobe.protocol.indexer import Load, ModuleFacts, Plans, PlansReply, Resolve, ResolveReply
from strobe.runtime import Actor, Context, handles

DEADLINE_S: Final = 15.0  # where the asker gave none, and at most


class Indexer(Actor):
    role = "indexer"

    async def starting(self) -> None:
        self._worker = WorkerProcess(Quarantine())
        await self._worker.start()

    async def stopping(self, reason: str) -> None:
        del reason
        await self._worker.stop()

    @handles(Load)
    async def load(self, ask: Load, context: Context) -> ModuleFacts:
        reply: ModuleFacts = await self._pass(ask, context)
        return reply

    @handles(Resolve)
    async def resolve(self, ask: Resolve, context: Context) -> ResolveReply:
        reply: ResolveReply = await self._pass(ask, context)
        return reply

    @handles(Plans)
    async def plans(self, ask: Plans, context: Context) -> PlansReply:
        reply: PlansReply = await self._pass(ask, context)
        return reply

    async def _pass(self, ask: Ask, context: Context) -> Any:
        return await self._worker.ask(ask, min(DEADLINE_S, context.deadline_s))
