"""A client of the node as a coding agent is one: debug_test and the other tools through `strobe mcp`. A client that ends takes its runs with it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import TextContent

from strobe import paths
from strobe.client import Client as NodeClient
from strobe.errors import Code, StrobeError
from strobe.protocol.supervisor import Shutdown, Status, StatusReply
from strobe.redaction import Redactor
from strobe.supervisor.start import ensure_node, node_pid

CALL_S: Final = 30.0
NODE_S: Final = 10.0
NODE_END_S: Final = 60.0
LEAVING_S: Final = 3.0  # that our own client takes to be gone
LOOK_S: Final = 0.05
NODE_COMMAND: Final = b"strobe.cli\0node\0--foreground"  # supervisor/start.py


class Link:
    def __init__(self, client: Client, node: NodeClient, redactor: Redactor | None) -> None:
        self._client = client
        self.redactor = redactor  # None: redaction.enabled is false
        self.node = node  # for what no tool tells

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The structured reply. Raises StrobeError."""
        try:
            result = await self._client.call_tool(tool, arguments, read_timeout_seconds=CALL_S)
        except MCPError as error:
            raise StrobeError(Code.ACTOR_UNAVAILABLE, f"The node does not answer: {error.error.message}", "`strobe-ctl doctor` looks at it.") from None
        content: dict[str, Any] = dict(result.structured_content or {})
        if not result.is_error:
            return content
        if "code" in content:
            raise StrobeError.from_wire(content)
        said = " ".join(part.text for part in result.content if isinstance(part, TextContent))
        raise StrobeError(Code.ACTOR_UNAVAILABLE, f"{tool}: {said}", "`strobe-ctl doctor` looks at the node.")


@asynccontextmanager
async def linked(cwd: str, redactor: Redactor | None) -> AsyncIterator[Link]:
    """A node that was not there before is ended afterwards, unless others came to use it."""
    was_there = node_pid() is not None
    # Here and at once: one that the shim starts could appear after an early Ctrl-C has looked for it.
    ensure_node()
    server = StdioServerParameters(command=sys.executable, args=["-P", "-m", "strobe.cli", "mcp"], env=dict(os.environ), cwd=cwd)
    try:
        async with Client(server, read_timeout_seconds=CALL_S) as client, NodeClient() as node:
            yield Link(client, node, redactor)
    finally:
        if not was_there:
            await _end_node()


async def _end_node() -> None:
    """In order, and until it is gone: a CI job's machine is as it was. Where a node died, others may be starting at this moment."""
    until = time.monotonic() + NODE_END_S
    try:
        while node_pid() is not None or _starts():
            if time.monotonic() > until:
                raise StrobeError(Code.TIMEOUT, f"it has not ended within {NODE_END_S:g} s.", "`strobe-ctl stop --force`.")
            pid = node_pid()
            if pid is not None and not await _shut_down():
                return
            while pid is not None and node_pid() == pid and time.monotonic() < until:
                await asyncio.sleep(LOOK_S)
            await asyncio.sleep(LOOK_S)
    except StrobeError as error:
        print(f"strobe-ci: the node that it started was left running: {error.what}", file=sys.stderr)


async def _shut_down() -> bool:
    """False: others use it."""
    until = time.monotonic() + LEAVING_S
    try:
        async with NodeClient() as node:
            while True:
                status: StatusReply = await node.ask("supervisor", Status(), deadline_s=NODE_S)
                if status.clients == 0:
                    await node.ask("supervisor", Shutdown(reason="strobe-ci is done"), deadline_s=NODE_S)
                    return True
                if time.monotonic() > until:
                    return False
                await asyncio.sleep(LOOK_S)
    except StrobeError as error:
        if error.code is not Code.ACTOR_UNAVAILABLE and node_pid() is not None:  # else it has gone, or is not there yet
            raise
        return True


def _starts() -> bool:
    """Some process of ours is on its way to be the node of this home."""
    ours = f"STROBE_HOME={paths.home()}".encode()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and NODE_COMMAND in (folder / "cmdline").read_bytes() and ours in (folder / "environ").read_bytes().split(b"\0"):
                return True
        except OSError:  # it has gone, or is somebody else's
            continue
    return False
