"""One look at a running target: names resolved, expressions evaluated, values shown. Pure work is done in a thread; the loop only asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from actors.session.memory.debug_info import DebugInfo, Known
from actors.session.memory.live import LiveMemory
from actors.session.memory.of_core import CoreMemory, CoreThreadLocals
from actors.session.memory.places import Places
from actors.session.memory.request import Request, Wanted, outcome_of
from actors.session.memory.showing import Shower
from actors.session.memory.symbols import LiveSymbols
from actors.session.memory.thread_locals import ThreadLocals
from actors.session.target import Asker, Target
from strobe.expression import Outcome
from strobe.values.registry import Formatters
from strobe.values.typed import ProgramScope
from strobe.values.typed_world import World

T = TypeVar("T")
ROUNDS: Final = 3  # of looking up what vtables and function pointers in the values stand for


@dataclass
class Look:
    """What is needed to evaluate and show a request's targets, as often as wanted."""

    request: Request
    known: Known
    memory: LiveMemory
    formatters: Formatters
    locals_: ThreadLocals
    depth: int

    def __post_init__(self) -> None:
        self.symbols = LiveSymbols(self.known)
        self.world = World(self.known.bundle.table, self.memory, self.formatters)
        self._scopes: dict[int, ProgramScope] = {}

    def outcome(self, wanted: Wanted) -> Outcome:
        return outcome_of(wanted, self._scope(wanted))

    def shower(self) -> Shower:
        return Shower(self.memory, self.formatters, self.symbols, self.depth)

    def again(self) -> None:
        """The next look: memory, and where references and thread-locals lead, are looked at anew."""
        self.memory.forget()
        self._scopes.clear()

    def _scope(self, wanted: Wanted) -> ProgramScope:
        tid = wanted.target.thread_id or self.memory.pid
        if tid not in self._scopes:
            typed = frozenset(one.target.variable or "" for one in self.request.wanted if one.target.type is not None)
            places = Places(self.known, self.world, self.memory, self.locals_, tid)
            reply = self.known.reply
            self._scopes[tid] = ProgramScope(self.world, places.variables(typed), reply.types, reply.near)
        return self._scopes[tid]


class Looking:
    """Of one session."""

    def __init__(self, actor: Asker, target: Target, lock: asyncio.Lock) -> None:
        """`lock`: held while the target's threads are stopped, so that only one stops them."""
        self._target = target
        self._lock = lock
        self._info = DebugInfo(actor, target)
        self._locals = ThreadLocals(target.pid) if target.core is None else CoreThreadLocals(target.core)
        self._formatters: tuple[str, Formatters, list[str]] | None = None

    async def with_look(self, request: Request, depth: int, work: Callable[[Look], T]) -> tuple[T, Look, list[str]]:
        """`work` on a look, again when it has found addresses whose names or types can be looked up; and what to tell the caller."""
        formatters, warnings = await asyncio.to_thread(self._formatters_now)
        self._locals.renewed()
        codes: set[int] = set()
        functions: set[int] = set()
        for round_ in range(ROUNDS):
            known = await self._info.about(request.names, request.types, codes, functions)
            look = Look(request, known, self._memory(), formatters, self._locals, depth)
            done = await self._worked(look, work)
            fresh = (look.symbols.wanted_codes - codes, look.symbols.wanted_functions - functions)
            if not any(fresh) or round_ == ROUNDS - 1:
                break
            codes |= fresh[0]
            functions |= fresh[1]
        return done, look, [*warnings, *known.reply.problems, *_incomplete(known)]

    def _memory(self) -> LiveMemory:
        core = self._target.core
        return LiveMemory(self._target.require_running()) if core is None else CoreMemory(core)

    async def _worked(self, look: Look, work: Callable[[Look], T]) -> T:
        if any(one.kind == "thread_local" for found in look.known.reply.variables.values() for one in found):
            async with self._lock:
                return await asyncio.to_thread(work, look)
        return await asyncio.to_thread(work, look)

    def _formatters_now(self) -> tuple[Formatters, list[str]]:
        """The project's; read again only when the project is another."""
        root = self._target.journal.project_root
        if self._formatters is None or self._formatters[0] != root:
            self._formatters = (root, *Formatters.of(Path(root) if root else None))
        return self._formatters[1], self._formatters[2]


def _incomplete(known: Known) -> list[str]:
    return [] if known.reply.complete else ["Debug info was not searched to the end in time: read again, or write names with their scopes."]
