"""A test run's processes in the eyes of the stuck-detector. Whatever that does, dies or does not answer: a run neither waits for it nor fails by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from actors.session.target import Asker
from strobe.adapters.book import Running
from strobe.errors import Code, StrobeError
from strobe.model.stuck import STUCK_KINDS, ThreadStack
from strobe.model.testing import StuckTest, StuckThread, SuspectedTest, WaitGraph
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply, Suspicions, SuspicionsReply, Unwatch, Watch
from strobe.render.stuck import frames_in_words, verdict_in_words

LOOK_S: Final = 0.5
ASK_S: Final = 2.0
DIAGNOSE_S: Final = 12.0
LEAVE_S: Final = 1.0
THREADS_KEPT: Final = 24
NODES_KEPT: Final = 64


@dataclass(slots=True)
class Seen:
    """One step's tree, and what was said of it last."""

    pid: int
    found: SuspicionsReply = field(default_factory=lambda: SuspicionsReply(watched=False))


class StuckWatch:
    """Of one run. Its trees are watched from their start by keys of their own: `{run id}/{step}`."""

    def __init__(self, actor: Asker, run_id: str, on_failure: Callable[[BaseException], None]) -> None:
        self._actor = actor
        self._run_id = run_id
        self._on_failure = on_failure
        self._seen: dict[str, Seen] = {}
        self._left: set[str] = set()  # steps that have ended and are watched still
        self._wake = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def begins(self, step: str, pid: int) -> None:
        self._seen[step] = Seen(pid)
        self._wake.set()
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._looking.add_done_callback(self._looked)

    def ends(self, step: str) -> None:
        if self._seen.pop(step, None) is not None:
            self._left.add(step)
            self._wake.set()

    def suspected(self, running: Sequence[Running]) -> list[SuspectedTest]:
        """The tests that run in trees which look stuck; a tree in which none is known to run goes by its step's name."""
        told: list[SuspectedTest] = []
        for step, seen in list(self._seen.items()):
            current = seen.found.current
            if current is None or current.verdict.kind not in STUCK_KINDS:
                continue
            verdict = current.verdict
            pids = {node.pid for node in verdict.nodes}
            names = [one.name for one in running if one.pid in pids] or [one.name for one in running] or [step]
            words = f"{verdict_in_words(verdict)} (for {current.since_ms / 1000:.1f} s)"
            told += [
                SuspectedTest(test_name=name, idle_ms=seen.found.idle_ms, diagnosis=words, suggested_traces=verdict.suggested_traces)
                for name in dict.fromkeys(names)
            ]
        return told

    async def diagnose(self, pid: int) -> DiagnoseReply | str:
        """Within DIAGNOSE_S; else why there is none."""
        try:
            async with asyncio.timeout(DIAGNOSE_S):
                reply: DiagnoseReply = await self._actor.ask("stuck_detector", Diagnose(pid=pid), deadline_s=DIAGNOSE_S)
                return reply
        except StrobeError as error:
            return error.what
        except TimeoutError:
            return f"The stuck-detector did not answer within {DIAGNOSE_S:g} s."

    async def end(self) -> None:
        """Nothing is watched any more, as far as the detector answers in time; else it forgets trees that are gone by itself."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        self._left |= self._seen.keys()
        self._seen.clear()
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._leave()
        except TimeoutError:
            return

    def _looked(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def _look(self) -> None:
        while True:
            self._wake.clear()
            await self._leave()
            for step, seen in list(self._seen.items()):
                await self._look_at(step, seen)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look_at(self, step: str, seen: Seen) -> None:
        key = f"{self._run_id}/{step}"
        try:
            found: SuspicionsReply = await self._actor.ask("stuck_detector", Suspicions(key=key), deadline_s=ASK_S)
            seen.found = found
            if not found.watched and step in self._seen:
                await self._actor.ask("stuck_detector", Watch(key=key, pid=seen.pid), deadline_s=ASK_S)
        except StrobeError as error:
            seen.found = SuspicionsReply(watched=False)
            if error.code is Code.PROCESS_EXITED:
                self.ends(step)

    async def _leave(self) -> None:
        for step in list(self._left):
            with suppress(StrobeError):  # one that is replaced watches nothing; one that is busy sees the tree go
                await self._actor.ask("stuck_detector", Unwatch(key=f"{self._run_id}/{step}"), deadline_s=ASK_S)
            self._left.discard(step)


def stuck_tests(names: Sequence[str], elapsed_ms: Sequence[float], found: DiagnoseReply | str) -> list[StuckTest]:
    """What `found` says of the tests that were running."""
    if isinstance(found, str) or found.verdict is None:
        why = found if isinstance(found, str) else "it gave no verdict"
        return [StuckTest(name=name, elapsed_ms=ms, diagnosis=f"not known: {why}") for name, ms in zip(names, elapsed_ms, strict=True)]
    verdict = found.verdict
    graph = WaitGraph(nodes=verdict.nodes[:NODES_KEPT], edges=verdict.edges[:NODES_KEPT]) if verdict.edges else None
    threads = [_thread(stack) for stack in found.stacks[:THREADS_KEPT]]
    return [
        StuckTest(
            name=name, elapsed_ms=ms, diagnosis=verdict_in_words(verdict), kind=verdict.kind, wait_graph=graph, threads=threads,
            suggested_traces=verdict.suggested_traces, notes=found.notes,
        )
        for name, ms in zip(names, elapsed_ms, strict=True)
    ]  # fmt: skip


def _thread(stack: ThreadStack) -> StuckThread:
    return StuckThread(name=stack.name, stack=frames_in_words(stack) or ([f"({stack.note})"] if stack.note else []))
