"""A running target that waits for lines on its standard input, and a client that reads and writes its memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import program

ENDS_S = 20.0


@dataclass
class Running:
    """One session of a target that waits for lines on its standard input."""

    strobe: Strobe
    id: str

    async def memory(self, action: str, targets: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return await self.strobe.call("debug_memory", sessionId=self.id, action=action, targets=targets, **more)

    async def read(self, *names: str, **more: Any) -> list[Any]:
        """Values; a result with an error as it is."""
        found = []
        for start in range(0, len(names), 16):
            reply = await self.memory("read", [{"variable": name} for name in names[start : start + 16]], **{"maxTokens": 20_000, **more})
            found += [one if "error" in one else one["value"] for one in reply["results"]]
        return found

    async def one(self, action: str = "read", **target: Any) -> dict[str, Any]:
        (result,) = (await self.memory(action, [target]))["results"]
        found: dict[str, Any] = result
        return found

    async def write(self, **values: Any) -> list[dict[str, Any]]:
        reply = await self.memory("write", [{"variable": name.replace("__", "."), "value": value} for name, value in values.items()])
        results: list[dict[str, Any]] = reply["results"]
        return results

    async def says(self, words: str, within_s: float = ENDS_S) -> None:
        """Until the target has printed it."""
        deadline = time.monotonic() + within_s
        while words not in (printed := (await self.strobe.output(self.id))[0].decode()):
            assert time.monotonic() < deadline, f"{words!r} is not in {printed!r}"
            await asyncio.sleep(0.02)

    async def line(self, text: str = "") -> None:
        await send_line(self.strobe, self.id, text)


async def send_line(strobe: Strobe, session: str, text: str) -> None:
    """To the target's standard input. There is no tool for it yet: the session's actor is asked as the stdio channel will."""
    from strobe.client import Client  # only here: STROBE_HOME is set for it
    from strobe.protocol.session import Input

    before = os.environ.get("STROBE_HOME")
    os.environ["STROBE_HOME"] = str(strobe.home)
    try:
        async with Client() as client:
            await client.ask(f"session:{session}", Input(data=f"{text}\n".encode()))
    finally:
        if before is None:
            del os.environ["STROBE_HOME"]
        else:
            os.environ["STROBE_HOME"] = before


@asynccontextmanager
async def started(home: Path, path: Path, **more: Any) -> AsyncIterator[Running]:
    async with strobe_mcp(home, keep_node=True) as strobe:
        session = await strobe.launch(path, stdin={"open": True}, **more)
        running = Running(strobe, session)
        await running.says("ready")
        yield running
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


def c_program(*flags: str) -> Path:
    return program("memory/globals.c", "-O0", *flags)
