"""ZAP (ZeroMQ RFC 27): only processes of our own user are let in.

On ipc the NULL mechanism's address is `localhost:uid:gid:pid` from SO_PEERCRED, so no secret is needed. Sockets set
ZAP_ENFORCE_DOMAIN as well: without this gatekeeper they let nobody in.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final

import zmq

ZAP_DOMAIN: Final = b"strobe"
_ENDPOINT: Final = "inproc://zeromq.zap.01"  # fixed by the RFC
_guarded: set[int] = set()  # addresses of contexts that have their gatekeeper
_lock = threading.Lock()


def check_peers(context: zmq.Context[Any]) -> None:
    """Starts the context's gatekeeper, once. It ends with the context."""
    address = context.underlying
    with _lock:
        if address in _guarded:
            return
        _guarded.add(address)
        plain: zmq.Context[zmq.Socket[bytes]] = zmq.Context.shadow(address)
        socket = plain.socket(zmq.REP)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(_ENDPOINT)
        threading.Thread(target=_serve, args=(socket, address), name="zap", daemon=True).start()


def _serve(socket: zmq.Socket[bytes], context_address: int) -> None:
    while True:
        try:
            version, request, _, address, *_ = socket.recv_multipart()
            status = [b"200", b"OK"] if uid_of(address) == os.getuid() else [b"400", b"other user"]
            socket.send_multipart([version, request, *status, b"", b""])
        except zmq.ContextTerminated:
            with _lock:
                _guarded.discard(context_address)  # before close: a new context may get this address as soon as term returns
            socket.close()
            return


def uid_of(address: bytes) -> int | None:
    """`localhost:uid:gid:pid` → uid; None for what is no ipc address."""
    parts = address.split(b":")
    return int(parts[1]) if len(parts) == 4 and parts[1].isdigit() else None


def pid_of(address: str | bytes) -> int | None:
    text = address.decode() if isinstance(address, bytes) else address
    parts = text.split(":")
    return int(parts[3]) if len(parts) == 4 and parts[3].isdigit() else None
