"""Calling a function of a target on a held thread, which afterwards goes on as if nothing had happened.

The call ends in a system call, not in a fault or a breakpoint: SIGSEGV or SIGTRAP raised in a thread that blocks or ignores them would reset
the target's handlers. The function returns to code of the recorder's (recorder_return.S); the stop at the entry of its system call is the
end. Signals stay pending meanwhile (PTRACE_SETSIGMASK). The registers are given back in a stop of the kind they
were taken in, so that an interrupted system call restarts as it would have.

The registers and the signal mask also lie on the thread's stack, below the red zone: should this process be killed before it has given them
back, the kernel lets the thread go, and that same code of the recorder's takes them from there. What is called (the recorder) touches no
vector register.
"""

from __future__ import annotations

import os
import signal
import struct
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
RETURN: Final = b"strobe: return!\0"  # before strobe_return
_RESTARTED_AS: Final = {code & NO_SYSCALL: None for code in (-512, -513, -514)} | {-516 & NO_SYSCALL: 219}  # ERESTART*: as itself, or restart_syscall(2)
_POPPED: Final = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "eflags", "rip")
_FRAME: Final = struct.Struct(f"<{1 + len(_POPPED)}Q")


class CallFailed(Exception):
    """The function did not return. The thread has its own registers back."""


def call(world: StoppedWorld, memory: Memory, function: int, *arguments: int) -> int:
    """What `function(*arguments)` (at most three; of the recorder, or beside a strobe_return) returns in rax, on the main thread where it is held.
    Raises CallFailed."""
    tracee = world.tracees.get(world.pid) or next(iter(world.tracees.values()))
    mask = calls.get_signal_mask(tracee.tid)
    one = _Call(world.pid, tracee, find_return(memory, function))
    try:
        return one.run(memory, mask, function, *arguments)
    finally:
        calls.set_signal_mask(tracee.tid, mask)
        calls.set_registers(tracee.tid, tracee.registers)
        for signo in one.stops:
            calls.kill(world.pid, signo)


def find_return(memory: Memory, function: int) -> int:
    """Address of strobe_return, in the same mapping as `function`. Raises CallFailed where there is none."""
    for line in Path(memory.maps).read_text(errors="surrogateescape").splitlines():
        start, end = (int(bound, 16) for bound in line.split(maxsplit=1)[0].split("-"))
        if start <= function < end:
            at = memory.read_some(start, end - start).find(RETURN)
            if at >= 0:
                return start + at + len(RETURN)
    raise CallFailed(f"there is no recorder at {function:#x}")


def own_frame(saved: Registers, mask: int) -> tuple[int, bytes]:
    """(address, content) of what strobe_return takes: the thread then goes on as the kernel would have let it go on from its stop."""
    registers = Registers.from_buffer_copy(saved)
    if saved.orig_rax != NO_SYSCALL and saved.rax in _RESTARTED_AS:
        registers.rip -= len(SYSCALL_INSTRUCTION)
        registers.rax = _RESTARTED_AS[saved.rax] or saved.orig_rax
    content = _FRAME.pack(mask, *(getattr(registers, name) for name in _POPPED))
    return (saved.rsp - RED_ZONE - len(content)) & NO_SYSCALL, content


class _Call:
    def __init__(self, pid: int, tracee: Tracee, back: int) -> None:
        self.pid = pid
        self.tid = tracee.tid
        self.stops: list[int] = []  # SIGSTOP that arrived meanwhile: no mask holds it back
        self._saved = tracee.registers
        self._back = back
        self._trap = 0
        self._deadline = time.perf_counter() + CALL_S
        self._late = False

    def run(self, memory: Memory, mask: int, function: int, first: int = 0, second: int = 0, third: int = 0) -> int:
        code = memory.read(self._back, 64)
        self._trap = self._back + code.index(SYSCALL_INSTRUCTION) + len(SYSCALL_INSTRUCTION)
        frame, content = own_frame(self._saved, mask)
        registers = Registers.from_buffer_copy(self._saved)
        registers.rip = function
        registers.rdi, registers.rsi, registers.rdx = first, second, third
        registers.rbx = frame
        registers.rsp = (frame & -16) - 8
        registers.rax, registers.orig_rax = 0, NO_SYSCALL
        registers.eflags &= ~DIRECTION_AND_TRAP_FLAGS
        memory.write(frame, content)
        memory.write(registers.rsp, self._back.to_bytes(8, "little"))
        calls.set_registers(self.tid, registers)
        calls.set_signal_mask(self.tid, ALL_SIGNALS)
        result = self._until_trap()
        self._leave_syscall()
        return result & NO_SYSCALL

    def _until_trap(self) -> int:
        """What the function returned, which is in r12 at strobe_return's system call."""
        while True:
            calls.ptrace(calls.SYSCALL, self.tid)
            status = self._wait()
            if os.WSTOPSIG(status) == SYSCALL_STOP:
                registers = calls.get_registers(self.tid)
                if registers.rip == self._trap:
                    return registers.r12
            elif self._late and calls.is_event_stop(status):
                raise CallFailed(f"it did not return in {CALL_S:g} s")
            elif not calls.is_event_stop(status):
                self._take_signal(os.WSTOPSIG(status))

    def _leave_syscall(self) -> None:
        """From the stop at the system call's entry to a stop like the one the thread was found in. The call gives it its signal mask back; signals
        that waited are delivered after that stop."""
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
