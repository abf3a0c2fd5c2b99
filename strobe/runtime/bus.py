"""An actor's (or client's) end of the control bus: one DEALER to the supervisor's ROUTER, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import zmq
import zmq.asyncio

from strobe.errors import Code, StrobeError
from strobe.runtime.envelope import Envelope, EnvelopeError, parse
from strobe.runtime.log import Logger
from strobe.runtime.sockets import close_context, connect_dealer, open_context

OUTBOUND_MAX: Final = 4096


class Bus:
    """`send` queues, `run` moves both ways until `close`. `receive` is called on the loop for every message."""

    def __init__(self, endpoint: str, identity: str, receive: Callable[[Envelope], None], log: Logger) -> None:
        self._endpoint = endpoint
        self._identity = identity
        self._receive = receive
        self.log = log
        self._context: zmq.asyncio.Context = open_context(zmq.asyncio.Context)
        self._outbound: asyncio.Queue[Envelope] = asyncio.Queue(OUTBOUND_MAX)
        self._tasks: list[asyncio.Task[Any]] = []
        self._connect()

    def _connect(self) -> None:
        self._socket: zmq.asyncio.Socket = self._context.socket(zmq.DEALER)
        connect_dealer(self._socket, self._endpoint, self._identity)

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send_all()), loop.create_task(self._receive_all())]

    def send(self, envelope: Envelope) -> None:
        try:
            self._outbound.put_nowait(envelope)
        except asyncio.QueueFull:
            text = f"{OUTBOUND_MAX} messages wait for the supervisor."
            raise StrobeError(Code.LIMIT_EXCEEDED, text, "See `strobe-ctl status`: the supervisor does not answer.") from None

    async def reconnect(self) -> None:
        """A fresh connection: what was queued for a dead supervisor is dropped, its successor gets none of it."""
        await self._stop_tasks()
        self._socket.close(linger=0)
        while not self._outbound.empty():
            self._outbound.get_nowait()
        self._connect()
        self.start()

    async def _send_all(self) -> None:
        while True:
            envelope = await self._outbound.get()
            await self._socket.send_multipart(envelope.frames())
            self._outbound.task_done()

    async def _receive_all(self) -> None:
        while True:
            frames = await self._socket.recv_multipart()
            try:
                envelope = parse(frames)
            except EnvelopeError as error:
                self.log.error("unreadable message dropped", error=str(error))
                continue
            self._receive(envelope)

    async def close(self, *, flush_s: float = 0.5) -> None:
        """Sends what is queued, for at most `flush_s`, then closes."""
        try:
            async with asyncio.timeout(flush_s):
                await self._outbound.join()
        except TimeoutError:
            self.log.warning("messages left unsent", count=self._outbound.qsize())
        await self._stop_tasks()
        self._socket.close(linger=int(flush_s * 1000))
        close_context(self._context)

    async def _stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
