"""From raw registers to typed values while the target runs: hooks whose plans were not ready, or were made for another depth, get new ones.

A changed plan is a new hook id (ids are never reused): what was recorded raw stays raw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from actors.session.probes import Installed
from actors.session.ptrace.remote import NewPlan
from actors.session.ptrace.replanning import replan
from actors.session.target import Asker, Target
from actors.session.watching import Watching
from strobe.errors import StrobeError
from strobe.model.probe import Hook, Place, Plan
from strobe.protocol.indexer import Plans, PlansReply

FIRST_MS: Final = 1000  # for plans before hooks are installed: what is not typed by then is recorded raw at first
AGAIN_MS: Final = 3000
ASK_S: Final = 20.0
ROUNDS_MAX: Final = 40


class TypingUp:
    """Of one session. `wanting`: addresses of functions whose plans can still get better."""

    def __init__(self, actor: Asker, target: Target, lock: asyncio.Lock, watching: Watching) -> None:
        self._actor = actor
        self._target = target
        self._lock = lock
        self._watching = watching
        self._task: asyncio.Task[None] | None = None
        self.wanting: set[int] = set()
        self.problem: str | None = None  # why it stopped early

    async def plans(self, places: Sequence[Place], budget_ms: int) -> PlansReply:
        """Their types are on the way to the store when this returns."""
        journal = self._target.journal
        ask = Plans(
            places=list(places), symbols_path=journal.launch.symbols_path, budget_ms=budget_ms, depth=journal.depth, project_root=journal.project_root
        )  # fmt: skip
        reply: PlansReply = await self._actor.ask("indexer", ask, deadline_s=ASK_S)
        self._target.announce_types(reply.types)
        return reply

    def note(self, hooks: Sequence[Hook], *, complete: bool) -> None:
        """After plans were made for `hooks`."""
        for hook in hooks:
            if complete or hook.plan.depth >= self._target.journal.depth:
                self.wanting.discard(hook.address)
            else:
                self.wanting.add(hook.address)

    def begin(self) -> None:
        """In the background, unless it runs already."""
        if self.wanting and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._until_typed())

    async def retype(self, budget_ms: int) -> bool:
        """One round for all that are wanting. True: none is left. Errors: those of the indexer and of replan."""
        items = [item for address, item in self._target.journal.probes.installed.items() if address in self.wanting and item.patch is not None]
        if not items:
            self.wanting.clear()
            return True
        reply = await self.plans([item.hook.place for item in items], budget_ms)
        async with self._lock:
            await self.apply([(item, plan) for item, plan in zip(items, reply.plans, strict=True)])
        self.note([item.hook for item in items], complete=reply.complete)
        return not self.wanting

    async def apply(self, changes: Sequence[tuple[Installed, Plan]]) -> None:
        """The plans, and what watches add to them, take effect where they differ. The caller holds the lock."""
        target = self._target
        probes, remote = target.journal.probes, target.journal.remote
        there = [(item, plan, self._watching.plan_for(plan, item.hook.address)) for item, plan in changes if probes.installed.get(item.hook.address) is item]
        for item, base, plan in there:
            item.base = base if plan is not base else None
        better = [(item, plan) for item, _, plan in there if plan != item.hook.plan and item.patch]
        if not better or remote is None or target.journal.stopped or not target.keeper.target_alive():
            return
        hooks = probes.new_hooks([item.hook.place for item, _ in better], [item.hook.address for item, _ in better], [plan for _, plan in better])
        target.collector.announce_hooks(hooks)
        before = [item.hook for item, _ in better]
        for hook, (item, _) in zip(hooks, better, strict=True):
            target.copy_flags(item.hook.id, hook.id)
            item.earlier.append(item.hook.id)
            item.hook = hook
        target.journal.save(target.folder)
        wanted = [NewPlan(hook.id, hook.address, item.patch.thunk, hook.plan.ops) for hook, (item, _) in zip(hooks, better, strict=True) if item.patch]
        done: set[int] = set()
        try:
            done = await asyncio.to_thread(replan, target.pid, remote, wanted)
        finally:
            for old, (item, _) in zip(before, better, strict=True):
                if item.hook.id not in done:
                    item.earlier[-1], item.hook = item.hook.id, old
            target.journal.save(target.folder)

    async def rewatch(self) -> None:
        """After watches came or went. The caller holds the lock."""
        await self.apply([(item, item.base or item.hook.plan) for item in self._target.journal.probes.installed.values()])

    async def _until_typed(self) -> None:
        try:
            for _ in range(ROUNDS_MAX):
                if self._target.journal.stopped or await self.retype(AGAIN_MS):
                    return
            self.problem = f"types of {len(self.wanting)} functions take too long to read"
        except StrobeError as error:  # the target ended, or the indexer is away: values stay raw, and the next debug_trace tries again
            self.problem = error.what
