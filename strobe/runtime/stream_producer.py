"""The sending end of a data stream: keeps what is not acknowledged, sends again what was lost. Blocking; for one thread."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import zmq

from strobe.runtime.envelope import pack, unpack
from strobe.runtime.sockets import close_context, connect_dealer, open_context
from strobe.runtime.stream_frames import ACK, BATCH, GAP, HELLO, SUPERSEDED, WINDOW, Buffer, Position, SupersededError

SILENCE_S: Final = 0.25  # without progress for so long: HELLO, and its answer says what to send again
DISCONNECTED_S: Final = 1.0


class StreamProducer:
    """At most 64 batches are unacknowledged. A frame's memory must not change until its batch's `on_ack`.

    Use: `hello()` until True, look at `position` (what the consumer has of this session: start after it), then `send` and `poll`.
    """

    def __init__(self, endpoint: str, session_id: str, *, on_ack: Callable[[int], None] | None = None) -> None:
        self.session_id = session_id
        self.epoch = time.time_ns()
        self.position = Position()  # committed for this session, as of the first HELLO's answer
        self.acked = 0
        self.resent = 0  # batches sent more than once
        self._on_ack = on_ack or (lambda _seq: None)
        self._unacked: OrderedDict[int, list[Buffer]] = OrderedDict()
        self._next = 1
        self._greeted = False
        self._said_hello_at = self._progress_at = self._heard_at = time.monotonic()
        self._context: zmq.Context[zmq.Socket[bytes]] = open_context(zmq.Context)
        self._socket = self._context.socket(zmq.DEALER)
        connect_dealer(self._socket, endpoint, "", hwm=4 * WINDOW)

    @property
    def window_free(self) -> int:
        return WINDOW - len(self._unacked)

    @property
    def unacked(self) -> int:
        return len(self._unacked)

    @property
    def resume(self) -> bytes | None:
        return self.position.resume

    @property
    def connected(self) -> bool:
        """The consumer answered, and not longer than a second ago whenever it had to."""
        return self._greeted and (not self._unacked or time.monotonic() - self._heard_at < DISCONNECTED_S)

    def hello(self, timeout_ms: int) -> bool:
        """True once the consumer has told this session's position. Before that nothing can be sent."""
        until = time.monotonic() + timeout_ms / 1000
        if not self._greeted:
            self._say_hello()
        while not self._greeted and (left_s := until - time.monotonic()) > 0:
            self.poll(int(min(left_s, SILENCE_S) * 1000))
        return self._greeted

    def send(self, kind: str, header: dict[str, Any], frames: Sequence[Buffer]) -> int | None:
        """The batch's seq; None when the window is full (or no HELLO was answered yet): poll, then try again. Never blocks."""
        if not self._greeted or self.window_free <= 0:
            return None
        seq = self._next
        whole = {**header, "session": self.session_id, "epoch": self.epoch, "seq": seq, "kind": kind}
        if seq == 1:
            whole["base"] = [self.position.epoch, self.position.seq]
        if not self._unacked:
            self._progress_at = self._heard_at = time.monotonic()
        self._next += 1
        self._unacked[seq] = [BATCH, pack(whole), *frames]
        self._put(self._unacked[seq])
        return seq

    def poll(self, timeout_ms: int) -> int:
        """Takes answers for up to `timeout_ms`, returning at the first; says HELLO when there was no progress. Answers the last acked seq.

        Raises SupersededError.
        """
        if self._socket.poll(min(timeout_ms, self._until_hello_ms())):
            while (frames := self._take()) is not None:
                self._heard(frames)
        elif self._until_hello_ms() == 0:
            self._say_hello()
        return self.acked

    def flush(self, timeout_ms: int) -> bool:
        """True when everything sent is acknowledged."""
        until = time.monotonic() + timeout_ms / 1000
        while self._unacked and (left_s := until - time.monotonic()) > 0:
            self.poll(int(left_s * 1000) + 1)
        return not self._unacked

    def close(self) -> None:
        """Drops what is not acknowledged: the next producer of this session sends it again from its source."""
        self._socket.close(linger=0)
        close_context(self._context)
        self._unacked.clear()

    def _until_hello_ms(self) -> int:
        if self._greeted and not self._unacked:
            return 1 << 30
        last = max(self._progress_at, self._said_hello_at)
        return max(0, int((last + SILENCE_S - time.monotonic()) * 1000))

    def _say_hello(self) -> None:
        self._said_hello_at = time.monotonic()
        self._put([HELLO, pack({"session": self.session_id, "epoch": self.epoch, "seq": self._next - 1})])

    def _put(self, frames: Sequence[Buffer]) -> bool:
        """False: the queue is full. What it should have held is still in the window, and the next HELLO finds it missing."""
        try:
            self._socket.send_multipart(frames, flags=zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return False
        return True

    def _take(self) -> list[bytes] | None:
        try:
            return self._socket.recv_multipart(flags=zmq.NOBLOCK)
        except zmq.Again:
            return None

    def _heard(self, frames: list[bytes]) -> None:
        self._heard_at = time.monotonic()
        kind, body = frames[0], unpack(frames[1])
        if kind == SUPERSEDED and not self._greeted:  # the clock went back since our predecessor began
            self.epoch = max(self.epoch, body["epoch"] + 1)
            self._say_hello()
        elif kind == SUPERSEDED:
            raise SupersededError(f"session {self.session_id}: epoch {body['epoch']} took over from {self.epoch}")
        elif kind == HELLO:
            self._answered(body)
        elif kind == ACK and body["epoch"] == self.epoch:
            self._acked(body["seq"])
        elif kind == GAP and body["epoch"] == self.epoch and time.monotonic() - self._said_hello_at > SILENCE_S / 5:
            self._say_hello()

    def _answered(self, body: dict[str, Any]) -> None:
        if not self._greeted:
            self.position = Position(body["epoch"], body["seq"], body["resume"])
            self._greeted = True
            return
        if body["epoch"] == self.epoch:
            self._acked(body["seq"])
        elif (body["epoch"], body["seq"]) != (self.position.epoch, self.position.seq):
            raise SupersededError(f"session {self.session_id} is at {body['epoch']}/{body['seq']}, not where epoch {self.epoch} began")
        if body["received"] < body["heard"]:
            self._send_again(body["received"] + 1)

    def _send_again(self, first: int) -> None:
        self._progress_at = time.monotonic()
        for seq, frames in self._unacked.items():
            if seq >= first:
                if not self._put(frames):
                    return
                self.resent += 1

    def _acked(self, seq: int) -> None:
        if seq <= self.acked:
            return
        self._progress_at = time.monotonic()
        for done in range(self.acked + 1, seq + 1):
            self._unacked.pop(done, None)
        self.acked = seq
        self._on_ack(seq)
