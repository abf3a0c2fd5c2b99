"""A target's memory through /proc/PID/mem: it reads anywhere, and writes past page protection (code pages are copied, their file stays as it is)."""

from __future__ import annotations

import errno
import os
from types import TracebackType

from actors.session.ptrace.threads import is_dead, thread_ids
from strobe import ptrace as calls
from strobe.errors import Code, StrobeError


class Memory:
    """An open /proc/PID/mem. Writing needs ptrace rights over the process."""

    def __init__(self, pid: int) -> None:
        alive = next((tid for tid in thread_ids(pid) if not is_dead(pid, tid)), pid)  # a main thread that has ended shows no memory
        try:
            self._file = os.open(f"/proc/{pid}/task/{alive}/mem", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again.", value=pid) from None
        except PermissionError:
            what = f"The memory of process {pid} may not be written."
            raise StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Run Strobe as the process's own user; in a container, allow SYS_PTRACE.", value=pid) from None
        self.maps = f"/proc/{pid}/task/{alive}/maps"

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytearray:
        """All `size` bytes. Raises OSError EIO where a page is not mapped."""
        data = self.read_some(address, size)
        if len(data) != size:
            raise OSError(errno.EIO, f"only {len(data)} of {size} bytes at {address:#x} are mapped")
        return data

    def read_some(self, address: int, size: int) -> bytearray:
        """As many of `size` bytes as are mapped: none at all where the first page is not."""
        try:
            return calls.pread(self._file, size, address)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EOVERFLOW):
                return bytearray()
            raise

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Raises OSError EIO where nothing is mapped, or the kernel lets nobody write past page protection."""
        while data:
            count = calls.pwrite(self._file, data, address)
            if count == 0:
                raise OSError(errno.EIO, f"nothing can be written at {address:#x}")
            data, address = data[count:], address + count
