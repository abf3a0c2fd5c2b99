"""Strobe as its users meet it: `strobe mcp` over stdio, driven by the official SDK's client.

    async def test_x(home):
        async with strobe_mcp(home) as strobe:
            launched = await strobe.call("debug_launch", command=str(path), projectRoot=str(TARGETS))
            status = await strobe.until_ended(launched["sessionId"])

`home` is a STROBE_HOME of the test's own; the node that the shim starts there is stopped at the end, and nothing of it may be left.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters

from tests.harness import node

CALL_S: Final = 30.0
ENDED: Final = frozenset({"exited", "crashed", "stopped", "lost"})
STREAMS: Final = ("stdout", "stderr")
EMPTY_MD5: Final = hashlib.md5(b"").hexdigest()
ROOT: Final = Path(__file__).resolve().parents[2]


class ToolError(Exception):
    """A tool's error reply: `code`, and the whole structured content."""

    def __init__(self, tool: str, content: Mapping[str, Any]) -> None:
        super().__init__(f"{tool}: {dict(content)}")
        self.code: str = content["code"]
        self.content = content


class Strobe:
    """One client's connection. `client` is the SDK's own, for what has no short form here."""

    def __init__(self, client: Client, home: Path) -> None:
        self.client = client
        self.home = home

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of the reply. Raises ToolError."""
        result = await self.client.call_tool(tool, arguments, read_timeout_seconds=CALL_S)
        content: dict[str, Any] = result.structured_content or {}
        if result.is_error:
            raise ToolError(tool, content or {"code": "?", "text": [getattr(part, "text", "") for part in result.content]})
        return content

    async def launch(self, program: Path, *args: str, root: Path | None = None, trace: list[str] | None = None, **more: Any) -> str:
        """Session id of `program args`, with the patterns of `trace` in place before its first instruction."""
        if trace:
            await self.call("debug_trace", add=trace)
        reply = await self.call("debug_launch", command=str(program), args=list(args), projectRoot=str(root or program.parent), **more)
        session_id: str = reply["sessionId"]
        return session_id

    async def status(self, session_id: str) -> dict[str, Any]:
        return await self.call("debug_session", action="status", sessionId=session_id)

    async def until_ended(self, session_id: str, *, within_s: float = 60.0) -> dict[str, Any]:
        """The status once the target ended. AssertionError with the last status when it does not."""
        deadline = time.monotonic() + within_s
        while (status := await self.status(session_id))["status"] not in ENDED:
            assert time.monotonic() < deadline, f"{session_id} did not end within {within_s:g} s: {status}"
            await asyncio.sleep(0.05)
        return status

    async def rows(self, session_id: str, sql: str) -> list[list[Any]]:
        """All rows of a query in SQL (at most 500)."""
        reply = await self.call("debug_query", sessionId=session_id, sql=sql, limit=500, maxTokens=100_000)
        assert not reply["hasMore"], f"more than 500 rows: {sql}"
        rows: list[list[Any]] = reply["rows"]
        return rows

    async def events(self, session_id: str, **filters: Any) -> list[dict[str, Any]]:
        """Every event that matches, page by page."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            reply = await self.call("debug_query", sessionId=session_id, limit=500, maxTokens=50_000, **filters, **cursor)
            found += reply["events"]
            if not reply["hasMore"]:
                return found
            cursor = {"cursor": reply["cursor"]}

    async def output(self, session_id: str) -> tuple[bytes, bytes]:
        """All that the target wrote to stdout and stderr, as the timeline has it."""
        texts = [await self.events(session_id, eventType=stream) for stream in STREAMS]
        stdout, stderr = ("".join(event["text"] for event in events).encode() for events in texts)
        return stdout, stderr

    async def output_digests(self, session_id: str) -> tuple[str, str]:
        """MD5 of what the target wrote to stdout and stderr: for output too large to fetch. The store computes it over the text that it holds."""
        rows = await self.rows(session_id, "SELECT stream, md5(string_agg(text, '' ORDER BY start)) FROM output_v GROUP BY stream")
        found = dict(rows)
        stdout, stderr = (str(found.get(stream, EMPTY_MD5)) for stream in STREAMS)
        return stdout, stderr


@asynccontextmanager
async def strobe_mcp(home: Path, *, env: Mapping[str, str] | None = None, keep_node: bool = False, mode: str = "auto") -> AsyncIterator[Strobe]:
    """A client connected to `strobe mcp` of `home`. Ends the node afterwards and checks that nothing is left, unless `keep_node`.

    `mode` is the protocol's era: `auto` (2026-07-28 where both sides speak it) or `legacy` (with the initialize handshake).
    """
    path = os.pathsep.join(item for item in (str(ROOT), os.environ.get("PYTHONPATH", "")) if item)
    variables = {**os.environ, "PYTHONPATH": path, **(env or {}), "STROBE_HOME": str(home)}
    server = StdioServerParameters(command=sys.executable, args=["-m", "strobe.cli", "mcp"], env=variables)
    try:
        async with Client(server, mode=mode, read_timeout_seconds=CALL_S) as client:
            yield Strobe(client, home)
    finally:
        if not keep_node:
            with node.environment(home, None, {}):
                await node.stop(home)
    if not keep_node:
        node.assert_nothing_left(home)


def _only(error: BaseException) -> BaseException:
    """What a task group wraps around a test's own failure is taken off again."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
