"""The child process that parses: `python -m actors.indexer.worker FD`. A file that crashes or hangs it costs one ask, never the actor.

Frames on the socket, both ways: length (u32, little-endian), then a pickle. In: an ask. Out: ("note", path) any number of times, then
("reply", model) or ("error", wire form).
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from typing import Any, Final

from actors.indexer.work import Work
from strobe.errors import StrobeError

FRAME: Final = struct.Struct("<I")
FRAME_BYTES_MAX: Final = 256 << 20
_DATA_BYTES_MAX: Final = 6 << 30
_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int) -> None:
    """PDEATHSIG=KILL; a parent that died before this call is noticed by getppid."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(0)


def serve(link: socket.socket) -> None:
    work = Work(lambda path: send(link, ("note", path)))
    send(link, ("reply", None))  # ready: imports are done
    while True:
        ask = receive(link)
        if ask is None:
            return
        try:
            answer: tuple[str, Any] = ("reply", work.run(ask))
        except StrobeError as error:
            answer = ("error", error.to_wire())
        send(link, answer)


def send(link: socket.socket, message: Any) -> None:
    body = pickle.dumps(message, protocol=5)
    link.sendall(FRAME.pack(len(body)) + body)


def receive(link: socket.socket) -> Any | None:
    """The next message, or None at the end of the stream."""
    head = _exactly(link, FRAME.size)
    if head is None:
        return None
    (size,) = FRAME.unpack(head)
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"frame of {size} bytes")
    body = _exactly(link, size)
    return None if body is None else pickle.loads(body)


def _exactly(link: socket.socket, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = link.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main(arguments: list[str]) -> None:
    die_with_parent(int(arguments[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES_MAX, _DATA_BYTES_MAX))
    gc.freeze()  # the imports
    gc.set_threshold(100_000, 50, 50)  # symbols are many small objects that live long
    serve(socket.socket(fileno=int(arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
