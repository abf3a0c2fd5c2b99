"""Is there a node? If not, start one; if it will not start, say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe import paths
from strobe.disk_trouble import trouble
from strobe.errors import StrobeError
from strobe.supervisor.lock import NodeLock

if TYPE_CHECKING:
    import subprocess

LOOK_EVERY_S: Final = 0.25
START_EVERY_S: Final = 2.0
FAILURES_MAX: Final = 3
EX_TEMPFAIL: Final = 75  # another node was quicker


class NodeWatch:
    """`look` each turn while there is no gateway. `obstacle` is set while nodes fail to start, for the client to read."""

    def __init__(self) -> None:
        self.obstacle: str | None = None
        self._lock: NodeLock | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._looked_at = self._started_at = float("-inf")
        self._failures = 0

    def reached(self) -> None:
        self.obstacle, self._failures = None, 0

    def look(self, now: float) -> None:
        if now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        if self._child is not None and self._child.poll() is not None:
            self._ended(self._child.returncode)
        if self._child is None and now - self._started_at > START_EVERY_S:
            try:
                self._start(now)
            except (StrobeError, OSError) as error:  # a full or read-only disk, no more files or processes
                told = error if isinstance(error, StrobeError) else trouble(error, paths.home())
                self.obstacle = f"{told.what} {told.next_step}" if told else str(error)

    def _start(self, now: float) -> None:
        from strobe.supervisor.start import spawn_node  # imports subprocess: only where a node must be started

        if self._lock is None:
            self._lock = NodeLock(paths.run_folder())
        if self._lock.is_held():
            return
        self._started_at = now
        self._child = spawn_node()

    def _ended(self, status: int) -> None:
        self._child = None
        if status == EX_TEMPFAIL:
            return
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self.obstacle = f"it ends at once (exit status {status}); see {paths.logs_folder() / 'supervisor.stderr'}"
