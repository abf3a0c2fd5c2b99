"""Runs queries in a small pool of threads, each on a connection of its own, under a deadline. Nothing here touches the ingest thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

import duckdb

from actors.store.files import Files
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError

_T = TypeVar("_T")
THREADS: Final = 4
WAITING_MAX: Final = 64


class Queries:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="query")
        self._lock = threading.Lock()
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._waiting = 0
        self.answered = 0

    async def run(self, session_id: str, work: Callable[[SessionFile, duckdb.DuckDBPyConnection], _T], timeout_s: float) -> _T:
        """`work`'s result. Raises TIMEOUT when it took longer (it is interrupted), LIMIT_EXCEEDED when too many wait."""
        if self._waiting >= WAITING_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{WAITING_MAX} queries are waiting.", "Try again when they are answered.", value=WAITING_MAX)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, session_id, work, time.monotonic() + timeout_s)
        finally:
            self._waiting -= 1

    def _work(self, session_id: str, work: Callable[[SessionFile, duckdb.DuckDBPyConnection], _T], until: float) -> _T:
        with self._files.using(session_id) as file, self._connection(file) as connection, _deadline(connection, until) as late:
            try:
                return work(file, connection)
            except duckdb.InterruptException:
                if not late.is_set():
                    raise StrobeError(Code.LIMIT_EXCEEDED, "The query was stopped: recording needed its memory.", "Narrow it, and try again.") from None
                raise StrobeError(Code.TIMEOUT, "The query took too long.", "Narrow it by time, function or type, or aggregate less.") from None
            except duckdb.OutOfMemoryException:
                what = "The query needs more memory than it may use."
                raise StrobeError(Code.LIMIT_EXCEEDED, what, "Narrow it, or aggregate before sorting or joining.") from None
            finally:
                self.answered += 1

    @contextmanager
    def _connection(self, file: SessionFile) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = file.reader()
        with self._lock:
            self._running.add(connection)
        try:
            yield connection
        finally:
            with self._lock:
                self._running.discard(connection)
            connection.close()

    def interrupt_all(self) -> None:
        """Ingestion found no memory: readers give way."""
        with self._lock:
            for connection in self._running:
                connection.interrupt()

    def close(self) -> None:
        self.interrupt_all()
        self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _deadline(connection: duckdb.DuckDBPyConnection, until: float) -> Iterator[threading.Event]:
    """Interrupts the connection at `until`; the event says that it did."""
    late = threading.Event()

    def interrupt() -> None:
        late.set()
        connection.interrupt()

    timer = threading.Timer(max(0.0, until - time.monotonic()), interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
