"""The receiving end of data streams: each batch once, in order, from the latest producer of its session. Blocking; for one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import zmq

from strobe.errors import StrobeError
from strobe.runtime.envelope import pack, unpack
from strobe.runtime.log import Logger
from strobe.runtime.sockets import EndpointLock, bind_router, close_context, open_context
from strobe.runtime.stream_frames import ACK, BATCH, GAP, HELLO, SUPERSEDED, WINDOW, Batch, Position

BIND_WAIT_S: Final = 10.0
RECEIVE_HWM: Final = 2 * WINDOW  # batches queued per producer before its pipe pushes back


@dataclass(slots=True)
class _Stream:
    """One session's: what is committed, what was handed out since, and who sends."""

    committed: Position
    epoch: int  # of the latest producer
    received: int  # its last seq handed out
    peer: bytes
    outstanding: tuple[int, int]  # (epoch, seq) of the last batch handed out
    heard: int = 0  # last seq its producer's HELLO named
    owed_hello: bool = False  # a new producer waits until its predecessor's batches are committed


class StreamConsumer:
    """`position_of(session)` reads what is durably committed; it is asked when a session is first heard of and for each new producer.

    Loop: `receive`, commit rows and (session, epoch, seq, resume) in one transaction, `ack`. Batches of one session arrive in order.
    """

    def __init__(self, endpoint: str, position_of: Callable[[str], Position], log: Logger) -> None:
        self._position_of = position_of
        self.log = log
        self.dropped = 0  # batches not taken: duplicates, after a gap, of a superseded producer
        self._streams: dict[str, _Stream] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] = open_context(zmq.Context)
        self._socket = self._context.socket(zmq.ROUTER)
        self._lock = self._bind(endpoint)
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._wake_fd, zmq.POLLIN)

    def _bind(self, endpoint: str) -> EndpointLock:
        """Waits up to 10 s for a dying predecessor. Raises StrobeError after that."""
        until = time.monotonic() + BIND_WAIT_S
        while True:
            try:
                return bind_router(self._socket, self._context, endpoint, hwm=RECEIVE_HWM)
            except StrobeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def wake(self) -> None:
        """Ends a `receive` that waits. The only method for other threads."""
        os.eventfd_write(self._wake_fd, 1)

    def receive(self, timeout_ms: int, max_batches: int) -> list[Batch]:
        """Up to `max_batches` new batches; waits up to `timeout_ms` for the first message."""
        ready = dict(self._poller.poll(timeout_ms))
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        batches: list[Batch] = []
        while len(batches) < max_batches:
            try:
                frames = self._socket.recv_multipart(flags=zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            batch = self._message(frames)
            if batch is not None:
                batches.append(batch)
        return batches

    def ack(self, session: str, epoch: int, seq: int, resume: bytes | None = None) -> None:
        """Everything of the session up to (epoch, seq) is committed, durably, with `resume`."""
        stream = self._streams[session]
        stream.committed = Position(epoch, seq, resume)
        if stream.owed_hello and stream.outstanding <= (epoch, seq):
            stream.owed_hello = False
            self._answer_hello(session, stream)
        elif epoch == stream.epoch:
            self._say(stream.peer, ACK, {"epoch": epoch, "seq": seq})

    def forget(self, session: str) -> None:
        """The session is closed; if it is heard of again, `position_of` is asked again."""
        self._streams.pop(session, None)

    def close(self) -> None:
        self._socket.close(linger=0)
        close_context(self._context)
        os.close(self._wake_fd)
        self._lock.release()

    def _message(self, frames: list[zmq.Frame]) -> Batch | None:
        peer = frames[0].bytes
        try:
            kind, header = frames[1].bytes, unpack(frames[2].bytes)
            session, epoch, seq = str(header["session"]), int(header["epoch"]), int(header["seq"])
            batch_kind = str(header["kind"]) if kind == BATCH else ""
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self.log.error("unreadable stream message dropped", error=repr(error))
            return None
        stream = self._stream(session, peer)
        if epoch < stream.epoch:
            self.dropped += kind == BATCH
            self._say(peer, SUPERSEDED, {"epoch": stream.epoch})
        elif kind == HELLO:
            stream.heard = seq
            self._hello(session, stream, epoch, peer)
        elif kind == BATCH and self._is_next(stream, header, epoch, seq, peer):
            stream.epoch, stream.received, stream.peer, stream.outstanding = epoch, seq, peer, (epoch, seq)
            return Batch(session, epoch, seq, batch_kind, header, [memoryview(frame.buffer) for frame in frames[3:]], peer)
        return None

    def _stream(self, session: str, peer: bytes) -> _Stream:
        stream = self._streams.get(session)
        if stream is None:
            at = self._position_of(session)
            stream = self._streams[session] = _Stream(at, at.epoch, at.seq, peer, (at.epoch, at.seq))
        return stream

    def _is_next(self, stream: _Stream, header: dict[str, Any], epoch: int, seq: int, peer: bytes) -> bool:
        if epoch == stream.epoch:
            taken = seq == stream.received + 1 and (seq > 1 or self._continues(stream, header))
        else:
            taken = seq == 1 and self._continues(stream, header)
        if not taken:
            self.dropped += 1
            gap = epoch != stream.epoch or seq > stream.received
            self._say(peer, GAP if gap else ACK, {"epoch": epoch, "seq": stream.committed.seq if epoch == stream.committed.epoch else 0})
        return taken

    @staticmethod
    def _continues(stream: _Stream, header: dict[str, Any]) -> bool:
        """A new producer's first batch continues from what is committed, and nothing else is on its way there."""
        at = (stream.committed.epoch, stream.committed.seq)
        return header.get("base") == list(at) and stream.outstanding == at

    def _hello(self, session: str, stream: _Stream, epoch: int, peer: bytes) -> None:
        stream.peer = peer
        if epoch > stream.epoch:  # from here on its predecessor is not listened to
            stream.epoch, stream.received = epoch, 0
        if stream.received == 0 and stream.outstanding > (stream.committed.epoch, stream.committed.seq):
            stream.owed_hello = True
        else:
            self._answer_hello(session, stream)

    def _answer_hello(self, session: str, stream: _Stream) -> None:
        if stream.committed.epoch != stream.epoch:
            stream.committed = self._position_of(session)
        at = stream.committed
        body = {"epoch": at.epoch, "seq": at.seq, "resume": at.resume, "received": stream.received, "heard": stream.heard}
        self._say(stream.peer, HELLO, body)

    def _say(self, peer: bytes, kind: bytes, body: dict[str, Any]) -> None:
        """An answer that cannot be delivered is not missed: the producer says HELLO again."""
        try:
            self._socket.send_multipart([peer, kind, pack(body)], flags=zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
