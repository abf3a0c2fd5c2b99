"""Who comes to the bus: HELLO of actors and clients, READY, and giving a process its session."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Final

from strobe import __version__, paths
from strobe.errors import StrobeError
from strobe.runtime.asks import Asks
from strobe.runtime.envelope import Envelope, Header, Kind, pack_model
from strobe.runtime.greeting import Adopt, Greeting, Hello
from strobe.runtime.log import Logger
from strobe.runtime.router import Router
from strobe.supervisor.nursery import Nursery
from strobe.supervisor.process import Process, State
from strobe.supervisor.switchboard import Switchboard
from strobe.supervisor.table import Table

ADOPT_S: Final = 15.0


class Reception:
    """`on_ready` is called after a process has become ready, `changed` after the table has changed."""

    def __init__(
        self, table: Table, router: Router, switchboard: Switchboard, nursery: Nursery, asks: Asks, on_ready: Callable[[], None],
        changed: Callable[[], None], log: Logger,
    ) -> None:  # fmt: skip
        self._table = table
        self._router = router
        self._switchboard = switchboard
        self._nursery = nursery
        self._asks = asks
        self._on_ready = on_ready
        self._changed = changed
        self.log = log

    async def greet(self, identity: str, pid: int, hello: Hello) -> None:
        """Answers a HELLO. An accepted actor that says it is ready, is."""
        process = self._table.sender(identity, pid)
        refusal = self._refusal(identity, pid, process, hello)
        greeting = Greeting(accepted=refusal == "", supervisor_pid=os.getpid(), reason=refusal)
        await self._router.send(identity, Envelope(hello.name, "supervisor", Header("", Kind.HELLO), pack_model(greeting)))
        if refusal:
            self.log.warning("not accepted", identity=identity, pid=pid, reason=refusal)
        elif process is not None:
            process.notices, process.pong_at = frozenset(hello.notices), time.monotonic()
            if hello.ready and process.state is State.STARTING:
                await self._said_ready(process, hello)

    def _refusal(self, identity: str, pid: int, process: Process | None, hello: Hello) -> str:
        """Why this HELLO is not accepted; empty when it is."""
        if hello.home != str(paths.home()):
            return f"this node's home is {paths.home()}"
        if process is not None:
            return "" if hello.version == __version__ else f"version {hello.version}; this node is {__version__}"
        if hello.role == "ctl" and identity.startswith("ctl:"):
            self._table.add_client(identity, pid, frozenset(hello.notices))
            return ""
        return "not in the process table"

    async def _said_ready(self, process: Process, hello: Hello) -> None:
        if process.session_id is not None and hello.session_id != process.session_id:
            self._nursery.spawn_task(self._readopt(process))
        else:
            await self._is_ready(process)

    async def _is_ready(self, process: Process) -> None:
        process.state = State.READY
        process.ready.set()
        self.log.info("ready", actor=process.name, pid=process.pid, after_ms=round((time.monotonic() - process.started_at) * 1000))
        await self._switchboard.ready(process)
        self._on_ready()

    async def _readopt(self, process: Process) -> None:
        """A restarted process of a session learns whose it is before it is given anything else."""
        try:
            await self.adopt(process, process.name, str(process.session_id), True)
        except StrobeError as error:
            self.log.error("could not take its session up again", actor=process.name, error=str(error))
            process.signal(signal.SIGKILL)

    async def adopt(self, process: Process, name: str, session_id: str, recovering: bool) -> None:
        """`process` is `name` of `session_id` from now on. Raises StrobeError."""
        await self._asks.ask("supervisor", process.name, Adopt(name=name, session_id=session_id, recovering=recovering), ADOPT_S, "")
        self._table.rename(process, name)
        process.session_id = session_id
        self._changed()
        if process.state is State.STARTING:
            await self._is_ready(process)
