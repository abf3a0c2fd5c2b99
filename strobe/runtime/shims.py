"""The gateway's socket for `strobe mcp` shims (strobe/protocol/shim.py): frames [peer][kind][body], on asyncio."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import zmq
import zmq.asyncio

from strobe.errors import StrobeError
from strobe.protocol.shim import FRAME_BYTES_MAX
from strobe.runtime.peer_check import pid_of
from strobe.runtime.sockets import EndpointLock, bind_router, close_context, open_context

BIND_WAIT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ShimMessage:
    peer: bytes  # routing id of the shim's connection: answer to it with `send`
    kind: bytes
    body: bytes
    pid: int | None  # of the shim's process, by SO_PEERCRED


class ShimServer:
    """`await bind()`, then `receive()` for ever; `send` answers. No state: who a peer is, the gateway keeps."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._context: zmq.asyncio.Context = open_context(zmq.asyncio.Context)
        self._socket: zmq.asyncio.Socket = self._context.socket(zmq.ROUTER)
        self._lock: EndpointLock | None = None

    async def bind(self) -> None:
        """Waits up to 5 s for a dying predecessor to let go of the endpoint. Raises StrobeError after that."""
        until = asyncio.get_running_loop().time() + BIND_WAIT_S
        while self._lock is None:
            try:
                self._lock = bind_router(self._socket, self._context, self._endpoint)
            except StrobeError:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.05)

    async def receive(self) -> ShimMessage:
        """The next message of any shim. Oversized or misshapen ones are dropped: a shim of ours sends none."""
        while True:
            frames = await self._socket.recv_multipart(copy=False)
            if len(frames) == 3 and len(frames[2].buffer) <= FRAME_BYTES_MAX:
                peer, kind, body = (frame.bytes for frame in frames)
                return ShimMessage(peer, kind, body, pid_of(str(frames[2].get("Peer-Address"))))

    async def send(self, peer: bytes, kind: bytes, body: bytes = b"") -> bool:
        """False: that shim is gone, or does not read (1000 messages wait for it)."""
        try:
            await self._socket.send_multipart([peer, kind, body], flags=zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise
        return True

    def close(self) -> None:
        self._socket.close(linger=200)
        close_context(self._context)
        if self._lock is not None:
            self._lock.release()
