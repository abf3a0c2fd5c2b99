"""The threads of a target, as /proc shows them (proc(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

DEAD: Final = frozenset("ZXx")


def thread_ids(pid: int) -> list[int]:
    """Empty once the process is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 (a Path object per thread would double the time of a stop)
    except FileNotFoundError:
        return []


def thread_state(pid: int, tid: int) -> str:
    """R, S, D, T, t, Z …; X when it is gone."""
    try:
        return Path(f"/proc/{pid}/task/{tid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def is_dead(pid: int, tid: int) -> bool:
    return thread_state(pid, tid) in DEAD


def process_dead(pid: int) -> bool:
    return all(is_dead(pid, tid) for tid in thread_ids(pid))


def status_field(pid: int, tid: int, key: str) -> str:
    """A line of /proc/PID/task/TID/status; empty when the thread is gone."""
    try:
        found = re.search(rf"^{key}:\s*(.*)$", Path(f"/proc/{pid}/task/{tid}/status").read_text(errors="replace"), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return found[1] if found else ""


def tracer_of(pid: int, tid: int) -> int:
    return int(status_field(pid, tid, "TracerPid") or 0)
