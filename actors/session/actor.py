"""The session: owner of one target's probes, life and live state. The only process that continues, patches or ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from actors.session.attaching import attach
from actors.session.children.following import follow
from actors.session.collector import Collector
from actors.session.coring import open_core
from actors.session.ending import Ending
from actors.session.guidance import guidance, next_steps
from actors.session.launching import Launched, launch
from actors.session.memory.answers import MemoryAnswers
from actors.session.recovery import recover
from actors.session.target import Asker, Target
from actors.session.testing.answers import TestAnswers
from actors.session.tracing import Tracing
from strobe import paths
from strobe.errors import Code, StrobeError
from strobe.lanes.pool import Pool
from strobe.launch.keeper import Keeper
from strobe.protocol.base import Done
from strobe.protocol.session import Flush, Input, Launch, LaunchReply, SessionStatus, StatusReply, Stop, StopReply, Trace, TraceReply
from strobe.protocol.supervisor import SessionEnded
from strobe.runtime import Actor, Context, handles

FLUSH_S = 5.0


class Session(MemoryAnswers, TestAnswers, Actor):
    role = "session"

    async def starting(self) -> None:
        self.target: Target | None = None
        self.tracing: Tracing | None = None
        self.ending: Ending | None = None
        self.event_limit = 0
        self._launching = asyncio.Lock()
        self._stop_in_hand = asyncio.Lock()
        self._watcher: asyncio.Task[None] | None = None
        self._early_crashes: list[Any] = []

    async def adopted(self, session_id: str, recovering: bool) -> None:
        self.folder = paths.target_folder(session_id)
        if recovering and (self.folder / "session").exists():
            target = await recover(self, self.folder, self._collector_for)
            tracing = Tracing(self, target)
            self._begin(target, tracing)
            tracing.arming.settle()
            if target.injected and not target.journal.stopped:
                follow(tracing)
        if recovering:
            self.take_over_tests(self.folder)

    async def stopping(self, reason: str) -> None:
        """An orderly end detaches: the target runs on untraced. Where the node died, keeper, spool and pool wait for the next one."""
        if "supervisor" not in reason:
            await self.leave_tests()
        if self.target is None or self.ending is None:
            return
        await self.end_polls(target_gone=False)
        if "supervisor" in reason:
            self.log.info("leaving the target to the next node", pid=self.target.life.pid, reason=reason)
        elif not self.target.life.over:
            await self.ending.stop(kill=self.tests is not None)  # what only holds a run open is nobody's
        if self.tracing is not None:
            self.tracing.arming.end()
            if self.tracing.follower is not None:
                self.tracing.follower.end()
        if self._watcher is not None:
            self._watcher.cancel()
        await asyncio.to_thread(self.target.collector.close)

    @handles(Launch, completes=True)
    async def launch(self, ask: Launch, context: Context) -> LaunchReply:
        if self.target is not None:
            raise StrobeError(Code.SESSION_EXISTS, f"{ask.session_id} has launched its target already.", "Start another session.", value=ask.session_id)
        self.log.info("launching", command=ask.command, attach=ask.attach and ask.attach.pid, cause=context.cause)
        async with self._launching:
            launched = await _way_of(ask)(self, ask, self.folder, self._collector_for)
            self._begin(launched.target, launched.tracing)
        target = launched.target
        self.log.info("launched", pid=target.pid, stages_ms=launched.stages.ms)
        if target.core is None:
            target.collector.tell_session({"pid": target.pid, "detail": {"capabilities": target.capabilities.model_dump(by_alias=True)}})
        return LaunchReply(
            pid=target.pid,
            capabilities=target.capabilities,
            pending_patterns_applied=len(ask.patterns) or None,
            next_steps=next_steps(ask.session_id, target.capabilities, ask.patterns, launched.matched),
            warnings=[*launched.warnings, *_launch_warnings(launched, ask)],
        )

    @handles(Trace, completes=True)
    async def trace(self, ask: Trace, context: Context) -> TraceReply:
        del context
        target, tracing = self._launched()
        self.event_limit = ask.event_limit
        if ask.project_root:
            target.journal.project_root = ask.project_root
        self._limit(target, ask)
        if ask.serialization_depth is not None:
            await tracing.set_depth(ask.serialization_depth)
        if not (ask.add or ask.remove or ask.add_watches or ask.remove_watches):
            return self._trace_reply(None, [])
        outcome = await tracing.change(ask.add, ask.remove, ask.add_watches, ask.remove_watches)
        return self._trace_reply(outcome.matched, outcome.warnings)

    @handles(SessionStatus)
    async def status(self, ask: SessionStatus, context: Context) -> StatusReply:
        del ask, context
        target, tracing = self._launched()
        life = target.life
        return StatusReply(
            status=life.state,
            pid=life.pid,
            exit_code=life.exit_code,
            signal=life.signal,
            patterns=target.journal.probes.patterns,
            hooked_functions=len(target.journal.probes.active),
            output_bytes=target.output_bytes(),
            losses=target.collector.losses(),
            sampling=target.sampled(),
            capabilities=target.capabilities,
            crash=target.crash,
            processes=tracing.follower.shown() if tracing.follower is not None else [],
            warnings=tracing.follower.told() if tracing.follower is not None else [],
        )

    @handles(Flush)
    async def flush(self, ask: Flush, context: Context) -> Done:
        del ask
        target, _ = self._launched()
        await asyncio.to_thread(target.collector.flush, min(FLUSH_S, context.deadline_s))
        return Done()

    @handles(Input)
    async def input(self, ask: Input, context: Context) -> Done:
        del context
        target, _ = self._launched()
        target.require_running()
        if ask.data:
            await asyncio.to_thread(target.keeper.control.write, ask.data)
        if ask.close:
            await asyncio.to_thread(target.keeper.control.close_stdin)
        return Done()

    @handles(Stop, completes=True)
    async def stop(self, ask: Stop, context: Context) -> StopReply:
        del context
        async with self._launching:  # who gave a launch up stops what came of it
            self._launched()
        held = await self.stop_tests()
        assert self.ending is not None  # set with the target
        await self.end_polls(target_gone=False)
        async with self._stop_in_hand:
            return await self.ending.stop(kill=ask.kill or held)

    def _limit(self, target: Target, ask: Trace) -> None:
        journal = target.journal
        budget = journal.budget if ask.budget is None else ask.budget.over(journal.budget)
        if (ask.sampling, budget) != (journal.sampling, journal.budget):
            journal.sampling, journal.budget = ask.sampling, budget
            journal.save(target.folder)
            target.collector.limit(target.limits())

    def _launched(self) -> tuple[Target, Tracing]:
        if self.target is None or self.tracing is None:
            raise StrobeError(Code.SESSION_NOT_FOUND, f"{self.name} has no target yet.", "Launch it again.", value=self.session_id)
        return self.target, self.tracing

    def _collector_for(self, pool: Pool, keeper: Keeper) -> Collector:
        assert self.session_id is not None  # a session launches only once adopted
        return Collector(
            session_id=self.session_id, pool=pool, keeper=keeper, endpoint=paths.data_endpoint(self.seat.home), on_crash=self._crash_seen, on_failure=self.crash
        )

    def _crash_seen(self, crash: Any) -> None:
        """From the collector's thread; a crash in the first instructions may come before `launch` has returned."""
        self.loop.call_soon_threadsafe(self._route_crash, crash)

    def _route_crash(self, crash: Any) -> None:
        if self.ending is None:
            self._early_crashes.append(crash)
        else:
            self.ending.deaths.seen(crash)

    def _begin(self, target: Target, tracing: Tracing) -> None:
        self.target, self.tracing = target, tracing
        self.ending = Ending(self, target, tracing, self.log.warning)
        self.ending.before_end = self.end_polls
        for crash in self._early_crashes:
            self.ending.deaths.seen(crash)
        self._watcher = self.loop.create_task(self._watch(self.ending))

    async def _watch(self, ending: Ending) -> None:
        try:
            await ending.watch()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a watcher that died would leave the session open for ever: restart instead
            self.crash(error)
            return
        assert self.session_id is not None and self.target is not None
        if self.target.core is not None:
            return  # its memory can still be asked for
        async with self._stop_in_hand:  # who is told that the session ended ends this process: a stop is answered before
            pass
        self.notice(SessionEnded(session_id=self.session_id))

    def _trace_reply(self, matched: int | None, warnings: list[str]) -> TraceReply:
        target, tracing = self._launched()
        probes = target.journal.probes
        active = probes.active
        typed = sum(item.hook.plan.typed and item.hook.address not in tracing.typing.wanting for item in active)  # as deep as was asked for
        return TraceReply(
            mode="runtime",
            active_patterns=probes.patterns,
            hooked_functions=len(active),
            typed_functions=typed,
            matched_functions=matched,
            active_watches=self.tracing.watching.active() if self.tracing is not None else [],
            warnings=warnings,
            refused=list(probes.refused.values())[:50],
            event_limit=self.event_limit,
            sampling=target.sampled(),
            status=guidance(len(active), matched, len(probes.refused), probes.patterns, waiting=tracing.arming.is_armed),
        )


def _way_of(ask: Launch) -> Callable[[Asker, Launch, Path, Any], Awaitable[Launched]]:
    return open_core if ask.core_file is not None else launch if ask.attach is None else attach


def _launch_warnings(launched: Launched, ask: Launch) -> list[str]:
    refused = launched.target.journal.probes.refused
    if ask.patterns and refused:
        names = ", ".join(item.function for item in list(refused.values())[:5])
        return [f"{len(refused)} matched functions could not be hooked: {names}{' …' if len(refused) > 5 else ''}."]
    return []
