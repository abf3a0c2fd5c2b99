"""The target's children that become other programs: each waits at a gate before, and again when it has the recorder, for a bounded time.

What is merely forked needs nothing: it goes on with the recorder and the hooks of its parent."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from actors.session.children import image, root
from actors.session.children.entering import Entering
from actors.session.children.gate import Gate
from actors.session.children.image import Followed, Image
from actors.session.children.policy import Policy, Verdict
from actors.session.children.processes import Processes
from actors.session.children.spreading import Spreading
from actors.session.ptrace.memory import Memory
from actors.session.target import Target
from actors.session.tracing import Tracing
from strobe import futex
from strobe.artifacts import artifact
from strobe.errors import StrobeError
from strobe.lanes.layout import GATE_COUNT, GateReason, GateState
from strobe.lanes.machine import machine
from strobe.lanes.pool import Pool

LISTEN_S: Final = 0.5
SWEEP_S: Final = 1.0
AT_ONCE: Final = 4  # execs that are followed at the same time; the others wait their turn
ENTER_S: Final = 4.0
COMING_S: Final = 5.0  # so long a new program may take to load its libraries before it is given up
PATH_BYTES: Final = 4096
AT_CWD: Final = -100


class Following:
    """Of one session. `processes`: what became of which."""

    def __init__(self, tracing: Tracing, *, trace_shells: bool) -> None:
        self._tracing = tracing
        self._target: Target = tracing.target
        self._pool: Pool = tracing.target.pool
        self._machine = machine()
        self._recorder = artifact("strobe-recorder.so")
        self._policy = Policy(trace_shells=trace_shells)
        self._entering = Entering(tracing)
        self._spreading = Spreading(tracing, self._entering)
        self.processes = Processes(tracing.target.keeper.status().pid)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._coming: dict[int, tuple[str, Verdict, float]] = {}  # programs on their way to the second gate, and since when
        self._leaving: set[int] = set()  # processes on their way from the first gate to their exec
        self._seen: dict[int, int] = {}  # ticket of each gate that is being dealt with

    @property
    def is_on(self) -> bool:
        return self._thread is not None and not self._over.is_set()

    def begin(self) -> None:
        """From now on processes wait. Called in the session's loop."""
        if self.is_on or self._machine is None:
            return
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._workers = ThreadPoolExecutor(AT_ONCE, "exec")
        self._pool.header["follower"] = os.getpid()
        self._thread = threading.Thread(target=self._listen, args=(self._over,), name="gates", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Nobody waits any more."""
        if not self.is_on:
            return
        self._over.set()
        self._pool.header["follower"] = 0
        for index in range(GATE_COUNT):
            futex.wake(self._pool.gate_word(index, "state"))
        futex.wake(self._pool.word("gate_asks"))
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)
        self._thread = None

    def is_busy(self) -> bool:
        """Whether a process is on its way from one program to the next: for a moment it has no recorder."""
        recent = time.monotonic() - COMING_S
        coming = any(since > recent and Path(f"/proc/{pid}").exists() for pid, (_, _, since) in list(self._coming.items()))
        return coming or bool(self._leaving) or bool(self._pool.gates["state"].any())

    def changed(self, removed: Sequence[str] | None) -> None:
        """Patterns were removed; None: it is another depth to which values are captured."""
        self._entering.forget(removed)

    async def spread(self) -> list[str]:
        """What is wanted now is hooked in the children that live, too. Answers warnings."""
        return await self._spreading.spread()

    def leave(self) -> None:
        """The session lets all processes go: their functions have their own bytes back when this returns. Blocks."""
        self._entering.restore()

    def shown(self) -> list[dict[str, Any]]:
        return self.processes.shown()

    def told(self) -> list[str]:
        """Warnings about what was not followed."""
        left, full = int(self._pool.header["gates_left"]), int(self._pool.header["gates_full"])
        found = self.processes.told()
        if left or full:
            found.append(f"{left + full} new programs went on before Strobe had looked at them (it was too busy): they are not traced.")
        return [*found, *self._entering.told()]

    # In a thread of its own

    def _listen(self, over: threading.Event) -> None:
        header, word = self._pool.header, self._pool.word("gate_asks")
        sweep = 0.0
        while not over.is_set():
            asked = int(header["gate_asks"])
            self._look()
            now = time.monotonic()
            if now >= sweep:
                sweep = now + SWEEP_S
                self._sweep()
            if not int(header["follower"]) and not over.is_set():
                header["follower"] = os.getpid()  # somebody waited in vain, but here we are
            futex.wait(word, asked, LISTEN_S)

    def _look(self) -> None:
        assert self._machine is not None and self._workers is not None
        for index in (self._pool.gates["state"] == GateState.ASKS).nonzero()[0].tolist():
            gate = Gate.look(self._pool, self._machine, index)
            if gate is None or self._seen.get(index) == gate.ticket:
                continue
            self._seen[index] = gate.ticket
            try:
                if gate.reason is GateReason.EXEC:
                    self._workers.submit(self._exec, gate)
                else:
                    self._loop.call_soon_threadsafe(self._loaded, gate)
            except RuntimeError:  # the session ends
                gate.let_go()

    def _sweep(self) -> None:
        """Gates of processes that were killed there, and how others ended."""
        self.processes.settle()
        for index in self._pool.gates["state"].nonzero()[0].tolist():
            pid = int(self._pool.gates[index]["pid"])
            state = int(self._pool.gates[index]["state"])
            if pid and state != GateState.TAKEN and not Path(f"/proc/{pid}").exists():
                assert self._machine is not None
                self._machine.swap(self._pool.gate_word(index, "state"), state, GateState.FREE)

    # In a worker's thread

    def _exec(self, gate: Gate) -> None:
        """Whatever happens, it goes on."""
        self._leaving.add(gate.pid)
        try:
            self._follow(gate)
        except (StrobeError, OSError, ValueError) as error:  # it is gone, or nothing can be found out about it
            self._problem(gate.pid, f"it could not be followed ({error})")
        finally:
            gate.let_go()
            self._leaving.discard(gate.pid)

    def _follow(self, gate: Gate) -> None:
        if not gate.is_there():
            return
        verdict, shown = self._policy.judge(_program_at(gate)), _shown(gate)
        if verdict.why_not is not None:
            self._not_followed(gate.pid, shown, verdict.why_not)
            return
        outcome = image.follow(gate.pid, gate.tid, gate.let_go, self._judge, self._recorder, self._pool.path)
        if outcome.why_not and self._coming.pop(gate.pid, None) is not None:
            self._problem(gate.pid, outcome.why_not)
        elif outcome.why_not and outcome.path is None:
            self._not_followed(gate.pid, shown, outcome.why_not)

    def _judge(self, new: Image) -> str | None:
        one = self._policy.judge(f"/proc/{new.pid}/exe")
        if one.why_not is None:
            self.processes.exec(new.pid, new.path, None, shell=one.shell)
            self._coming[new.pid] = (new.path, one, time.monotonic())
        else:
            self._not_followed(new.pid, new.path, one.why_not)
        return one.why_not

    def take_in(self, pid: int) -> None:
        """A process that is no child of the target, and that its keeper holds at its first instruction, gets the recorder once it goes on. Where it
        cannot, that is told as of children. Blocks."""
        if not self.is_on:
            self.processes.exec(pid, f"process {pid}", "this machine cannot follow programs")
            return
        try:
            outcome = image.enter(pid, self._judge, self._recorder, self._pool.path)
        except (StrobeError, ValueError) as error:  # nothing can be found out about it
            outcome = Followed(None, f"it could not be followed ({error})")
        if outcome.why_not and (self._coming.pop(pid, None) is not None or outcome.path is None):
            self._problem(pid, outcome.why_not)

    def _not_followed(self, pid: int, path: str, why: str) -> None:
        self.processes.exec(pid, path, why)
        self._loop.call_soon_threadsafe(self._root_lost, pid, path, why)

    def _problem(self, pid: int, why: str) -> None:
        self.processes.problem(pid, why)
        self._loop.call_soon_threadsafe(self._root_lost, pid, "", why)

    # In the session's loop

    def _root_lost(self, pid: int, path: str, why: str) -> None:
        if pid == self._target.pid:
            self._start(self._lose_root(path or self._target.journal.launch.command, why))

    async def _lose_root(self, path: str, why: str) -> None:
        async with self._tracing.lock:
            root.lost(self._tracing, path, why)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _loaded(self, gate: Gate) -> None:
        self._start(self._enter(gate))

    async def _enter(self, gate: Gate) -> None:
        path, verdict, _ = self._coming.pop(gate.pid, ("", Verdict(), 0.0))
        try:
            async with asyncio.timeout(ENTER_S):
                done = await self._entering.enter(gate, path, bare=verdict.shell)
            self.processes.entered(gate.pid, done.hooks)
        except (StrobeError, OSError, TimeoutError, ValueError) as error:
            self._problem(gate.pid, f"its functions could not be hooked ({error or 'it took too long'})")
        finally:
            gate.let_go()


def follow(tracing: Tracing) -> None:
    """From now on, if that is wanted."""
    policy = tracing.target.journal.launch.children
    if policy.follow:
        tracing.follower = Following(tracing, trace_shells=policy.shells)
        tracing.follower.begin()


def _program_at(gate: Gate) -> str:
    """The file that it is about to become, by a path that is good here."""
    if not gate.path:
        return f"/proc/{gate.pid}/fd/{gate.folder}"
    path = _shown(gate)
    if path.startswith("/"):
        return f"/proc/{gate.pid}/root{path}"
    base = "cwd" if gate.folder == AT_CWD else f"fd/{gate.folder}"
    return f"/proc/{gate.pid}/{base}/{path}"


def _shown(gate: Gate) -> str:
    if not gate.path:
        return os.readlink(f"/proc/{gate.pid}/fd/{gate.folder}")  # noqa: PTH115 (a text to show)
    with Memory(gate.pid) as memory:
        return os.fsdecode(bytes(memory.read_some(gate.path, PATH_BYTES)).split(b"\0")[0])


