"""Writing and removing patches in a target, and the hand-over of a launched target from the spawner.

The state in which `spawner.Prepare(held=True)` leaves a target: all its threads group-stopped (state T, as by SIGSTOP), the main thread at
the program's entry point, traced by nobody, nothing of Frida's in it. The session then calls `take_over` with what the reply holds: it
writes, arms the crash handlers, and lets the target run from its first instruction, all in one stop. `take_over` works in any other
state as well (somebody continued the target; it was attached to, not launched): it stops the world first, like `install`.
`resume` is for a target that was never prepared.
All functions block, for milliseconds as a rule: call them by `asyncio.to_thread`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from actors.session.ptrace.attempts import until_done
from actors.session.ptrace.call import CallFailed, call
from actors.session.ptrace.changes import Change, Changes
from actors.session.ptrace.code_map import CodeMap, Stretch
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.threads import process_dead, thread_state
from actors.session.ptrace.world import STOP_S, NotStopped, StoppedWorld
from strobe.errors import Code, StrobeError
from strobe.protocol.spawner import Patch, Write

PATIENCE: Final = 8  # attempts after which a stop may take twice as long: on an overloaded machine threads get no processor to stop on
PATIENCE_MAX: Final = 3  # doublings
WRITING_S: Final = 0.010  # of one stop; what does not fit is written in the next one
STACK_BYTES: Final = 16384


@dataclass(slots=True)
class Outcome:
    """What was done. `skipped`: patches whose place holds other bytes than expected, or is not mapped any more; they were left alone."""

    skipped: list[Patch] = field(default_factory=list)
    stopped_s: float = 0.0  # the longest stop
    stops: int = 0
    threads: int = 0
    attempts: int = 0  # stops that were given up included
    armed: int | None = None  # what strobe_arm returned
    arm_failure: str | None = None


def install(pid: int, writes: Sequence[Write], patches: Sequence[Patch], code: CodeMap | None = None) -> Outcome:
    """`writes` into fresh memory, then all `patches` at once; skipped are those for code that is not mapped as it was in `code`. Errors: PROCESS_EXITED,
    TIMEOUT (a thread cannot be stopped), FRIDA_ATTACH_FAILED (no ptrace)."""
    return _operate(pid, writes, patches, None, into_thunks=True, code=code)


def restore(pid: int, patches: Sequence[Patch]) -> Outcome:
    """The original bytes, all at once. Thunks stay: a thread in one runs on into the function. Errors as `install`."""
    return _operate(pid, (), patches, None, into_thunks=False)


def take_over(pid: int, writes: Sequence[Write], patches: Sequence[Patch], arm_address: int | None) -> Outcome:
    """`install`, in the same stop the call that arms the crash handlers (None: there are none), and SIGCONT if it is stopped by SIGSTOP."""
    return _operate(pid, writes, patches, arm_address, into_thunks=True, run=True)


def take_in(pid: int, writes: Sequence[Write], patches: Sequence[Patch], arm_address: int | None) -> Outcome:
    """`install`, and in the same stop the call that arms the crash handlers: for a process that was attached to. One that is stopped stays so."""
    return _operate(pid, writes, patches, arm_address, into_thunks=True)


def resume(pid: int) -> None:
    """Continues a target that the keeper left stopped; does nothing to one that runs. Errors: PROCESS_EXITED."""
    if thread_state(pid, pid) == "T":
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again.", value=pid) from None


def _operate(
    pid: int, writes: Sequence[Write], patches: Sequence[Patch], arm_address: int | None, *, into_thunks: bool, run: bool = False, code: CodeMap | None = None
) -> Outcome:
    pairs = ((one.address, one.original, one.data) if into_thunks else (one.address, one.data, one.original) for one in patches)
    changes = Changes([Change(*pair) for pair in pairs])
    work = _Work(pid, {patch.address: patch for patch in patches}, changes, arm_address, into_thunks, run, code)
    with Memory(pid) as memory:
        _write(memory, writes, pid)
        until_done(pid, lambda: work.once(memory))
    return work.outcome


def _write(memory: Memory, writes: Sequence[Write], pid: int) -> None:
    """Into memory that nobody runs yet. Errors: PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    try:
        for write in writes:
            memory.write(write.address, write.data)
    except OSError as error:
        if process_dead(pid):
            raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again.", value=pid) from None
        what = f"Code of process {pid} cannot be written through /proc/{pid}/mem ({error.strerror})."
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, what, "A kernel started with proc_mem.force_override=never forbids it.", value=pid) from error


