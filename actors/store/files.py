"""The session files that are open: each at most once, opened when first needed, closed when long unused."""

from __future__ import annotations

import errno
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from actors.store.catalog import Catalog
from actors.store.session_file import SessionFile
from strobe.disk_trouble import named, trouble
from strobe.errors import Code, StrobeError
from strobe.model.session import SessionRecord
from strobe.paths import safe_name

IDLE_S: Final = 120.0
FILES_SPARE: Final = 40  # for sockets, logs, and what a file that is opened needs beside


class Files:
    """Users hold a file through `using`, or for long through `hold` and `let_go`; a file in use is never closed by idleness."""

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self._folder = folder
        self._catalog = catalog
        self._lock = threading.Lock()
        self._open: dict[str, SessionFile] = {}
        self._users: dict[str, int] = {}
        self._used_at: dict[str, float] = {}

    def path(self, session_id: str) -> Path:
        return self._folder / f"{safe_name(session_id, what='session id')}.duckdb"

    def hold(self, session_id: str) -> SessionFile:
        """Raises SESSION_NOT_FOUND, or VALIDATION_ERROR when the file is damaged."""
        record = self._catalog.get(session_id)
        with self._lock:
            file = self._open.get(session_id)
            if file is None:
                file = self._open[session_id] = self._opened(session_id, record)
            self._users[session_id] = self._users.get(session_id, 0) + 1
            return file

    @contextmanager
    def using_open(self, session_id: str) -> Iterator[SessionFile | None]:
        """The file if it is open already; None otherwise, also where there is no such session."""
        with self._lock:
            file = self._open.get(session_id)
            if file is not None:
                self._users[session_id] = self._users.get(session_id, 0) + 1
        try:
            yield file
        finally:
            if file is not None:
                self.let_go(session_id)

    def _opened(self, session_id: str, record: SessionRecord) -> SessionFile:
        with named(self._folder):
            self._spare_files()
        try:
            return SessionFile(self.path(session_id), record)
        except duckdb.Error as error:
            if (told := trouble(error, self._folder)) is not None:
                raise told from error
            what = f"The data of session {session_id} cannot be read: {str(error).splitlines()[0][:200]}"
            raise StrobeError(Code.VALIDATION_ERROR, what, "Delete the session; the others are not affected.", value=session_id) from error

    def _spare_files(self) -> None:
        """Closes files that nobody uses when this process may soon open no more: its sockets need some, and die without.

        Raises LIMIT_EXCEEDED when that is not enough.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_SPARE
        if _files_open() <= limit:
            return
        for name in [name for name in self._open if not self._users.get(name)]:
            self._forget(name)
        if _files_open() > limit and (told := trouble(OSError(errno.EMFILE, ""), self._folder)) is not None:
            raise told

    def let_go(self, session_id: str) -> None:
        with self._lock:
            self._users[session_id] -= 1
            self._used_at[session_id] = time.monotonic()

    @contextmanager
    def using(self, session_id: str) -> Iterator[SessionFile]:
        file = self.hold(session_id)
        try:
            yield file
        finally:
            self.let_go(session_id)

    def touch(self, session_id: str) -> None:
        """Opens the file, and makes it where there is none."""
        with self.using(session_id):
            pass

    def close_idle(self, idle_s: float = IDLE_S) -> None:
        now = time.monotonic()
        with self._lock:
            idle = [name for name in self._open if not self._users.get(name) and now - self._used_at.get(name, now) >= idle_s]
            for name in idle:
                self._forget(name)

    def delete(self, session_id: str) -> None:
        """Closes and unlinks. A query that still runs on it fails."""
        with self._lock:
            if session_id in self._open:
                self._forget(session_id)
            path = self.path(session_id)
            for file in (path, path.with_name(path.name + ".wal")):
                file.unlink(missing_ok=True)

    def _forget(self, session_id: str) -> None:
        self._open.pop(session_id).close()
        self._used_at.pop(session_id, None)

    def opened(self) -> list[SessionFile]:
        with self._lock:
            return list(self._open.values())

    def close(self) -> None:
        with self._lock:
            for name in list(self._open):
                self._forget(name)

    def on_disk(self) -> dict[str, int]:
        """Bytes by session id, logs included."""
        sizes: dict[str, int] = {}
        for file in self._folder.glob("*.duckdb*"):
            name = file.name.partition(".duckdb")[0]
            try:
                sizes[name] = sizes.get(name, 0) + file.stat().st_size
            except FileNotFoundError:
                continue
        return sizes


def _files_open() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
