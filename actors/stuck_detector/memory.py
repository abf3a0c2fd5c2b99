"""Reading another process's memory without stopping it: process_vm_readv(2)."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

_libc = ctypes.CDLL(None, use_errno=True)
_readv = _libc.process_vm_readv
_readv.restype = ctypes.c_ssize_t
BYTES_MAX: Final = 1 << 20


class _Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def peek(pid: int, address: int, size: int) -> bytes:
    """Up to `size` bytes, fewer where the mapping ends before; empty where nothing can be read."""
    size = min(size, BYTES_MAX)
    buffer = ctypes.create_string_buffer(size)
    here, there = _Span(ctypes.addressof(buffer), size), _Span(address, size)
    got = _readv(pid, ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there), ctypes.c_ulong(1), ctypes.c_ulong(0))
    return buffer.raw[: max(got, 0)]


def words(pid: int, address: int, count: int) -> tuple[int, ...] | None:
    """`count` u32, or None."""
    content = peek(pid, address, 4 * count)
    return struct.unpack(f"<{count}I", content) if len(content) == 4 * count else None
