"""The memory of a process that runs: nothing is stopped or changed for reading (process_vm_readv(2))."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from actors.session.ptrace.threads import is_dead, thread_ids
from strobe.errors import Code, StrobeError
from strobe.values.memory import Missing

PAGE: Final = 4096
_PAGES_MAX: Final = 8192  # kept of one look
_BLOCK: Final = 16 * PAGE  # more is read at once, and not kept
_ADDRESSES: Final = 1 << 47  # of user space on x86-64 (4-level paging; what lies above is not mapped)

_libc = ctypes.CDLL(None, use_errno=True)


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


for _call in (_libc.process_vm_readv, _libc.process_vm_writev):
    _call.restype = ctypes.c_ssize_t
    _call.argtypes = [ctypes.c_int, ctypes.POINTER(_Vector), ctypes.c_ulong, ctypes.POINTER(_Vector), ctypes.c_ulong, ctypes.c_ulong]


class LiveMemory:
    """One look: a page is read once, so that what is shown together was there together as far as that goes. `forget` begins the next look.

    Errors: PROCESS_EXITED once the process is gone, FRIDA_ATTACH_FAILED where it may not be read.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._alive = next((tid for tid in thread_ids(pid) if not is_dead(pid, tid)), pid)  # a main thread that has ended shows no memory
        self._pages: dict[int, bytes | None] = {}

    def forget(self) -> None:
        self._pages.clear()

    def read(self, address: int, size: int) -> bytes | Missing:
        if size < 0 or not 0 <= address < _ADDRESSES or address + size > _ADDRESSES:
            return Missing("unreadable", address)
        if size > _BLOCK:
            found = self.prefix(address, size)
            return found if len(found) == size else Missing("unreadable", address + len(found))
        first = address & -PAGE
        if address + size <= first + PAGE:
            page = self._page(first)
            return Missing("unreadable", address) if page is None else page[address - first : address - first + size]
        parts: list[bytes] = []
        for start in range(first, address + size, PAGE):
            page = self._page(start)
            if page is None:
                return Missing("unreadable", max(address, start))
            parts.append(page)
        return b"".join(parts)[address - first : address - first + size]

    def prefix(self, address: int, size: int) -> bytes:
        """As many of the bytes as are there, at this moment."""
        found = bytearray()
        while len(found) < size:
            at = address + len(found)
            piece = self._read_some(at, size - len(found))
            if not piece:  # the call gives up as a whole where a later page is missing: up to the page's end it may do
                piece = self._read_some(at, min(size - len(found), PAGE - at % PAGE))
            if not piece:
                break
            found += piece
        return bytes(found)

    def write(self, address: int, data: bytes) -> None:
        """All of it, page protection respected. Raises OSError EFAULT where it may not be written."""
        buffer = ctypes.create_string_buffer(data, len(data))
        done = _libc.process_vm_writev(self._alive, _vector(ctypes.addressof(buffer), len(data)), 1, _vector(address, len(data)), 1, 0)
        if done < 0:
            raise self._failure() or OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._pages.clear()
        if done != len(data):
            raise OSError(errno.EFAULT, f"{done} of {len(data)} bytes were written")

    def _page(self, start: int) -> bytes | None:
        if start not in self._pages:
            if len(self._pages) >= _PAGES_MAX:
                self._pages.clear()
            found = self._read_some(start, PAGE)
            self._pages[start] = found if len(found) == PAGE else None
        return self._pages[start]

    def _read_some(self, address: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        done = _libc.process_vm_readv(self._alive, _vector(ctypes.addressof(buffer), size), 1, _vector(address, size), 1, 0)
        if done < 0:
            failure = self._failure()
            if failure is not None:
                raise failure
            return b""
        return buffer.raw[:done]

    def _failure(self) -> StrobeError | None:
        """What the last call's error says of the process as a whole; None when it is about the address."""
        number = ctypes.get_errno()
        if number == errno.ESRCH:
            return StrobeError(Code.PROCESS_EXITED, f"Process {self.pid} has ended.", "Query what it did, or launch it again.", value=self.pid)
        if number == errno.EPERM:
            what = f"The memory of process {self.pid} may not be read."
            return StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Run Strobe as the process's own user; in a container, allow SYS_PTRACE.", value=self.pid)
        return None


def _vector(base: int, length: int) -> ctypes.Array[_Vector]:
    return (_Vector * 1)(_Vector(base, length))
