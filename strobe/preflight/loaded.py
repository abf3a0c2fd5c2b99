"""Whether a running process is past its dynamic linker: attaching to one that is still being loaded can end it."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

PT_DYNAMIC: Final = 2
PT_PHDR: Final = 6
DT_DEBUG: Final = 21
AT_PHDR: Final = 3
AT_PHNUM: Final = 5
RT_CONSISTENT: Final = 0
_DYNAMIC_MAX: Final = 512
_DEBUG: Final = struct.Struct("<iiQQi")  # <link.h>, struct r_debug: version, (padding), map, brk, state
_PAUSE_S: Final = 0.002


def wait_loaded(pid: int, within_s: float) -> None:
    """Until the libraries it was linked with are there. Errors: TIMEOUT; PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    deadline = time.monotonic() + within_s
    while not is_loaded(pid):
        if time.monotonic() > deadline:
            what = f"Process {pid} has not been loaded by its dynamic linker within {within_s:g} s."
            raise StrobeError(Code.TIMEOUT, what, "Continue it if it is stopped, then attach again.", value=pid)
        time.sleep(_PAUSE_S)


def is_loaded(pid: int) -> bool:
    """By the dynamic linker's account of itself for debuggers (r_debug), which it makes before it loads, and calls consistent when it is done. A program
    without that account is judged by its C library alone."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")
        auxiliary = Path(f"/proc/{pid}/auxv").read_bytes()
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Find the pid of the one that runs now.", value=pid) from None
    except PermissionError:
        raise StrobeError(Code.FRIDA_ATTACH_FAILED, f"The memory of process {pid} may not be read.", "Run Strobe as its user.", value=pid) from None
    try:
        if not any("/libc.so." in line or "/libc-" in line for line in maps.splitlines()):
            return False
        entries = dict(struct.iter_unpack("<QQ", auxiliary[: len(auxiliary) & -16]))
        place = _debug_place(memory, entries.get(AT_PHDR, 0), entries.get(AT_PHNUM, 0))
        if place is None:
            return True
        address = struct.unpack("<Q", os.pread(memory, 8, place))[0]
        if not address:
            return False
        version, _, chain, _, state = _DEBUG.unpack(os.pread(memory, _DEBUG.size, address))
        return bool(version >= 1 and chain and state == RT_CONSISTENT)
    except (OSError, struct.error):  # its memory is being made just now
        return False
    finally:
        os.close(memory)


def _debug_place(memory: int, headers: int, count: int) -> int | None:
    """Where DT_DEBUG's value lies; None: the program has none."""
    rows = [struct.unpack_from("<IIQQQQQQ", os.pread(memory, 56, headers + 56 * n)) for n in range(min(count, 64))]
    own = next((row[3] for row in rows if row[0] == PT_PHDR), None)
    dynamic = next((row[3] for row in rows if row[0] == PT_DYNAMIC), None)
    if own is None or dynamic is None:
        return None
    at = headers - own + dynamic
    for n in range(_DYNAMIC_MAX):
        tag = struct.unpack("<Q", os.pread(memory, 8, at + 16 * n))[0]
        if tag == DT_DEBUG:
            return int(at + 16 * n + 8)
        if not tag:
            break
    return None
