"""What a session answers about its target's memory. Part of the session actor."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, Final

from actors.session.memory.looking import Look, Looking
from actors.session.memory.polling import Poll, take
from actors.session.memory.reading import read_all
from actors.session.memory.request import Request
from actors.session.memory.writing import write_all
from actors.session.target import Target
from actors.session.tracing import Tracing
from strobe.errors import Code, StrobeError
from strobe.protocol.session import MemoryReply, PollMemory, PollReply, ReadMemory, WriteMemory
from strobe.runtime import Context, handles

POLLS_MAX: Final = 4
TARGETS_MAX: Final = 16


class MemoryAnswers:
    """The session has this as a base; it gives it `_launched`."""

    _looking: tuple[Target, Looking] | None = None
    _polls: dict[str, Poll] | None = None
    _poll_number: int = 0

    def _launched(self) -> tuple[Target, Tracing]:
        raise NotImplementedError

    @handles(ReadMemory)
    async def read_memory(self, ask: ReadMemory, context: Context) -> MemoryReply:
        del context
        target, looking = self._memory(len(ask.targets))
        results, _, warnings = await looking.with_look(Request.of(ask.targets), ask.depth, partial(read_all, folder=target.folder, tokens=ask.tokens))
        return MemoryReply(results=results, warnings=warnings)

    @handles(WriteMemory, completes=True)
    async def write_memory(self, ask: WriteMemory, context: Context) -> MemoryReply:
        del context
        target, looking = self._memory(len(ask.targets), living=True)
        _, look, warnings = await looking.with_look(Request.of(ask.targets), 1, _nothing)
        results = await asyncio.to_thread(write_all, look, str(target.pool.path), ask.tokens)
        return MemoryReply(results=results, warnings=warnings)

    @handles(PollMemory, completes=True)
    async def poll_memory(self, ask: PollMemory, context: Context) -> PollReply:
        del context
        target, looking = self._memory(len(ask.targets), living=True)
        polls = self._polls = self._polls if self._polls is not None else {}
        if len(polls) >= POLLS_MAX:
            what = f"{POLLS_MAX} polls of this session run already."
            raise StrobeError(Code.LIMIT_EXCEEDED, what, "Wait until one has ended, or put all targets into one.", value=POLLS_MAX)
        results, look, warnings = await looking.with_look(Request.of(ask.targets), ask.depth, partial(read_all, folder=target.folder, tokens=ask.tokens))
        if all("error" in one for one in results):
            return PollReply(results=results, warnings=warnings, poll="", interval_ms=ask.interval_ms, achieved_interval_ms=0, expected_samples=0)
        cost_ms = await asyncio.to_thread(_cost_ms, look)
        self._poll_number += 1
        name = f"poll-{self._poll_number}"
        loop = asyncio.get_running_loop()

        def ended(poll: Poll) -> None:
            loop.call_soon_threadsafe(polls.pop, poll.id, None)

        poll = polls[name] = Poll(name, look, target.collector, ask.interval_ms, ask.duration_ms, ask.on_change, ended)
        poll.start()
        achieved = max(float(ask.interval_ms), cost_ms)
        return PollReply(
            results=results, warnings=warnings, poll=name, interval_ms=ask.interval_ms, achieved_interval_ms=round(achieved, 3),
            expected_samples=int(ask.duration_ms / achieved) + 1,
        )  # fmt: skip

    async def end_polls(self, *, target_gone: bool) -> None:
        """Their last events are told when this returns. A target that has ended ends them by itself."""
        for poll in list((self._polls or {}).values()):
            await asyncio.to_thread(poll.join if target_gone else poll.stop)

    def _memory(self, targets: int, *, living: bool = False) -> tuple[Target, Looking]:
        target, tracing = self._launched()
        if target.core is None:
            target.require_running()
        elif living:
            what = f"{target.session_id} is a core dump: it can be read, not written or polled."
            raise StrobeError(Code.PROCESS_EXITED, what, 'Use action "read".', value=target.session_id)
        if not 1 <= targets <= TARGETS_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{targets} targets; one call takes 1 to {TARGETS_MAX}.", "Make several calls.", value=targets)
        if self._looking is None or self._looking[0] is not target:
            self._looking = (target, Looking(tracing.actor, target, tracing.lock))
        return self._looking


def _nothing(look: Look) -> Any:
    """All that writing needs looked up is looked up without it."""
    for wanted in look.request.wanted:
        look.outcome(wanted)


def _cost_ms(look: Look) -> float:
    """Of one sample."""
    begun = time.perf_counter()
    look.again()
    take(look)
    return (time.perf_counter() - begun) * 1000
