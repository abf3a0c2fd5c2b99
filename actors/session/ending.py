"""How a session ends: the target's exit or crash is seen, told and stored; everything is drained; a stop leaves the target as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from actors.session.children.lingering import holders, start_ticks, still
from actors.session.deaths import Deaths
from actors.session.lifecycle import Drained, Ended, StopAsked
from actors.session.target import Asker, Target
from actors.session.tracing import Tracing
from strobe.errors import StrobeError
from strobe.launch.status import TargetState
from strobe.protocol.session import StopReply

WATCH_S = 0.01
FLUSH_S = 30.0  # a store that restarts on a busy machine, or has millions of events to store first, is done by then
KILL_S = 5.0
DRAIN_S = 10.0
LINGER_S = 0.1


class Ending:
    """Watches one target to its end."""

    def __init__(self, actor: Asker, target: Target, tracing: Tracing, warn: Callable[[str], None]) -> None:
        self.actor = actor
        self.target = target
        self.tracing = tracing
        self.warn = warn
        self.before_end: Callable[..., Awaitable[None]] | None = None  # who else tells events has told the last of them when it returns
        self.deaths = Deaths(actor, target, warn)
        self._left = False  # the stop that leaves the target running drains by itself, though it may end meanwhile
        self._lingering: dict[int, int] = {}  # children that live on, and when they began

    async def watch(self) -> None:
        """Returns once the target is gone, its output has ended and all of it is committed."""
        seen = -1
        while True:
            changes = self.target.keeper.page.changes
            if changes != seen:
                seen = changes
                status = self.target.keeper.status()
                if status.state is TargetState.EXITED and not (self.target.life.target_gone or self._left):
                    await self._ended(status.wait_status if status.wait_known else None, status.exited_ns)
                if status.ended:
                    await self._until_no_child_records()
                    break
            if self.target.keeper.lost() and not self.target.keeper.target_alive():
                break
            await asyncio.sleep(WATCH_S)
        if not self._left:
            await self.finish()

    async def _until_no_child_records(self) -> None:
        """Daemons record on when the target has ended and its output is closed, until they are gone, or the session is stopped."""
        target, since = self.target, self.target.keeper.status().start_ticks
        while self.tracing.follower is not None and not target.journal.stopped:
            busy = self.tracing.follower.is_busy()
            self._lingering = await asyncio.to_thread(holders, target.pool.path, since)
            if not (busy or self._lingering or self.tracing.follower.is_busy()):
                return
            await asyncio.sleep(LINGER_S)
            while still(self._lingering) and not target.journal.stopped:
                await asyncio.sleep(LINGER_S)

    def _kill_lingering(self) -> None:
        for pid, ticks in self._lingering.items():
            if start_ticks(pid) == ticks:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def _settle_crashes(self) -> None:
        await asyncio.to_thread(self.target.collector.settle_crashes)
        await asyncio.sleep(0)  # crash_seen's callbacks come before this
        await self.deaths.told()

    async def finish(self) -> None:
        self.tracing.arming.end()
        self._follow_no_more()
        await self._settle_crashes()
        self._tell_processes()
        if self.before_end is not None:
            await self.before_end(target_gone=True)
        await asyncio.to_thread(self.target.collector.finish)
        self._drained_all()

    def _tell_processes(self) -> None:
        follower = self.tracing.follower
        if follower is not None and (shown := follower.shown()):
            self.target.collector.tell_session({"detail": {"processes": shown, "notFollowed": follower.told()}})

    def _follow_no_more(self) -> None:
        if self.tracing.follower is not None:
            self.tracing.follower.end()

    def _drained_all(self) -> None:
        """The pool is nobody's any more: a target that lives on has it mapped without a name."""
        self.target.took(Drained())
        self.target.pool.unlink()

    async def stop(self, *, kill: bool) -> StopReply:
        """The target runs on untraced, or is killed as a tree. Nothing of what was recorded is lost."""
        target = self.target
        async with self.tracing.lock:
            target.journal.stopped = True
            target.journal.save(target.folder)
            self.tracing.arming.settle()
            self._follow_no_more()
            alive = target.keeper.target_alive()
            self.deaths.killed_by_us |= alive and kill
            if kill:
                self._kill_lingering()
            if alive and kill:
                await asyncio.to_thread(self._kill)
                alive = False
            elif alive:
                self._left = True
                await self._leave()
            target.took(StopAsked(alive=alive))
        if alive:
            await asyncio.to_thread(target.collector.finish)
            with suppress(StrobeError):  # it has ended with its target meanwhile
                await asyncio.to_thread(target.keeper.control.drain)
            target.pool.give_back()
            self._drained_all()
        else:
            if self._lingering and not kill and self.tracing.follower is not None:
                target.pool.set_recording(False)
                await asyncio.to_thread(self.tracing.follower.leave)
            await self._drained()
        life = target.life
        return StopReply(status=life.state, exit_code=life.exit_code, signal=life.signal, target_alive=alive)

    async def _leave(self) -> None:
        """Flags off, the functions' bytes back. The recorder's own patches stay: a traced frame that is still open needs its unwinder hooks."""
        target = self.target
        for item in target.journal.probes.installed.values():
            target.pool.hooks[item.hook.id]["flags"] = 0
        target.pool.set_recording(False)
        await self.tracing.restore_functions()

    def _kill(self) -> None:
        target = self.target
        target.keeper.control.kill_tree(signal.SIGKILL)
        target.keeper.wait(lambda status: status.state is TargetState.EXITED, KILL_S)

    async def _drained(self) -> None:
        """Waits for `watch` to have drained; a pipe that an escaped child still holds is cut at the deadline."""
        deadline = time.monotonic() + DRAIN_S
        while not self.target.life.drained and time.monotonic() < deadline:
            await asyncio.sleep(WATCH_S)
        if not self.target.life.drained:
            await self.finish()

    async def _ended(self, wait_status: int | None, exited_ns: int) -> None:
        """`exited` is told once what the target recorded and printed by then is committed; its children may still print."""
        await self._settle_crashes()
        wait_status = self.deaths.signal_told() if wait_status is None else wait_status
        await self.deaths.ended(wait_status, exited_ns)
        try:
            await asyncio.to_thread(self.target.collector.flush, FLUSH_S)
        except StrobeError as error:  # a store that is away gets it later; the exit must be told all the same
            self.warn(f"exit told before its last records: {error.what}")
        self._tell_processes()  # before: who reads that it has ended finds them there
        life = self.target.took(Ended(wait_status))
        ended_at = time.time_ns() - (time.monotonic_ns() - exited_ns)
        fields = {"state": life.state, "exitCode": life.exit_code, "signal": life.signal, "endedAt": ended_at}
        self.target.collector.tell_session(fields)
