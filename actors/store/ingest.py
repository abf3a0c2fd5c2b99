"""The ingest thread: takes batches off the data stream, decodes them per session, and acknowledges what is committed.

A plain poll loop. Commits run in a thread of their own, one at a time, so that the next one is decoded meanwhile (decoding and committing
cost about the same, and both leave the interpreter's lock most of the time). Other threads reach this one through `call`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import duckdb

from actors.store.files import Files
from actors.store.in_hand import InHand, SessionInHand
from actors.store.writer import SessionWriter
from strobe.disk_trouble import file_system, number_of, trouble
from strobe.errors import StrobeError
from strobe.model.session import SessionRecord
from strobe.runtime.log import Logger
from strobe.runtime.stream import Batch, Position, StreamConsumer

_T = TypeVar("_T")
POLL_MS: Final = 50
BATCHES_MAX: Final = 64  # taken in one go
WAITING_MAX: Final = 1000  # calls from other threads
RETRY_S: Final = 1.0
ROOM_AGAIN: Final = 16 << 20


class Listener(Protocol):
    """Told from the ingest thread."""

    def record_changed(self, record: SessionRecord) -> None: ...

    def heard_of(self, session_id: str) -> None: ...

    def starved(self) -> None:
        """A commit found no memory: whatever else uses it must stop."""


class Ingest:
    """`in_hand`: closed with the thread's end."""

    def __init__(self, endpoint: str, files: Files, in_hand: InHand, listener: Listener, log: Logger) -> None:
        self._files = files
        self._in_hand = in_hand
        self._hands: dict[str, SessionInHand] = {}
        self._listener = listener
        self._log = log
        self._writers: dict[str, SessionWriter] = {}
        self._calls: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(WAITING_MAX)
        self._stopping = threading.Event()
        self._retry_at: dict[str, float] = {}
        self._refused: set[str] = set()
        self._in_vain: dict[str, int] = {}  # tries that failed though there was room
        self.troubles: dict[str, str] = {}  # why a session's commits fail now, in words for the caller
        self._committing = ThreadPoolExecutor(1, "commit")
        self._running: dict[str, Future[None]] = {}  # a session's commit that is under way
        self.consumer = StreamConsumer(endpoint, self._position_of, log)
        self.events = 0
        self.lag_ms = 0.0

    # For other threads

    def call(self, function: Callable[[], _T]) -> Future[_T]:
        """Runs it in the ingest thread. Raises queue.Full."""
        future: Future[_T] = Future()
        self._calls.put_nowait((function, future))
        self.consumer.wake()
        return future

    def stop(self) -> None:
        """Commits what is there, and ends `run`."""
        self._stopping.set()
        self.consumer.wake()

    # The thread

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                for batch in self.consumer.receive(self._wait_ms(), BATCHES_MAX):
                    self._take(batch)
                self._run_calls()
                for session_id, writer in list(self._writers.items()):
                    self._advance(session_id, writer)
            self._run_calls()
            self.flush_all()
        finally:
            self._committing.shutdown()
            self.consumer.close()
            self._in_hand.close()

    def _wait_ms(self) -> int:
        """No longer than until the next commit that may be due. One that ends wakes the thread."""
        now_ns = time.monotonic_ns()
        waits = [wait_ns for writer in self._writers.values() if (wait_ns := writer.due_in_ns(now_ns)) is not None]
        return min([POLL_MS, *(-(-wait_ns // 1_000_000) for wait_ns in waits)])

    def _position_of(self, session_id: str) -> Position:
        writer = self._writer(session_id)
        if writer is None:
            return Position()
        at = writer.file.position
        return Position(at.epoch, at.seq, at.resume or None)

    def _writer(self, session_id: str) -> SessionWriter | None:
        """None: no such session, or its file is damaged; its batches go nowhere."""
        writer = self._writers.get(session_id)
        if writer is not None:
            return writer
        try:
            file = self._files.hold(session_id)
        except StrobeError as error:
            if session_id not in self._refused:
                self._refused.add(session_id)
                self._log.warning("batches of a session that cannot be stored", session=session_id, error=str(error))
            return None
        writer = self._writers[session_id] = SessionWriter(file, self._log)
        self._hands[session_id] = SessionInHand(self._in_hand, session_id)
        self._listener.heard_of(session_id)
        return writer

    def _take(self, batch: Batch) -> None:
        writer = self._writer(batch.session)
        if writer is None:
            self.consumer.ack(batch.session, batch.epoch, batch.seq, batch.header.get("resume"))
            return
        hand, number = self._hands[batch.session], (batch.epoch, batch.seq)
        suspect = hand.is_suspect(*number)
        if suspect:
            self.flush_all()
        deadly = hand.is_deadly(*number)
        if writer.follows(*number):
            hand.refuse() if deadly else hand.take(*number)
        if not writer.accept(batch.header, batch.frames, deadly=deadly):
            self._log.warning("batch out of order", session=batch.session, epoch=batch.epoch, seq=batch.seq, at=str(writer.position))
        elif suspect:
            self.flush(batch.session)
        elif writer.due_in_ns(time.monotonic_ns()) == 0:
            self._advance(batch.session, writer)

    # Commits

    def _advance(self, session_id: str, writer: SessionWriter) -> None:
        """The session's next step, if one is due."""
        running = self._running.get(session_id)
        if running is not None and running.done():
            self._finish(session_id, writer)
        self._start(session_id, writer)
        if writer.due_in_ns(time.monotonic_ns()) == 0:
            writer.prepare()
            self._start(session_id, writer)

    def _start(self, session_id: str, writer: SessionWriter) -> bool:
        """Whether a commit is under way now."""
        if session_id in self._running:
            return True
        if not writer.prepared or time.monotonic() < self._retry_at.get(session_id, 0):
            return False
        running = self._running[session_id] = self._committing.submit(writer.store)
        running.add_done_callback(lambda _: self.consumer.wake())
        return True

    def _finish(self, session_id: str, writer: SessionWriter) -> None:
        """Waits for the commit that is under way, and acknowledges it."""
        try:
            self._running.pop(session_id).result()
        except duckdb.Error as error:
            starved = isinstance(error, duckdb.OutOfMemoryException)
            if not starved and (number_of(error) is None or self._ought_to_work(session_id)):
                raise
            self._later(session_id, error)
            if starved:
                self._listener.starved()
            return
        stored = writer.stored()
        self._retry_at.pop(session_id, None)
        self.troubles.pop(session_id, None)
        self._in_vain.pop(session_id, None)
        self.events += stored.events
        self.lag_ms = (time.monotonic_ns() - stored.since_ns) / 1e6
        at = stored.position
        self._hands[session_id].stored(at.epoch, at.seq)
        self.consumer.ack(session_id, at.epoch, at.seq, at.resume or None)
        if stored.record is not None:
            self._listener.record_changed(stored.record)
        if writer.ended and not writer.pending:
            self.release(session_id)

    def _ought_to_work(self, session_id: str) -> bool:
        """There has been room for three tries and it still fails: DuckDB does not always get over a log that could not be written (seen on
        2.0, a full tmpfs). A new process does."""
        folder = self._files.path(session_id).parent
        room = session_id in self.troubles and file_system(folder)[1] >= ROOM_AGAIN
        self._in_vain[session_id] = self._in_vain.get(session_id, 0) + 1 if room else 0
        return self._in_vain[session_id] > 3

    def _later(self, session_id: str, error: duckdb.Error) -> None:
        """Nothing was stored and nothing is acknowledged: the session's window fills up, and it waits."""
        self._retry_at[session_id] = time.monotonic() + RETRY_S
        told = trouble(error, self._files.path(session_id).parent)
        why = f"{told.what} {told.next_step}" if told else str(error)[:300]
        self.troubles[session_id] = f"What is recorded waits, and is not stored: {why}"
        self._log.error("commit failed; it will be tried again", session=session_id, error=str(told or error), wait_s=RETRY_S)

    def _run_calls(self) -> None:
        while True:
            try:
                function, future = self._calls.get_nowait()
            except queue.Empty:
                return
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                future.set_exception(error)

    # For functions run by `call`

    def flush(self, session_id: str) -> None:
        """Stores what was taken. What a commit that fails leaves is sent again: it is not acknowledged."""
        writer = self._writers.get(session_id)
        if writer is None:
            return
        if session_id in self._running:
            self._finish(session_id, writer)
        writer.prepare()
        while self._start(session_id, writer):
            self._finish(session_id, writer)

    def release(self, session_id: str) -> None:
        """Stores what is pending and lets go of the file."""
        self.flush(session_id)
        if self._writers.pop(session_id, None) is not None:
            self._files.let_go(session_id)
        self._hands.pop(session_id, None)
        self._in_hand.forget(session_id)
        self._retry_at.pop(session_id, None)
        self.troubles.pop(session_id, None)
        self._in_vain.pop(session_id, None)
        self.consumer.forget(session_id)

    def flush_all(self) -> None:
        for session_id in list(self._writers):
            self.flush(session_id)
