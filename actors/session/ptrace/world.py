"""Stop the world: every thread of a target held by ptrace, for a bounded time, and let go exactly as it was.

Threads are seized and interrupted, never stopped by a signal, so neither the target nor its parent can see it; PTRACE_O_EXITKILL is never
set. A thread in a blocking system call restarts it by itself; the few calls that would return EINTR instead are made to restart too. That
can only be done in its stop: a thread that was interrupted is waited for, also when the others have been let go because it was late.
All of it must run in one thread of the session, made for it: the kernel lets all tracees go when their tracer's thread ends, whatever
happened before (`run_as_tracer` of tracer.py).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from actors.session.ptrace.threads import is_dead, thread_state, tracer_of
from strobe import ptrace as calls
from strobe.errors import Code, StrobeError
from strobe.ptrace import Registers

STOP_S: Final = 0.020
HELD_INTERVAL_S: Final = 1.0  # no other thread of the session may take the interpreter away during a stop
ROUNDS: Final = 3  # of waiting for late threads while the others run
LATE_S: Final = 5.0  # for one that gets no processor; after that it is in an uninterruptible wait
LATE_PAUSE_S: Final = 0.0005
SEIZE_TRIES: Final = 3  # a refusal without a tracer to be seen may be about one that has just let go

class NotStopped(Exception):
    """A thread did not stop in time, or another tracer holds one. Nothing is left held; trying again may help."""


@dataclass(slots=True)
class Tracee:
    """A held thread; `registers` are its own, `stopped` once it is really held."""

    tid: int
    registers: Registers
    stopped: bool = False
    group_stop: bool = False  # found stopped by SIGSTOP (or its kin), not running


class StoppedWorld:
    """`with StoppedWorld(pid) as world:` — inside, no thread of `pid` runs. Raises NotStopped, StrobeError PROCESS_EXITED, and
    ProcessLookupError when the process is killed meanwhile."""

    def __init__(self, pid: int, bound_s: float = STOP_S) -> None:
        self.pid = pid
        self.tracees: dict[int, Tracee] = {}
        self._bound_s = bound_s
        self._seized: set[int] = set()
        self._tasks = -1

    def __enter__(self) -> StoppedWorld:
        try:
            self._tasks = os.open(f"/proc/{self.pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _ended(self.pid) from None
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(HELD_INTERVAL_S)
        self.began = time.perf_counter()
        try:
            self._stop()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._release()

    # Stopping

    def _stop(self) -> None:
        """Until a whole look at the list of threads finds none that is not held: a held thread makes no new ones."""
        for _ in range(ROUNDS):
            if self._hold_all(self.began + self._bound_s):
                break
            slow = next(tracee.tid for tracee in self.tracees.values() if not tracee.stopped)
            reason = f"thread {slow} did not stop in {self._bound_s * 1000:g} ms (state {thread_state(self.pid, slow)})"
            self._let_held_go()
            if not self._wait_for_late():
                raise NotStopped(reason)
            self.began = time.perf_counter()
        else:
            raise NotStopped(reason)
        if not self.tracees:
            raise _ended(self.pid)

    def _hold_all(self, deadline: float) -> bool:
        """False: not in time."""
        while new := [tid for tid in calls.list_numbers(self._tasks) if tid not in self._seized]:
            for tid in new:
                self._seize(tid)
            if not self._collect(deadline):
                return False
        return True

    def _seize(self, tid: int) -> None:
        self._seized.add(tid)
        for _ in range(SEIZE_TRIES):
            try:
                calls.ptrace(calls.SEIZE, tid, 0, calls.O_TRACESYSGOOD)
                calls.ptrace(calls.INTERRUPT, tid)
            except ProcessLookupError:
                return
            except PermissionError:
                if is_dead(self.pid, tid):
                    return
                tracer = tracer_of(self.pid, tid)
                if tracer:
                    raise NotStopped(f"thread {tid} is traced by process {tracer}") from None
            else:
                self.tracees[tid] = Tracee(tid, Registers())
                return
        raise _not_permitted(self.pid)

    def _collect(self, deadline: float) -> bool:
        """Waits until each is held or gone. False: not in time."""
        waiting = self._not_held()
        while waiting:
            waiting = [tracee for tracee in waiting if not self._has_stopped(tracee)]
            if waiting and time.perf_counter() > deadline:
                return False
            calls.yield_cpu()
        return True

    def _not_held(self) -> list[Tracee]:
        return [tracee for tracee in self.tracees.values() if not tracee.stopped]

    def _let_held_go(self) -> None:
        """They are found anew in the next round."""
        for tracee in [tracee for tracee in self.tracees.values() if tracee.stopped]:
            with suppress(ProcessLookupError):  # killed meanwhile
                calls.ptrace(calls.DETACH, tracee.tid)
            del self.tracees[tracee.tid]
            self._seized.discard(tracee.tid)

    def _wait_for_late(self) -> bool:
        """Until what was interrupted is held, or gone: let go before, its system call would end with EINTR. False: it does not come; the
        kernel lets it go when this thread ends (run_as_tracer)."""
        deadline = time.monotonic() + LATE_S
        waiting = self._not_held()
        sys.setswitchinterval(self._interval)
        while waiting and time.monotonic() < deadline:
            time.sleep(LATE_PAUSE_S)
            waiting = [tracee for tracee in waiting if not self._has_stopped(tracee)]
        sys.setswitchinterval(HELD_INTERVAL_S)
        for tracee in waiting:
            del self.tracees[tracee.tid]
        return not waiting

    def _has_stopped(self, tracee: Tracee) -> bool:
        """True once it is held for good, or gone."""
        try:
            status = calls.wait(tracee.tid)
        except ChildProcessError:
            status = 0  # reaped as a group leader that died before the other threads
        if status is None:
            if is_dead(self.pid, tracee.tid):
                del self.tracees[tracee.tid]
                return True
            return False
        if not os.WIFSTOPPED(status):
            del self.tracees[tracee.tid]
            return True
        return self._take_stop(tracee, status)

    def _take_stop(self, tracee: Tracee, status: int) -> bool:
        """A signal that was on its way before the interruption is delivered as it would have been; the interruption comes next."""
        if not calls.is_event_stop(status):
            calls.ptrace(calls.CONT, tracee.tid, 0, os.WSTOPSIG(status))
            return False
        tracee.stopped, tracee.group_stop = True, os.WSTOPSIG(status) != signal.SIGTRAP
        tracee.registers = calls.get_registers(tracee.tid)  # ProcessLookupError: killed since, with its process
        calls.restart_interrupted(tracee.tid, tracee.registers)
        return True

    # While it stands still

    def move(self, tracee: Tracee, address: int) -> None:
        """The thread goes on at `address`."""
        tracee.registers.rip = address
        calls.set_registers(tracee.tid, tracee.registers)

    def end_group_stop(self) -> None:
        """A target found stopped by SIGSTOP runs on when it is let go. One that was running gets no signal."""
        if any(tracee.group_stop for tracee in self.tracees.values()):
            calls.kill(self.pid, signal.SIGCONT)

    def elapsed_s(self) -> float:
        return time.perf_counter() - self.began

    # Letting go

    def _release(self) -> None:
        self.threads = len(self.tracees)
        self._let_held_go()
        self.stopped_s = self.elapsed_s()
        try:
            if self.tracees:  # given up in the middle
                self._wait_for_late()
                self._let_held_go()
        finally:
            sys.setswitchinterval(self._interval)
            os.close(self._tasks)


def _ended(pid: int) -> StrobeError:
    return StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again.", value=pid)


def _not_permitted(pid: int) -> StrobeError:
    what = f"Process {pid} may not be stopped: ptrace is not permitted."
    return StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Run Strobe as the process's own user; in a container, allow SYS_PTRACE.", value=pid)