@dataclass(slots=True)
class _Work:
    """One change, which may take several stops, and several attempts to find the target in a state that allows it."""

    pid: int
    patches: dict[int, Patch]
    changes: Changes
    arm_address: int | None
    into_thunks: bool  # jumps are written, not taken away: nobody may be between the bytes they replace
    run: bool
    code: CodeMap | None  # as it was when the changes were worked out
    outcome: Outcome = field(default_factory=Outcome)
    next_run: int = 0
    finished: bool = False

    def once(self, memory: Memory) -> bool:
        self.outcome.attempts += 1
        world = StoppedWorld(self.pid, STOP_S * 2 ** min((self.outcome.attempts - self.outcome.stops) // PATIENCE, PATIENCE_MAX))
        with world:
            if self.code is not None:
                self._leave_out_gone(self.code.gone(CodeMap.read(memory.maps)))
            if self.into_thunks:
                self._check_stacks(world, memory)
                self._move_out(world)
            self.next_run, wrong = self.changes.apply(memory, self.next_run, time.perf_counter() + WRITING_S)
            self.finished = self.next_run == self.changes.runs
            if self.finished and self.arm_address:
                self._arm(world, memory)
            if self.finished and self.run:
                world.end_group_stop()
        self.outcome.skipped += [self.patches[change.address] for change in wrong]
        self.outcome.stops += 1
        self.outcome.stopped_s, self.outcome.threads = max(self.outcome.stopped_s, world.stopped_s), world.threads
        return self.finished

    def _leave_out_gone(self, gone: Sequence[Stretch]) -> None:
        """What was mapped there is not any more: the same bytes may be something else's."""
        lost = [change for change in self.changes.items if any(start <= change.address < end for start, end, _ in gone)]
        if lost:
            self.outcome.skipped += [self.patches[change.address] for change in lost]
            self.changes = Changes([change for change in self.changes.items if change not in lost])
            self.next_run = 0  # what is written already counts as written

    def _move_out(self, world: StoppedWorld) -> None:
        """A thread between the instructions of a window goes on at the same instruction in the thunk."""
        held = list(world.tracees.values())
        inside = self.changes.holding(np.array([tracee.registers.rip for tracee in held], np.uint64))
        for n in np.flatnonzero(inside):
            tracee = held[n]
            patch = self._patch_around(tracee.registers.rip)
            offset = patch.entries[tracee.registers.rip - patch.address] if patch.entries else 0
            if not offset:
                raise NotStopped(f"thread {tracee.tid} is inside an instruction at {tracee.registers.rip:#x}")
            world.move(tracee, patch.thunk + offset)

    def _patch_around(self, address: int) -> Patch:
        at = int(np.searchsorted(self.changes.starts, np.uint64(address), side="left")) - 1
        return self.patches[int(self.changes.starts[at])]

    def _check_stacks(self, world: StoppedWorld, memory: Memory) -> None:
        """A thread in a signal handler returns to where the signal found it: not into a window that is about to change."""
        if not len(self.changes):
            return
        stacks = [memory.read_some(tracee.registers.rsp & -8, STACK_BYTES) for tracee in world.tracees.values()]
        words = np.frombuffer(b"".join(stack[: len(stack) & -8] for stack in stacks), np.uint64)
        near = words[(words > self.changes.starts[0]) & (words < self.changes.ends.max())]
        if self.changes.holding(near).any():
            raise NotStopped("a thread was interrupted by a signal in bytes that are to be changed")

    def _arm(self, world: StoppedWorld, memory: Memory) -> None:
        assert self.arm_address is not None
        try:
            result = call(world, memory, self.arm_address) & 0xFFFFFFFF
            self.outcome.armed = result - ((result & 0x80000000) << 1)  # an int
        except CallFailed as failure:
            self.outcome.arm_failure = str(failure)
        self.arm_address = None
