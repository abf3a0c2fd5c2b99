"""The indexer: symbols, types, lines and saved stacks. All parsing happens in worker processes; this process only passes asks on.

One worker answers; the other builds line indexes (stage 2), which may take seconds, and leaves them in the cache. An ask that lines would
serve better waits for them within its deadline, and is answered without them after that.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from actors.indexer import cache
from actors.indexer.work import Answer, BuildLines
from actors.indexer.worker_process import Quarantine, WorkerProcess
from strobe.errors import StrobeError
from strobe.protocol.base import Ask
from strobe.protocol.indexer import (
    Demangle,
    FramesReply,
    Load,
    ModuleFacts,
    NamesReply,
    Plans,
    PlansReply,
    Resolve,
    ResolveReply,
    Symbolise,
    Unwind,
    Variables,
    VariablesReply,
)
from strobe.runtime import Actor, Context, handles

DEADLINE_S: Final = 15.0  # at most, whatever the asker allows
BUILD_S: Final = 120.0
RESERVE_S: Final = 0.5  # kept back for the second, better answer


class Indexer(Actor):
    role = "indexer"

    async def starting(self) -> None:
        quarantine = Quarantine()
        self._answering = WorkerProcess(quarantine)
        self._building = WorkerProcess(quarantine)
        self._builds: dict[tuple[str, str | None], asyncio.Task[bool]] = {}
        self._failed: set[tuple[str, str | None]] = set()
        self._warm = self.loop.create_task(self._warm_up())  # takes longer than READY should; the first ask waits for it

    async def _warm_up(self) -> None:
        try:
            await self._answering.start()
        except StrobeError as error:  # the first ask tries again, and tells
            self.log.error("worker did not start", error=str(error))
        try:
            freed = await asyncio.to_thread(cache.trim)
        except OSError as error:  # someone else's file, or one that is being written: the next start tries again
            self.log.warning("cache not trimmed", error=str(error))
        else:
            if freed:
                self.log.info("cache trimmed", bytes=freed)

    async def stopping(self, reason: str) -> None:
        del reason
        tasks = [self._warm, *self._builds.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._answering.stop()
        await self._building.stop()

    @handles(Load)
    async def load(self, ask: Load, context: Context) -> ModuleFacts:
        answer = await self._pass(ask, context)
        for path in answer.wanting:
            self._build(path, ask.symbols_path)
        reply: ModuleFacts = answer.reply
        return reply

    @handles(Resolve)
    async def resolve(self, ask: Resolve, context: Context) -> ResolveReply:
        reply: ResolveReply = await self._with_lines(ask, ask.symbols_path, context)
        return reply

    @handles(Plans)
    async def plans(self, ask: Plans, context: Context) -> PlansReply:
        reply: PlansReply = (await self._pass(ask, context)).reply
        return reply

    @handles(Demangle)
    async def demangle(self, ask: Demangle, context: Context) -> NamesReply:
        reply: NamesReply = (await self._pass(ask, context)).reply
        return reply

    @handles(Variables)
    async def variables(self, ask: Variables, context: Context) -> VariablesReply:
        reply: VariablesReply = (await self._pass(ask, context)).reply
        return reply

    @handles(Symbolise)
    async def symbolise(self, ask: Symbolise, context: Context) -> FramesReply:
        reply: FramesReply = await self._with_lines(ask, ask.symbols_path, context)
        return reply

    @handles(Unwind)
    async def unwind(self, ask: Unwind, context: Context) -> FramesReply:
        reply: FramesReply = await self._with_lines(ask, ask.symbols_path, context)
        return reply

    async def _pass(self, ask: Ask, context: Context) -> Answer:
        answer: Answer = await self._answering.ask(ask, min(DEADLINE_S, context.deadline_s))
        return answer

    async def _with_lines(self, ask: Ask, symbols_path: str | None, context: Context) -> Any:
        """The reply with lines where they can be had in time."""
        first = await self._pass(ask, context)
        builds = [build for path in first.wanting if (build := self._build(path, symbols_path)) is not None]
        wait = min(DEADLINE_S, context.deadline_s) - RESERVE_S
        if not builds or wait <= 0:
            return first.reply
        done, _ = await asyncio.wait(builds, timeout=wait)
        if not any(build.result() for build in done):
            return first.reply
        return (await self._pass(ask, context)).reply

    def _build(self, path: str, symbols_path: str | None) -> asyncio.Task[bool] | None:
        """The build of a file's lines, started now unless it runs; None when it failed before."""
        key = (path, symbols_path)
        if key in self._failed:
            return None
        if key not in self._builds:
            self._builds[key] = self.loop.create_task(self._run_build(path, symbols_path))
        return self._builds[key]

    async def _run_build(self, path: str, symbols_path: str | None) -> bool:
        """True when the lines are in the cache now."""
        key = (path, symbols_path)
        try:
            answer: Answer = await self._building.ask(BuildLines(path, symbols_path), BUILD_S)
            built = bool(answer.reply)
        except StrobeError as error:
            self.log.warning("no line index", path=path, error=str(error))
            built = False
        finally:
            self._builds.pop(key, None)
        if not built:
            self._failed.add(key)
        return built
