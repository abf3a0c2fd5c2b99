"""How much processor time a process uses (proc_pid_stat(5))."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    def __init__(self, pid: int, now_ns: int) -> None:
        self._path = Path(f"/proc/{pid}/stat")
        self._last = now_ns, self._used() or 0.0

    def busy(self, now_ns: int) -> float:
        """How many processors all its threads together kept busy since the last call; 0 for a process that is gone."""
        used = self._used()
        if used is None:
            return 0.0
        before_ns, before = self._last
        self._last = now_ns, used
        return (used - before) * 1e9 / max(now_ns - before_ns, 1)

    def _used(self) -> float | None:
        """Seconds of processor time, its own and the kernel's for it."""
        try:
            fields = self._path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / _TICKS  # utime, stime
