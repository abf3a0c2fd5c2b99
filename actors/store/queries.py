"""Runs queries in a small pool of threads, each on a connection of its own, under a deadline. Nothing here touches the ingest thread."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, TypeVar

import duckdb

from actors.store.deadlines import Deadlines
from strobe.errors import Code, StrobeError

_T = TypeVar("_T")


class Readable(Protocol):
    """What can be queried: a session's file, the catalog."""

    def reader(self) -> duckdb.DuckDBPyConnection: ...

    def give_back(self, connection: duckdb.DuckDBPyConnection) -> None: ...


_R = TypeVar("_R", bound=Readable)
WAITING_MAX: Final = 64


class Queries:
    """`nice` is added to the threads' niceness: heavy work of callers yields to ingestion and to quick questions."""

    def __init__(self, name: str, threads: int, nice: int = 0) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=_yield_to_others, initargs=(nice,))
        self._lock = threading.Lock()
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._deadlines = Deadlines(f"{name}-deadlines")
        self._waiting = 0
        self.answered = 0

    async def run(self, lease: AbstractContextManager[_R], work: Callable[[_R, duckdb.DuckDBPyConnection], _T], timeout_s: float) -> _T:
        """`work`'s result, on a connection of its own to what `lease` gives.

        Raises TIMEOUT when it took longer (it is interrupted), LIMIT_EXCEEDED when too many wait or memory is short.
        """
        if self._waiting >= WAITING_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{WAITING_MAX} queries are waiting.", "Try again when they are answered.", value=WAITING_MAX)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, lease, work, time.monotonic() + timeout_s)
        finally:
            self._waiting -= 1

    def _work(self, lease: AbstractContextManager[_R], work: Callable[[_R, duckdb.DuckDBPyConnection], _T], until: float) -> _T:
        with lease as source, self._connection(source) as connection, self._deadlines.watch(connection, until) as watched:
            try:
                return work(source, connection)
            except duckdb.InterruptException:
                if not watched.late:
                    raise StrobeError(Code.LIMIT_EXCEEDED, "The query was stopped: recording needed its memory.", "Narrow it, and try again.") from None
                raise StrobeError(Code.TIMEOUT, "The query took too long.", "Narrow it by time, function or type, or aggregate less.") from None
            except duckdb.OutOfMemoryException:
                what = "The query needs more memory than it may use."
                raise StrobeError(Code.LIMIT_EXCEEDED, what, "Narrow it, or aggregate before sorting or joining.") from None
            finally:
                self.answered += 1

    @contextmanager
    def _connection(self, source: Readable) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = source.reader()
        with self._lock:
            self._running.add(connection)
        sound = False
        try:
            yield connection
            sound = True
        finally:
            with self._lock:
                self._running.discard(connection)
            if sound:
                source.give_back(connection)
            else:
                connection.close()

    def interrupt_all(self) -> None:
        """Ingestion found no memory: readers give way."""
        with self._lock:
            for connection in self._running:
                connection.interrupt()

    def close(self) -> None:
        self.interrupt_all()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._deadlines.close()


def _yield_to_others(nice: int) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + nice)
