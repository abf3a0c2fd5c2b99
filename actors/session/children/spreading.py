"""Patterns that come later: hooked in the children that live already, forked or not, as in the target itself.

A process is held for the calls of the recorder in it (StoppedWorld), as the target is; the thunks are worked out apart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.session.children.entering import Entering, Program, spec_of
from actors.session.children.lingering import holders
from actors.session.ptrace import patching
from actors.session.ptrace.code_map import CodeMap
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import NewPlan
from actors.session.ptrace.reserving import reserve
from actors.session.tracing import PREPARE_S, Tracing
from strobe.errors import Code, StrobeError
from strobe.model.probe import Hook
from strobe.modules import RECORDER, maps_text, parse_mapped
from strobe.protocol.spawner import Patch, Prepare, PrepareReply

SPREAD_S: Final = 6.0  # all of it: a debug_trace waits
ENDBR64: Final = b"\xf3\x0f\x1e\xfa"
JUMP: Final = b"\xe9"


class Spreading:
    """Of one session."""

    def __init__(self, tracing: Tracing, entering: Entering) -> None:
        self._tracing = tracing
        self._target = tracing.target
        self._entering = entering

    async def spread(self) -> list[str]:
        """Answers warnings about processes that were left as they are."""
        target = self._target
        if target.journal.remote is None or target.journal.recorder != "native":
            return []
        status = target.keeper.status()
        found = await asyncio.to_thread(holders, target.pool.path, status.start_ticks)
        found.pop(status.pid, None)
        if not found:
            return []
        offset = target.journal.remote - _recorder_at(maps_text(status.pid))
        until = time.monotonic() + SPREAD_S
        late, why = 0, "there was no time for it"
        for pid, ticks in found.items():
            if time.monotonic() > until:
                late += 1
                continue
            try:
                await self._into(pid, ticks, offset)
            except (StrobeError, OSError) as error:
                if not isinstance(error, StrobeError) or error.code is not Code.PROCESS_EXITED:
                    late, why = late + 1, str(error)
        return [f"{late} of {len(found)} children that run already keep the hooks they had: {why}."] if late else []

    async def _into(self, pid: int, ticks: int, offset: int) -> None:
        text = maps_text(pid)
        mapped = parse_mapped(text)
        known = self._entering.programs.get(pid)
        if known is None or known.ticks != ticks:
            known = Program(ticks, [], forked=True)
        hooks = await self._entering.wanted(mapped, str(Path(f"/proc/{pid}/exe").readlink()))
        hooks = await asyncio.to_thread(_not_hooked, pid, hooks)
        if not hooks:
            return
        plans = [NewPlan(hook.id, hook.address, 0, hook.plan.ops) for hook in hooks]
        slabs, words = await asyncio.to_thread(reserve, pid, _recorder_at(text) + offset, plans)
        specs = [spec_of(hook, *pair) for hook, pair in zip(hooks, words, strict=True)]
        ask = Prepare(pid=pid, pool_path=str(self._target.pool.path), hooks=specs, slabs=slabs)
        reply: PrepareReply = await self._tracing.actor.ask(f"spawner:{self._target.session_id}", ask, deadline_s=PREPARE_S)
        await asyncio.to_thread(patching.install, pid, reply.writes, reply.patches, CodeMap.parse(text))
        self._entering.programs[pid] = Program(ticks, [*known.patches, *_users(reply.patches)], known.forked)


def _users(patches: Sequence[Patch]) -> list[Patch]:
    return [patch for patch in patches if patch.hook]


def _recorder_at(maps: str) -> int:
    """Where the recorder is mapped. Errors: PROCESS_EXITED."""
    for line in maps.splitlines():
        if line.endswith(f"/{RECORDER}"):
            return int(line.split("-")[0], 16)
    raise StrobeError(Code.PROCESS_EXITED, "The process has ended, or has no recorder.", "It runs on as it is.")


def _not_hooked(pid: int, hooks: Sequence[Hook]) -> list[Hook]:
    """Those without a jump to be seen, also behind an endbr64."""
    with Memory(pid) as memory:
        return [hook for hook in hooks if not bytes(memory.read_some(hook.address, 5)).removeprefix(ENDBR64).startswith(JUMP)]

