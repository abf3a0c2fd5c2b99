"""Whether the thread that owns something in shared memory still lives."""

from __future__ import annotations

from pathlib import Path


def thread_alive(pid: int, tid: int) -> bool:
    """False for a thread that ended, and for one that is only a zombie: neither will ever write again."""
    try:
        stat = Path(f"/proc/{pid}/task/{tid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
