"""Sockets with the options every one of ours has: bounded queues, no linger, private file, peer's uid checked, nobody's path stolen."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import zmq

from strobe.errors import Code, StrobeError
from strobe.runtime.peer_check import ZAP_DOMAIN, check_peers

HWM_CONTROL: Final = 1000
MESSAGE_BYTES_MAX: Final = 256 << 20


_open: Final[set[zmq.Context[Any]]] = set()
AnyContext = TypeVar("AnyContext", bound=zmq.Context[Any])


def open_context(kind: Callable[[], AnyContext]) -> AnyContext:
    """Kept until `close_context`: a context that is garbage collected before its sockets waits for them forever (pyzmq's Context.__del__)."""
    context = kind()
    _open.add(context)
    return context


def close_context(context: zmq.Context[Any]) -> None:
    """After its sockets are closed."""
    context.term()
    _open.discard(context)


class EndpointLock:
    """The flock beside an ipc path. A second `bind` steals the path silently (libzmq), so only its holder may bind."""

    def __init__(self, endpoint: str) -> None:
        self.path = Path(endpoint.removeprefix("ipc://") + ".lock")
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            text = f"Another process serves {endpoint}."
            raise StrobeError(Code.ACTOR_UNAVAILABLE, text, "Wait for it to end, or see `strobe-ctl actors`.", value=endpoint) from None

    def release(self) -> None:
        """After the socket is closed: its file, which libzmq leaves behind, goes first."""
        Path(str(self.path).removesuffix(".lock")).unlink(missing_ok=True)
        os.close(self._fd)


def harden(socket: zmq.Socket[Any], *, hwm: int) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, hwm)
    socket.setsockopt(zmq.RCVHWM, hwm)
    socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)


def bind_router(socket: zmq.Socket[Any], context: zmq.Context[Any], endpoint: str, *, hwm: int = HWM_CONTROL) -> EndpointLock:
    """Binds a ROUTER under its flock: 0600 file, MANDATORY, HANDOVER, ZAP uid check."""
    lock = EndpointLock(endpoint)
    check_peers(context)
    harden(socket, hwm=hwm)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
    socket.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    before = os.umask(0o177)
    try:
        socket.bind(endpoint)
    finally:
        os.umask(before)
    return lock


def connect_dealer(socket: zmq.Socket[Any], endpoint: str, identity: str, *, hwm: int = HWM_CONTROL) -> None:
    """`identity` empty: the ROUTER names this connection itself."""
    harden(socket, hwm=hwm)
    if identity:
        socket.setsockopt(zmq.IDENTITY, identity.encode())
    socket.setsockopt(zmq.RECONNECT_IVL, 20)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
    socket.connect(endpoint)
