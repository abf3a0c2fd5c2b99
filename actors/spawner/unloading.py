"""Frida's agent is unmapped only when its last thread has ended.

On leaving, the thread of Frida's loader waits for the agent's threads, frees the agent's memory and unmaps its library (dlclose). One kind of
thread it does not wait for: those that GLib's thread pool starts to close the connection. On a busy machine one of them may still be on its
way out when its code is unmapped, and the target dies of SIGSEGV (4 of 150 visits to an idle process, load 7 on 2 cores; in each core
the faulting thread stood in the unmapped library while the loader's was already past it). So the loader's thread is traced while it leaves,
and its first munmap that is not of a thread's stack waits until the other threads are gone.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from actors.spawner.process import TargetProcess
from strobe import ptrace
from strobe.errors import StrobeError
from strobe.ptrace import Registers

MUNMAP: Final = 11  # asm/unistd_64.h
SYSCALL_STOP: Final = 0x80  # added to SIGTRAP by PTRACE_O_TRACESYSGOOD
STACK_BYTES: Final = 1 << 16  # of the loader's stack, in which its own code is returned to
BOUND_S: Final = 1.5  # for all of it; then the loader goes on as it would have without us
PAUSE_S: Final = 0.0002
SPIN_S: Final = 0.0005  # most of its system calls follow each other closely
TRIES: Final = 20


def find_loader(target: TargetProcess, own: frozenset[int], brought: frozenset[int]) -> int | None:
    """The loader's thread, which waits while an agent is there; `own` are threads that the target had before. None when it does not show."""
    for _ in range(TRIES):
        if (found := _loader_among(target, sorted(target.threads() - own), brought)) is not None:
            return found
        time.sleep(PAUSE_S)
    return None


def _loader_among(target: TargetProcess, threads: Iterable[int], brought: frozenset[int]) -> int | None:
    """The thread that will return to the loader's code, an anonymous executable mapping: it has such an address on its stack."""
    code = [one for one in target.mappings() if one.start in brought and not one.path]
    with Path(f"/proc/{target.pid}/mem").open("rb", buffering=0) as memory:
        for tid in threads:
            with suppress(OSError, ValueError, IndexError):  # it runs just now, or has ended
                stack_pointer = int(Path(f"/proc/{target.pid}/task/{tid}/syscall").read_text().split()[-2], 16)
                memory.seek(stack_pointer & -8)
                stack = memory.read(STACK_BYTES)
                words = struct.unpack(f"<{len(stack) // 8}Q", stack[: len(stack) & -8])
                if any(one.start <= word < one.end for word in words for one in code):
                    return tid
    return None


class Unloading:
    """Traces the loader's thread, in a thread of its own, until only it is left of those that Frida brought."""

    def __init__(self, target: TargetProcess, loader: int, own: frozenset[int]) -> None:
        """`own`: the threads that the target had before Frida came."""
        self._target = target
        self._loader = loader
        self._own = own
        self._deadline = time.monotonic() + BOUND_S
        self._traced = threading.Event()
        self._thread = threading.Thread(target=self._run, name="unloading")

    @classmethod
    def begin(cls, target: TargetProcess, own: frozenset[int], brought: frozenset[int]) -> Unloading | None:
        """Returns once the loader's thread is traced, or cannot be. None: it does not show, or the target has ended."""
        try:
            loader = find_loader(target, own, brought)
        except (OSError, StrobeError):
            return None  # what follows finds the target gone, and says so
        if loader is None:
            return None
        made = cls(target, loader, own)
        made._thread.start()
        made._traced.wait(BOUND_S)
        return made

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        """All in one thread, as ptrace wants it; its end lets the tracee go, whatever happened."""
        try:
            ptrace.ptrace(ptrace.SEIZE, self._loader, 0, ptrace.O_TRACESYSGOOD)
            ptrace.ptrace(ptrace.INTERRUPT, self._loader)
            self._until_alone()
        except (ProcessLookupError, PermissionError, ChildProcessError, StrobeError):
            pass  # it has ended, or another debugger has it: nothing to look after
        finally:
            self._traced.set()

    def _until_alone(self) -> None:
        while (status := self._stop()) is not None:
            self._traced.set()
            signo = os.WSTOPSIG(status)
            if signo == SYSCALL_STOP | 5 and self._frees(ptrace.get_registers(self._loader)):
                self._wait_for_others()
                ptrace.ptrace(ptrace.DETACH, self._loader)
                return
            passed_on = 0 if signo == SYSCALL_STOP | 5 or ptrace.is_event_stop(status) else signo
            ptrace.ptrace(ptrace.SYSCALL, self._loader, 0, passed_on)

    def _stop(self) -> int | None:
        """The next stop's status; None when the thread has ended or time is up."""
        began = time.monotonic()
        while (now := time.monotonic()) < self._deadline:
            status = ptrace.wait(self._loader)
            if status is not None:
                return status if os.WIFSTOPPED(status) else None
            if now - began < SPIN_S:
                ptrace.yield_cpu()
            else:
                time.sleep(PAUSE_S)
        return None

    def _frees(self, registers: Registers) -> bool:
        """At the entry of a munmap that is not a thread's stack, which begins with a guard page (pthread_attr_setguardsize(3))."""
        if registers.orig_rax != MUNMAP or registers.rax != -38 & (1 << 64) - 1:  # -ENOSYS: on entry
            return False
        mapping = next((one for one in self._target.mappings() if one.start <= registers.rdi < one.end), None)
        return mapping is not None and not mapping.permissions.startswith("---")

    def _wait_for_others(self) -> None:
        while time.monotonic() < self._deadline and self._others():
            time.sleep(PAUSE_S)

    def _others(self) -> frozenset[int]:
        return self._target.threads() - self._own - {self._loader}

