"""Waiting for, and telling of, a change of a 32-bit word in memory that processes share (futex(2))."""

from __future__ import annotations

import ctypes
from typing import Final

SYS_FUTEX: Final = 202
WAIT: Final = 0
WAKE: Final = 1
EVERYONE: Final = 0x7FFFFFFF

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p]


class _Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def wait(address: int, value: int, bound_s: float) -> None:
    """Returns when the word at `address` is not `value`, when somebody wakes, or after `bound_s`; now and then for no reason. Other threads run."""
    bound = _Time(int(bound_s), int(bound_s % 1 * 1e9))
    _syscall(SYS_FUTEX, address, WAIT, value, ctypes.addressof(bound))


def wake(address: int) -> None:
    _syscall(SYS_FUTEX, address, WAKE, EVERYONE, None)
