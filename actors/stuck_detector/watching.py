"""Watched trees: CPU times every 250 ms, a whole sample when they rest or now and then, and the verdict that holds. Costs at most about 1 % of a core."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from actors.stuck_detector.diagnosis import Diagnosis
from actors.stuck_detector.graph import cycles
from actors.stuck_detector.loops import Loops
from actors.stuck_detector.sample import Tree, cpu_of, take, tree
from actors.stuck_detector.verdict import BUSY_LEAST, Known, judge
from actors.stuck_detector.waits import with_waits
from strobe.errors import StrobeError
from strobe.model.stuck import STUCK_KINDS, Verdict
from strobe.protocol.stuck_detector import Suspicion, SuspicionsReply

T = TypeVar("T")
TICK_S: Final = 0.25
SAMPLE_S: Final = 0.75  # between whole samples of a tree that runs
RESCAN_S: Final = 1.0  # for new children
COST_SHARE: Final = 0.008  # of a core: what looking costs decides how often it is done
LOOK_AFTER_S: Final = 1.0  # that it computes without pause
LOOK_EVERY_S: Final = 0.7
LOOK_AGAIN_S: Final = 20.0  # once that told nothing
LOOK_COST_S: Final = 0.01  # that the next tick waits for, at most
HISTORY_MAX: Final = 20


class Watched:
    """One tree. `run` ends when it is gone."""

    def __init__(self, pid: int, diagnosis: Diagnosis) -> None:
        self.pid = pid
        self._diagnosis = diagnosis
        self._loops = Loops()
        self._pids: list[int] = []
        self._cpu: dict[int, int] = {}
        self._sample: Tree | None = None
        self._current: tuple[Verdict, float] | None = None
        self._history: deque[tuple[Verdict, float, float]] = deque(maxlen=HISTORY_MAX)
        self._moved_at = self._scanned_at = self._sampled_at = self._rested_at = self._looked_at = time.monotonic()
        self._settled = False  # it rests, and nothing has changed since it was judged
        self._paid_s = 0.0

    def suspicions(self) -> SuspicionsReply:
        now = time.monotonic()
        current = None
        if self._current:
            current = Suspicion(verdict=self._current[0], since_ms=round((now - self._current[1]) * 1000))
        past = [Suspicion(verdict=one, since_ms=round((now - since) * 1000), until_ms=round((now - until) * 1000)) for one, since, until in self._history]
        return SuspicionsReply(watched=True, current=current, history=past, idle_ms=round((now - self._moved_at) * 1000))

    async def run(self) -> None:
        try:
            while True:
                await self._tick()
                wait_s, self._paid_s = max(TICK_S, self._paid_s / COST_SHARE), 0.0
                await asyncio.sleep(min(wait_s, 4.0))
        except StrobeError:  # PROCESS_EXITED
            return

    async def _paid(self, work: Callable[[], T]) -> T:
        """In a thread; its processor time counts."""

        def timed() -> tuple[T, float]:
            began = time.thread_time()
            return work(), time.thread_time() - began

        result, spent = await asyncio.to_thread(timed)
        self._paid_s += spent
        return result

    async def _tick(self) -> None:
        now = time.monotonic()
        if (now - self._scanned_at >= RESCAN_S and not self._settled) or not self._pids:
            self._pids, self._scanned_at = await self._paid(lambda: tree(self.pid)), now
        cpu = await self._paid(lambda: cpu_of(self._pids))
        resting, self._cpu = cpu == self._cpu, cpu
        if not cpu:
            self._pids = []
            return
        if not resting:
            self._moved_at, self._settled = now, False
        if resting and not self._settled:
            await self._judge(follow=True)
        elif not resting and now - self._sampled_at >= SAMPLE_S:
            await self._judge(follow=False)

    async def _judge(self, follow: bool) -> None:
        """Of this sample and the one before, if there is one that can be compared."""
        before, pids = self._sample, list(self._pids)
        now = await self._paid(lambda: with_waits(take(pids), follow))
        self._sample, self._sampled_at = now, now.at
        if before is None or now.at - before.at < TICK_S * 0.9:
            return
        if not follow:
            await self._look(before, now)
            if cycles({thread.tid: thread for thread in now.threads}):
                self._sampled_at = 0.0  # the next tick tells whether it stays
        if follow and (before.cpu != now.cpu or any(one.wait != other.wait for one, other in zip(before.threads, now.threads, strict=True))):
            return  # the one before was of another state, or not so thorough: the next tick compares again
        verdict = judge(before, now, Known(loops=self._loops.found()))
        await self._take(verdict, before, now)
        self._settled = follow

    async def _look(self, before: Tree, now: Tree) -> None:
        earlier = before.cpu
        share = sum(thread.cpu_ns - earlier.get(thread.tid, thread.cpu_ns) for thread in now.threads) / 1e9 / (now.at - before.at)
        if share < BUSY_LEAST:
            self._rested_at = now.at
            return
        every_s = LOOK_EVERY_S if self._loops.young else LOOK_AGAIN_S
        if now.at - self._rested_at >= LOOK_AFTER_S and now.at - self._looked_at >= every_s:
            self._looked_at, began = now.at, time.process_time()
            await asyncio.to_thread(self._loops.look, before, now)
            self._paid_s += min(time.process_time() - began, LOOK_COST_S)

    async def _take(self, verdict: Verdict, before: Tree, now: Tree) -> None:
        if self._current and (self._current[0].kind, self._current[0].cause) == (verdict.kind, verdict.cause):
            if verdict.kind not in STUCK_KINDS:
                self._current = verdict, self._current[1]
            return
        if self._current and self._current[0].kind in STUCK_KINDS:
            self._history.append((*self._current, now.at))
        self._current = verdict, before.at
        if verdict.kind in STUCK_KINDS:
            told = await self._diagnosis.tell(before, now, self._loops)
            if (told.verdict.kind, told.verdict.cause) == (verdict.kind, verdict.cause):
                self._current = told.verdict, before.at
