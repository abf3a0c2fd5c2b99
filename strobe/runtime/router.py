"""The bus's middle: the supervisor's ROUTER on asyncio. Moves envelopes by routing identity; who is who, the switchboard knows."""

from __future__ import annotations

import enum

import zmq
import zmq.asyncio

from strobe.runtime.envelope import Envelope, EnvelopeError, parse
from strobe.runtime.log import Logger
from strobe.runtime.peer_check import pid_of
from strobe.runtime.sockets import EndpointLock, bind_router, close_context, open_context


class Sent(enum.Enum):
    YES = "yes"
    GONE = "gone"  # no such peer is connected
    FULL = "full"  # its queue of HWM_CONTROL messages is full: it does not read


class Router:
    def __init__(self, endpoint: str, log: Logger) -> None:
        self._endpoint = endpoint
        self.log = log
        self._context: zmq.asyncio.Context = open_context(zmq.asyncio.Context)
        self._socket: zmq.asyncio.Socket = self._context.socket(zmq.ROUTER)
        self._lock: EndpointLock | None = None

    def bind(self) -> None:
        self._lock = bind_router(self._socket, self._context, self._endpoint)

    async def receive(self) -> tuple[str, int | None, Envelope]:
        """(identity, pid by SO_PEERCRED, envelope). Unreadable messages are logged and dropped."""
        while True:
            frames = await self._socket.recv_multipart(copy=False)
            try:
                identity = frames[0].bytes.decode()
                return identity, pid_of(str(frames[0].get("Peer-Address"))), parse([frame.bytes for frame in frames[1:]])
            except (EnvelopeError, UnicodeDecodeError) as error:
                self.log.error("unreadable message dropped", error=str(error), peer=repr(frames[0].bytes))

    async def send(self, identity: str, envelope: Envelope) -> Sent:
        """Never waits."""
        try:
            await self._socket.send_multipart([identity.encode(), *envelope.frames()], flags=zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno == zmq.EHOSTUNREACH:
                return Sent.GONE
            if error.errno == zmq.EAGAIN:
                return Sent.FULL
            raise
        return Sent.YES

    def close(self) -> None:
        """Sends what is queued for at most half a second."""
        self._socket.close(linger=500)
        close_context(self._context)
        if self._lock is not None:
            self._lock.release()
