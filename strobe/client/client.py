"""`Client`: asks from outside the node, over the same bus as the actors."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any, Final, Self

import structlog

from strobe import __version__, paths
from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask
from strobe.runtime.asks import Asks
from strobe.runtime.bus import Bus
from strobe.runtime.envelope import Envelope, Header, Kind, pack_model, unpack_model
from strobe.runtime.greeting import Greeting, Hello
from strobe.supervisor.start import ensure_node, node_pid

GREETING_S: Final = 10.0
_numbers = itertools.count()


class Client:
    """An async context manager. `home` None: STROBE_HOME. `start`: starts the node where none runs."""

    def __init__(self, home: Path | None = None, *, start: bool = False) -> None:
        self._home = home or paths.home()
        self._start = start
        self.name = f"ctl:{os.getpid()}-{next(_numbers)}-{os.urandom(3).hex()}"

    async def __aenter__(self) -> Self:
        """Raises StrobeError(ACTOR_UNAVAILABLE) when no node runs, or it does not answer."""
        if self._start:
            await asyncio.to_thread(ensure_node)
        elif node_pid(self._home) is None:
            text = f"No node runs for {self._home}."
            raise StrobeError(Code.ACTOR_UNAVAILABLE, text, "`strobe node` starts it; so does any MCP client.", value=str(self._home))
        self._greeted: asyncio.Future[Greeting] = asyncio.get_running_loop().create_future()
        self._bus = Bus(paths.bus_endpoint(self._home), self.name, self._receive, structlog.get_logger())
        self._asks = Asks(self._bus.send, self.name)
        self._bus.start()
        try:
            await self._greet()
        except BaseException:
            await self._bus.close(flush_s=0)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._bus.send(Envelope("supervisor", self.name, Header("", Kind.BYE)))
        await self._bus.close()

    async def _greet(self) -> None:
        hello = Hello(name=self.name, role="ctl", pid=os.getpid(), generation=0, version=__version__, home=str(self._home), ready=True, notices=[])
        self._bus.send(Envelope("supervisor", self.name, Header("", Kind.HELLO), pack_model(hello)))
        try:
            async with asyncio.timeout(GREETING_S):
                greeting = await self._greeted
        except TimeoutError:
            text = f"The node of {self._home} (pid {node_pid(self._home)}) does not answer."
            raise StrobeError(Code.TIMEOUT, text, "Retry, or `strobe-ctl stop --force`.", value=str(self._home)) from None
        if not greeting.accepted:
            raise StrobeError(Code.ACTOR_UNAVAILABLE, f"The node refused this client: {greeting.reason}.", "Check STROBE_HOME.", value=str(self._home))
        self.node_pid = greeting.supervisor_pid

    async def ask(self, to: str, message: Ask, *, deadline_s: float = 10.0, cause: str | None = None) -> Any:
        """`message.REPLY`. Raises StrobeError."""
        return await self._asks.ask(self.name, to, message, deadline_s, cause or "")

    def _receive(self, envelope: Envelope) -> None:
        if envelope.header.kind is Kind.HELLO and not self._greeted.done():
            self._greeted.set_result(unpack_model(Greeting, envelope.body))
        elif envelope.header.kind in (Kind.REPLY, Kind.ERROR):
            self._asks.settle(envelope)
