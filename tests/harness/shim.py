"""A client of the gateway's socket, speaking strobe/protocol/shim.py: `strobe mcp` without its stdio."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio

from strobe import __version__, paths
from strobe.protocol import shim

ANSWER_S = 20.0


class Dealer:
    """Frames to and from the gateway of `home`."""

    def __init__(self, home: Path, *, client: str | None = None, env: dict[str, str] | None = None) -> None:
        self.client = client or str(uuid.uuid4())
        self._env = dict(os.environ) if env is None else env
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(paths.mcp_endpoint(home))

    async def send(self, kind: bytes, body: Any = None) -> None:
        await self._socket.send_multipart([kind, body if isinstance(body, bytes) else json.dumps(body or {}).encode()])

    async def receive(self) -> tuple[bytes, Any]:
        async with asyncio.timeout(ANSWER_S):
            kind, body = await self._socket.recv_multipart()
        return kind, json.loads(body)

    async def hello(self) -> dict[str, Any]:
        await self.send(shim.HELLO, {"version": __version__, "client": self.client, "pid": os.getpid(), "cwd": str(Path.cwd()), "env": self._env})
        while True:  # answers to earlier pings may come first
            kind, body = await self.receive()
            if kind == shim.HELLO:
                return dict(body)

    async def request(self, number: int, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends it and returns the answer with its id."""
        await self.send(shim.MCP, {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        while True:
            kind, body = await self.receive()
            if kind == shim.MCP and body.get("id") == number:
                return dict(body)

    async def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        answer = await self.request(1, "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        await self.send(shim.MCP, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.request(number, "tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        self._socket.close(linger=200)
        self._context.term()


@asynccontextmanager
async def dealer(home: Path, **options: Any) -> AsyncIterator[Dealer]:
    found = Dealer(home, **options)
    try:
        yield found
        await found.send(shim.BYE)
    finally:
        found.close()
