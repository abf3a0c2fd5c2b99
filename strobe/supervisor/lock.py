"""One node per home: whoever holds the flock on run/lock is it. The pid in the file is information, never proof."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from strobe.disk_trouble import named

PROBE_S: Final = 0.3  # a client that asks whether a node runs holds the lock for microseconds


class NodeLock:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        with named(self.path):
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """False: another node has it."""
        until = time.monotonic() + PROBE_S
        while not self._try():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        return True

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def holder(self) -> int | None:
        """pid of the holder: the one written there, if that process has this file open. None while it has not written its own yet."""
        text = os.pread(self._fd, 32, 0).strip()
        if not text.isdigit():
            return None
        mine = os.fstat(self._fd)
        try:
            files = [entry.stat() for entry in Path(f"/proc/{int(text)}/fd").iterdir() if entry.exists()]
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            return None
        return int(text) if any((file.st_dev, file.st_ino) == (mine.st_dev, mine.st_ino) for file in files) else None

    def is_held(self) -> bool:
        """By another process. Takes nothing for longer than this call."""
        if self._try():
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            return False
        return True

    def is_lost(self) -> bool:
        """The file was removed (with its home, say): nobody finds this node any more, and another may start."""
        try:
            return self.path.stat().st_ino != os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return True

    def close(self) -> None:
        os.close(self._fd)
