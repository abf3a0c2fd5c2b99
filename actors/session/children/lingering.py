"""Children that live on when the target has ended and nobody holds its output any more: daemons. What they record is theirs to be kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

START_TICKS: Final = 19  # of the fields behind the name in /proc/PID/stat (proc(5))


def start_ticks(pid: int) -> int | None:
    """None: there is no such process, or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[START_TICKS])


def holders(pool: Path, since_ticks: int) -> dict[int, int]:
    """Processes that began at `since_ticks` or later and have `pool` mapped, but this one: {pid: start ticks}."""
    found, ours = {}, str(os.getpid())
    for name in os.listdir("/proc"):  # noqa: PTH208 (a Path object for each would take longer than the rest)
        ticks = start_ticks(int(name)) if name.isdigit() and name != ours else None
        if ticks is not None and ticks >= since_ticks and _maps(int(name), os.fsencode(pool)):
            found[int(name)] = ticks
    return found


def still(known: dict[int, int]) -> bool:
    """Whether one of them lives."""
    return any(start_ticks(pid) == ticks for pid, ticks in known.items())


def _maps(pid: int, path: bytes) -> bool:
    try:
        return path in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:  # gone, or another user's
        return False
