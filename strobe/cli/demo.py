"""`strobe demo`: builds the demo program, runs the story in a node of its own, leaves nothing behind.

Exit status: 0 the bug was found · 1 Strobe failed · 2 wrong usage · 3 this machine lacks something, which is named.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import TextContent

from strobe import paths
from strobe.client import Client as NodeClient
from strobe.demo import screen
from strobe.demo.machine import Missing, build_ledger, tracing_missing
from strobe.demo.story import CallFailed, Demo, NotFound
from strobe.errors import StrobeError
from strobe.protocol.supervisor import Shutdown
from strobe.supervisor.start import node_pid

NODE_END_S: Final = 30.0


def run_demo(arguments: list[str]) -> int:
    if arguments:
        print(f"strobe demo takes no arguments (got {arguments[0]!r}).", file=sys.stderr)
        return 2
    screen.line("Strobe demo: a program that settles payments, keeps the last twelve in a journal, and crashes.")
    with _own_home() as folder:
        try:
            program = build_ledger(folder)
        except StrobeError as error:
            screen.line(f"{error.what}\n{error.next_step}")
            return 3
        return asyncio.run(_session(program, tracing_missing()))


@contextlib.contextmanager
def _own_home() -> Iterator[Path]:
    """A temporary folder with a STROBE_HOME of its own in it: the user's node and sessions are left alone."""
    with tempfile.TemporaryDirectory(prefix="strobe-demo-") as folder:
        before = os.environ.get("STROBE_HOME")
        os.environ["STROBE_HOME"] = str(Path(folder) / "home")
        try:
            yield Path(folder)
        finally:
            shutil.rmtree(paths.run_folder(), ignore_errors=True)  # outside of a home whose path is too long for sockets
            os.environ.pop("STROBE_HOME")
            if before is not None:
                os.environ["STROBE_HOME"] = before


async def _session(program: Path, missing: Missing | None) -> int:
    server = StdioServerParameters(command=sys.executable, args=["-m", "strobe.cli", "mcp"], env=dict(os.environ))
    try:
        async with Client(server) as client:
            screen.line(f"An MCP client talks to `strobe mcp`. Program: {program}")
            return await _told(Demo(program, _caller(client)), missing)
    finally:
        await _end_node()


async def _told(demo: Demo, missing: Missing | None) -> int:
    try:
        if missing is not None:
            await demo.output_only()
            return _explain(missing)
        await demo.tell()
    except (CallFailed, NotFound) as error:
        screen.line(f"\nThe demo failed: {error}")
        await demo.end_all()
        return 1
    screen.line("\nNothing was recompiled, nothing was restarted for the trace, and nothing of this demo is left on the machine.")
    return 0


def _explain(missing: Missing) -> int:
    screen.line(f"\n{missing.what}\nCalls, arguments and crashes cannot be recorded here. What would help: {missing.help}")
    return 3


def _caller(client: Client) -> Any:
    async def call(tool: str, arguments: dict[str, Any], *, show: bool = True) -> dict[str, Any]:
        if show:
            screen.call(tool, arguments)
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            raise CallFailed(error.error.message) from None
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        if result.is_error:
            raise CallFailed(text)
        if show:
            screen.answer(text)
        return dict(result.structured_content)

    return call


async def _end_node() -> None:
    """Ends the demo's node and waits for its last process: the folder goes when this returns."""
    try:
        async with NodeClient() as node:
            await node.ask("supervisor", Shutdown(reason="end of the demo"))
    except StrobeError as error:
        screen.line(f"(the demo's node: {error.what})")
    deadline = time.monotonic() + NODE_END_S
    while node_pid() is not None and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
