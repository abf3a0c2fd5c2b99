"""The shim's DEALER to the gateway, and the wait for it and stdin together."""

from __future__ import annotations

import math
import select
from typing import Final

import zmq

from strobe.protocol.shim import FRAME_BYTES_MAX

QUEUED_MAX: Final = 1000
_DISCONNECTED: Final = int(zmq.Event.DISCONNECTED).to_bytes(2, "little")  # zmq_socket_monitor(3): first two bytes of an event


class GatewayLink:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._stdout = select.poll()
        self._stdout.register(1, 0)
        self._connect()

    def _connect(self) -> None:
        self._socket = self._context.socket(zmq.DEALER)
        for option, value in (
            (zmq.LINGER, 0), (zmq.SNDHWM, QUEUED_MAX), (zmq.RCVHWM, QUEUED_MAX), (zmq.MAXMSGSIZE, 2 * FRAME_BYTES_MAX),
            (zmq.RECONNECT_IVL, 10), (zmq.RECONNECT_IVL_MAX, 100),
        ):  # fmt: skip
            self._socket.setsockopt(option, value)
        self._monitor = self._socket.get_monitor_socket(zmq.Event.DISCONNECTED)
        self._socket.connect(self._endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        self._poller.register(1, zmq.POLLERR)
        self._reads_stdin = False

    def reconnect(self) -> None:
        """A new connection: nothing queued for a dead gateway reaches its successor."""
        self._close_socket(linger_ms=0)
        self._connect()

    def send(self, kind: bytes, body: bytes) -> bool:
        """False: 1000 messages wait for the gateway already."""
        try:
            self._socket.send_multipart([kind, body], flags=zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def wait(self, timeout_s: float, *, read_stdin: bool) -> tuple[bool, list[tuple[bytes, bytes]], bool]:
        """(stdin can be read, messages that came, the connection was lost)."""
        if read_stdin != self._reads_stdin:
            self._poller.register(0, zmq.POLLIN) if read_stdin else self._poller.unregister(0)
            self._reads_stdin = read_stdin
        ready = dict(self._poller.poll(max(0, math.ceil(timeout_s * 1000))))
        messages = self._take_all() if self._socket in ready else []
        return 0 in ready, messages, self._monitor in ready and self._is_lost()

    def reader_gone(self) -> bool:
        """Nobody has the other end of stdout any more. It ends `wait`, too."""
        return bool(self._stdout.poll(0))

    def _take_all(self) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        while len(found) < QUEUED_MAX:
            try:
                kind, body = self._socket.recv_multipart(flags=zmq.NOBLOCK)
            except zmq.Again:
                break
            found.append((kind, body))
        return found

    def _is_lost(self) -> bool:
        lost = False
        while True:
            try:
                lost |= self._monitor.recv_multipart(flags=zmq.NOBLOCK)[0][:2] == _DISCONNECTED
            except zmq.Again:
                return lost

    def close(self) -> None:
        """Sends what is queued for at most 200 ms."""
        self._close_socket(linger_ms=200)
        self._context.term()

    def _close_socket(self, *, linger_ms: int) -> None:
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=linger_ms)
