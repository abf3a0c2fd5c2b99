"""ptrace(2) and the other system calls that are made while a target stands still, through ctypes.

`PyDLL` keeps the interpreter's lock during a call. None of these blocks, and giving the lock away (as the functions of `os` do) would let
another thread of the session run for as long as it likes before this one, and with it the target, goes on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PEEKDATA: Final = 2
POKEDATA: Final = 5
CONT: Final = 7
SINGLESTEP: Final = 9
GETREGS: Final = 12
SETREGS: Final = 13
DETACH: Final = 17
SYSCALL: Final = 24
SEIZE: Final = 0x4206
INTERRUPT: Final = 0x4207
GETSIGMASK: Final = 0x420A
SETSIGMASK: Final = 0x420B
O_TRACESYSGOOD: Final = 1
O_TRACEEXEC: Final = 0x10
EVENT_EXEC: Final = 4
EVENT_STOP: Final = 128
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
_kill = _libc.kill
_pread = _libc.pread
_pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
_pread.restype = ctypes.c_ssize_t
_pwrite = _libc.pwrite
_pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
_pwrite.restype = ctypes.c_ssize_t
_lseek = _libc.lseek
_lseek.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int]
_lseek.restype = ctypes.c_long
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
SYS_GETDENTS64: Final = 217
_entries = ctypes.create_string_buffer(1 << 15)
_status = ctypes.c_int()
_EINTR: Final = -4 & (1 << 64) - 1
_ERESTARTNOHAND: Final = -514 & (1 << 64) - 1
# System calls that a stop ends with EINTR although no signal was delivered (signal(7), "Interruption of system calls … by stop signals").
# ERESTARTNOHAND is what the kernel itself uses: restart unless a handler ran. asm/unistd_64.h.
_INTERRUPTED: Final = frozenset((
    0, 1, 17, 18, 19, 20,  # read, write, pread64, pwrite64, readv, writev (inotify, timeouts of sockets)
    40, 275,  # sendfile, splice
    42, 43, 44, 45, 46, 47, 288, 299, 307,  # connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg
    65, 220,  # semop, semtimedop
    128,  # rt_sigtimedwait
    208, 333,  # io_getevents, io_pgetevents
    232, 281, 441,  # epoll_wait, epoll_pwait, epoll_pwait2
    426,  # io_uring_enter
))  # fmt: skip


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
    r12: int
    rbx: int
    rax: int
    rdi: int
    rdx: int
    rsi: int
    orig_rax: int
    rip: int
    eflags: int
    rsp: int


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


def get_signal_mask(tid: int) -> int:
    mask = ctypes.c_uint64()
    ptrace(GETSIGMASK, tid, 8, ctypes.addressof(mask))
    return mask.value


def set_signal_mask(tid: int, mask: int) -> None:
    value = ctypes.c_uint64(mask)
    ptrace(SETSIGMASK, tid, 8, ctypes.addressof(value))


def wait(tid: int) -> int | None:
    """Status of `tid` (-1: of any tracee) if it has changed, None if not yet. Never blocks. ChildProcessError: no tracee of this thread."""
    while True:
        found = _waitpid(tid, ctypes.byref(_status), WNOHANG | WALL | WNOTHREAD)
        if found >= 0:
            return _status.value if found else None
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def kill(pid: int, signo: int) -> None:
    _check(_kill(pid, signo))


def pread(file: int, size: int, offset: int) -> bytearray:
    """Up to `size` bytes, as os.pread."""
    data = bytearray(size)
    if size:
        del data[_check(_pread(file, ctypes.addressof(ctypes.c_char.from_buffer(data)), size, offset)) :]
    return data


def pwrite(file: int, data: bytes | bytearray, offset: int) -> int:
    """Bytes written, as os.pwrite."""
    if isinstance(data, bytes):
        return _check(_pwrite(file, data, len(data), offset))
    return _check(_pwrite(file, ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data), offset))


def list_numbers(folder: int) -> list[int]:
    """The names in an open folder that are numbers, as /proc/PID/task has them (getdents64(2)). Empty once the process is gone."""
    _lseek(folder, 0, os.SEEK_SET)
    found: list[int] = []
    while (size := _syscall(SYS_GETDENTS64, folder, _entries, len(_entries))) > 0:
        content, at = _entries.raw[:size], 0
        while at < size:
            length = int.from_bytes(content[at + 16 : at + 18], "little")
            name = content[at + 19 : content.index(b"\0", at + 19)]
            if name.isdigit():
                found.append(int(name))
            at += length
    return found


def yield_cpu() -> None:
    """Lets a tracee run on this processor."""
    _sched_yield()


def restart_interrupted(tid: int, registers: Registers) -> None:
    """In a stop by PTRACE_INTERRUPT: the system call that it has ended, if it has, is made again as the thread goes on. `registers` are those of the stop."""
    if registers.rax == _EINTR and registers.orig_rax in _INTERRUPTED:
        registers.rax = _ERESTARTNOHAND
        set_registers(tid, registers)


def run_as_tracer(work: Callable[[], T]) -> T:
    """`work` in a thread of its own, whose end lets every tracee go. Blocks; raises what `work` raised."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            failure.append(error)

    thread = threading.Thread(target=run, name="tracer")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def is_event_stop(status: int) -> bool:
    """A stop by PTRACE_INTERRUPT, or a group-stop."""
    return os.WIFSTOPPED(status) and status >> 16 == EVENT_STOP
