"""How a process that is not our child ended: its pidfd tells, once its parent has taken it (PIDFD_GET_INFO, Linux 6.15)."""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from typing import Final

INFO_BYTES: Final = 64  # struct pidfd_info, its first version
GET_INFO: Final = 3 << 30 | INFO_BYTES << 16 | 0xFF << 8 | 11
INFO_EXIT: Final = 1 << 3
EXIT_CODE_AT: Final = 60


def open_process(pid: int) -> int | None:
    """A pidfd; None: it is gone."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def wait_status(pidfd: int) -> int | None:
    """As of wait(2). None: it lives, its parent has not taken it, or the kernel does not tell."""
    info = bytearray(INFO_BYTES)
    struct.pack_into("<Q", info, 0, INFO_EXIT)
    with suppress(OSError):
        fcntl.ioctl(pidfd, GET_INFO, info)
        if struct.unpack_from("<Q", info)[0] & INFO_EXIT:
            return int(struct.unpack_from("<i", info, EXIT_CODE_AT)[0])
    return None


def in_words(status: int) -> str:
    return f"by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"with code {os.WEXITSTATUS(status)}"
