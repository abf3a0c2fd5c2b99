"""Calling a function of a target on a held thread, which afterwards goes on as if nothing had happened.

The call ends in a system call, not in a fault or a breakpoint: SIGSEGV or SIGTRAP raised in a thread that blocks or ignores them would reset
the target's handlers. The return address is a `syscall` instruction of the vDSO; the stop at its entry is the end, and the call is not made.
Signals stay pending meanwhile (PTRACE_SETSIGMASK). The registers are given back in a stop of the kind they were taken in, so that an
interrupted system call restarts as it would have.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

from actors.session.ptrace.memory import Memory
from actors.session.ptrace.world import StoppedWorld, Tracee
from strobe import ptrace as calls
from strobe.ptrace import Registers

CALL_S: Final = 3.0  # it takes microseconds, but on an overloaded machine the thread may get no processor for a second
LATE_S: Final = 10.0  # then it is interrupted, and waited for: let go in the middle of a call it would return to where no code is
RED_ZONE: Final = 128
NO_SYSCALL: Final = (1 << 64) - 1
ALL_SIGNALS: Final = (1 << 64) - 1
DIRECTION_AND_TRAP_FLAGS: Final = 0x500
SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
SYSCALL_INSTRUCTION: Final = b"\x0f\x05"


class CallFailed(Exception):
    """The function did not return. The thread has its own registers back."""


def call(world: StoppedWorld, memory: Memory, function: int, *arguments: int) -> int:
    """What `function(*arguments)` (at most three) returns in rax, on the main thread where it is held. Raises CallFailed."""
    tracee = world.tracees.get(world.pid) or next(iter(world.tracees.values()))
    vectors = calls.get_vector_state(tracee.tid)
    mask = calls.get_signal_mask(tracee.tid)
    one = _Call(world.pid, tracee, find_syscall(memory))
    calls.set_signal_mask(tracee.tid, ALL_SIGNALS)
    try:
        return one.run(memory, function, *arguments)
    finally:
        calls.set_registers(tracee.tid, tracee.registers)
        calls.set_vector_state(tracee.tid, vectors)
        calls.set_signal_mask(tracee.tid, mask)
        for signo in one.stops:
            calls.kill(world.pid, signo)


def find_syscall(memory: Memory) -> int:
    """Address of a `syscall` instruction in the vDSO. Raises CallFailed where there is none (vdso=0)."""
    lines = Path(memory.maps).read_text(errors="surrogateescape").splitlines()
    line = next((line for line in lines if line.endswith("[vdso]")), None)
    if line is not None:
        start, end = (int(bound, 16) for bound in line.split()[0].split("-"))
        at = memory.read(start, end - start).find(SYSCALL_INSTRUCTION)
        if at >= 0:
            return start + at
    raise CallFailed("the target has no vDSO with a system call in it")


class _Call:
    def __init__(self, pid: int, tracee: Tracee, trap: int) -> None:
        self.pid = pid
        self.tid = tracee.tid
        self.stops: list[int] = []  # SIGSTOP that arrived meanwhile: no mask holds it back
        self._saved = tracee.registers
        self._trap = trap
        self._deadline = time.perf_counter() + CALL_S
        self._late = False

    def run(self, memory: Memory, function: int, first: int = 0, second: int = 0, third: int = 0) -> int:
        registers = Registers.from_buffer_copy(self._saved)
        registers.rip = function
        registers.rdi, registers.rsi, registers.rdx = first, second, third
        registers.rsp = ((self._saved.rsp - RED_ZONE) & -16) - 8
        registers.rax, registers.orig_rax = 0, NO_SYSCALL
        registers.eflags &= ~DIRECTION_AND_TRAP_FLAGS
        memory.write(registers.rsp, self._trap.to_bytes(8, "little"))
        calls.set_registers(self.tid, registers)
        result = self._until_trap()
        self._leave_syscall()
        return result & NO_SYSCALL

    def _until_trap(self) -> int:
        """What the function returned: the number of the system call that its return address leads to."""
        while True:
            calls.ptrace(calls.SYSCALL, self.tid)
            status = self._wait()
            if os.WSTOPSIG(status) == SYSCALL_STOP:
                registers = calls.get_registers(self.tid)
                if registers.rip == self._trap + len(SYSCALL_INSTRUCTION):
                    return registers.orig_rax
            elif self._late and calls.is_event_stop(status):
                raise CallFailed(f"it did not return in {CALL_S:g} s")
            elif not calls.is_event_stop(status):
                self._take_signal(os.WSTOPSIG(status))

    def _leave_syscall(self) -> None:
        """From the stop at the system call's entry, without making it, to a stop like the one the thread was found in."""
        registers = calls.get_registers(self.tid)
        registers.orig_rax = NO_SYSCALL
        calls.set_registers(self.tid, registers)
        calls.ptrace(calls.INTERRUPT, self.tid)
        while True:
            calls.ptrace(calls.CONT, self.tid)
            status = self._wait()
            if calls.is_event_stop(status):
                return
            self._take_signal(os.WSTOPSIG(status))

    def _take_signal(self, signo: int) -> None:
        if signo != signal.SIGSTOP:
            raise CallFailed(f"it was ended by {signal.Signals(signo).name} at {calls.get_registers(self.tid).rip:#x}")
        self.stops.append(signo)

    def _wait(self) -> int:
        while True:
            status = calls.wait(self.tid)
            if status is not None:
                if not os.WIFSTOPPED(status):
                    raise CallFailed("the thread ended")
                return status
            if time.perf_counter() > self._deadline:
                if self._late:
                    raise CallFailed(f"it could not be interrupted in {LATE_S:g} s")
                self._late = True
                self._deadline += LATE_S
                calls.ptrace(calls.INTERRUPT, self.tid)
            calls.yield_cpu()
