"""ptrace(2) and waitpid(2) through ctypes.

`PyDLL` keeps the interpreter's lock during a call: none of these calls blocks, and giving the lock away between them would let another
thread of the session run for milliseconds while the target stands still.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

PEEKDATA: Final = 2
POKEDATA: Final = 5
CONT: Final = 7
SINGLESTEP: Final = 9
GETREGS: Final = 12
SETREGS: Final = 13
DETACH: Final = 17
SYSCALL: Final = 24
GETREGSET: Final = 0x4204
SETREGSET: Final = 0x4205
SEIZE: Final = 0x4206
INTERRUPT: Final = 0x4207
GETSIGMASK: Final = 0x420A
SETSIGMASK: Final = 0x420B
O_TRACESYSGOOD: Final = 1
EVENT_STOP: Final = 128
NT_X86_XSTATE: Final = 0x202
WNOHANG: Final = 1
WNOTHREAD: Final = 0x20000000
WALL: Final = 0x40000000

_libc = ctypes.PyDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_ptrace.restype = ctypes.c_long
_waitpid = _libc.waitpid
_waitpid.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int]
_sched_yield = _libc.sched_yield
_status = ctypes.c_int()


class Registers(ctypes.Structure):
    """struct user_regs_struct of <sys/user.h>."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp",
            "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
        )
    ]  # fmt: skip
    r15: int
    rax: int
    rdi: int
    orig_rax: int
    rip: int
    rsp: int


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> None:
    """Raises OSError (ProcessLookupError: gone, or not stopped; PermissionError: traced by another, or a zombie)."""
    if _ptrace(request, tid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def get_registers(tid: int) -> Registers:
    registers = Registers()
    ptrace(GETREGS, tid, 0, ctypes.addressof(registers))
    return registers


def set_registers(tid: int, registers: Registers) -> None:
    ptrace(SETREGS, tid, 0, ctypes.addressof(registers))


def get_vector_state(tid: int) -> bytes:
    """The xsave area: floating point and vector registers."""
    area = ctypes.create_string_buffer(1 << 16)
    vector = _Vector(ctypes.addressof(area), len(area))
    ptrace(GETREGSET, tid, NT_X86_XSTATE, ctypes.addressof(vector))
    return area.raw[: vector.length]


def set_vector_state(tid: int, state: bytes) -> None:
    area = ctypes.create_string_buffer(state, len(state))
    vector = _Vector(ctypes.addressof(area), len(state))
    ptrace(SETREGSET, tid, NT_X86_XSTATE, ctypes.addressof(vector))


def get_signal_mask(tid: int) -> int:
    mask = ctypes.c_uint64()
    ptrace(GETSIGMASK, tid, 8, ctypes.addressof(mask))
    return mask.value


def set_signal_mask(tid: int, mask: int) -> None:
    value = ctypes.c_uint64(mask)
    ptrace(SETSIGMASK, tid, 8, ctypes.addressof(value))


def wait(tid: int) -> int | None:
    """Status of `tid` if it has changed, None if not yet. Never blocks. ChildProcessError: no tracee of this thread."""
    while True:
        found = _waitpid(tid, ctypes.byref(_status), WNOHANG | WALL | WNOTHREAD)
        if found >= 0:
            return _status.value if found else None
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def yield_cpu() -> None:
    """Lets a tracee run on this processor."""
    _sched_yield()


def is_event_stop(status: int) -> bool:
    """A stop by PTRACE_INTERRUPT, or a group-stop."""
    return os.WIFSTOPPED(status) and status >> 16 == EVENT_STOP
