"""Instructions that Python has no words for: reading the time-stamp counter, an atomic add to shared memory, and compare-and-swap there.

Their code lies in an executable mapping of an anonymous file: never writable and executable at once, so that it is allowed wherever
programs may be loaded at all. Where it is refused (or on another processor) `machine()` is None and callers do without.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

# lfence; rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_TSC: Final = bytes.fromhex("0faee8 0f31 48c1e220 4809d0 c3")
# mov eax, esi; lock xadd [rdi], eax; ret
_ATOMIC_ADD: Final = bytes.fromhex("89f0 f00fc107 c3")
# mov eax, esi; lock cmpxchg [rdi], edx; ret
_SWAP: Final = bytes.fromhex("89f0 f00fb117 c3")
_PLACE_BYTES: Final = 64


@dataclass(frozen=True)
class Machine:
    """`read_tsc()` → counter; `atomic_add(address, amount)` adds to the i32 there and returns what it was; `swap(address,
    expected, desired)` stores `desired` in the u32 there if it is `expected`, and returns what it was."""

    read_tsc: Callable[[], int]
    atomic_add: Callable[[int, int], int]
    swap: Callable[[int, int, int], int]


@functools.cache
def machine() -> Machine | None:
    if platform.machine() != "x86_64":
        return None
    try:
        file = os.memfd_create("strobe-machine-code", os.MFD_CLOEXEC)
    except OSError:
        return None
    try:
        os.pwrite(file, b"".join(code.ljust(_PLACE_BYTES, b"\xcc") for code in (_READ_TSC, _ATOMIC_ADD, _SWAP)), 0)
        code = mmap.mmap(file, 3 * _PLACE_BYTES, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    except OSError:
        return None
    finally:
        os.close(file)
    view = np.frombuffer(code, dtype=np.uint8)
    _keep.append(view)
    address = view.ctypes.data
    return Machine(
        read_tsc=ctypes.CFUNCTYPE(ctypes.c_uint64)(address),
        atomic_add=ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(address + _PLACE_BYTES),
        swap=ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)(address + 2 * _PLACE_BYTES),
    )


_keep: Final[list[object]] = []  # the mapping lives as long as the functions that point into it
