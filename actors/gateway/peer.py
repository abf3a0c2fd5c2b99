"""One `strobe mcp`: its Server over memory streams, fed with the frames of the socket."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from actors.gateway.calls import Calls
from actors.gateway.server import build_server
from actors.gateway.tool import Client
from strobe.runtime.log import Logger

INBOX_MAX: Final = 256
Send = Callable[[bytes], Awaitable[bool]]


class Peer:
    """`pid` is its process. `send` takes one JSON-RPC message for the client; it answers False when the client is gone."""

    def __init__(self, client: Client, pid: int | None, calls: Calls, send: Send, log: Logger) -> None:
        self.client = client
        self.pid = pid
        self.heard_at = time.monotonic()
        self.log = log
        self._server = build_server(client, calls)
        self._send = send
        self._inbox: MemoryObjectSendStream[SessionMessage | Exception]
        self._outbox: MemoryObjectReceiveStream[SessionMessage]
        self._inbox, self._read = anyio.create_memory_object_stream[SessionMessage | Exception](INBOX_MAX)
        self._write, self._outbox = anyio.create_memory_object_stream[SessionMessage](INBOX_MAX)

    async def run(self) -> None:
        """Serves until `leave` or until the client is gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._deliver, group.cancel_scope)
            await self._server.run(self._read, self._write, self._server.create_initialization_options())
            group.cancel_scope.cancel()

    async def _deliver(self, scope: anyio.CancelScope) -> None:
        async for item in self._outbox:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            if not await self._send(line):
                self.log.info("client is gone", client=self.client.id)
                scope.cancel()
                return

    async def take(self, line: bytes) -> None:
        """A message of the client. What is no JSON-RPC is answered as far as it has an id; a full inbox is answered at once."""
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            await self._refuse(line, -32600, "Not a JSON-RPC 2.0 message.")
            return
        try:
            self._inbox.send_nowait(SessionMessage(message))
        except anyio.WouldBlock:
            await self._refuse(line, -32000, f"{INBOX_MAX} messages of this client wait already; try again.")
        except anyio.BrokenResourceError:
            self.log.info("message for a server that has ended", client=self.client.id)

    async def _refuse(self, line: bytes, code: int, text: str) -> None:
        found = _parsed(line)
        if isinstance(found, dict) and "method" in found and "id" not in found:
            return  # a notification has no answer
        request_id = found.get("id") if isinstance(found, dict) else None
        error = {"code": -32700, "message": "Not JSON."} if found is _NOT_JSON else {"code": code, "message": text}
        await self._send(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode())

    def leave(self) -> None:
        """The client closed: its server ends, calls in hand are cancelled."""
        self._inbox.close()


_NOT_JSON: Final = object()


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return _NOT_JSON
