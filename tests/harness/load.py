"""A target that prints and calls a known sequence (numbers.c), and what Strobe tells of it, held against that: also while parts of Strobe die."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from strobe.client import Client
from strobe.errors import StrobeError
from tests.harness import node, targets
from tests.harness.mcp import Strobe, ToolError

LINES, LINE_US, THREADS, BURST = 1200, 1000, 2, 12  # about 1.4 s of load
PATTERNS = ["chain", "middle", "leaf", "numbered_line"]
RETRY_S = 30.0
EXIT_STATUS = 17


def numbers(name: str = "numbers") -> tuple[Path, list[str]]:
    """The program, as a file of that name, and its arguments."""
    return targets.program("numbers.c", "-O2", name=name), [str(number) for number in (LINES, THREADS, BURST, LINE_US)]


@dataclass
class Told:
    """What Strobe says the target did."""

    stdout: str
    stderr: str
    enters: int
    exits: int
    dropped: int
    status: dict[str, Any]


async def patient(strobe: Strobe, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call that may meet a process that was just killed: the error must be a clear one, and soon the answer comes."""
    deadline = time.monotonic() + RETRY_S
    while True:
        try:
            return await strobe.call(tool, **arguments)
        except ToolError as error:
            assert error.code in ("ACTOR_UNAVAILABLE", "TIMEOUT"), error
            failure: Exception = error
        except MCPError as error:
            assert error.code == -32000, error
            failure = error
        assert time.monotonic() < deadline, f"{tool} still fails after {RETRY_S} s: {failure}"
        await asyncio.sleep(0.05)


async def pids(home: Path, *, ready: bool = False) -> dict[str, int]:
    """Every process of the node by name; `ready`: those that answer. A client of its own each time: one that is known to a dead supervisor is a stranger to
    the next."""
    async with Client(home) as client:
        status = await node.status(client)
    return {row.name: row.pid for row in status.actors if row.pid and (row.state == "ready" or not ready)} | {"supervisor": status.pid}


async def told(strobe: Strobe, session_id: str, within_s: float = RETRY_S) -> Told:
    """Once the target has ended, `within_s`, and all of it is stored."""
    deadline = time.monotonic() + within_s
    while (status := await patient(strobe, "debug_session", action="status", sessionId=session_id))["status"] == "running":
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.05)
    await drained(strobe.home, session_id)
    texts = {}
    for stream in ("stdout", "stderr"):
        texts[stream] = "".join([event["text"] for event in await events(strobe, session_id, eventType=stream)])
    enters = await patient(strobe, "debug_query", sessionId=session_id, eventType="function_enter", limit=1)
    exits = await patient(strobe, "debug_query", sessionId=session_id, eventType="function_exit", limit=1)
    return Told(texts["stdout"], texts["stderr"], enters["totalCount"], exits["totalCount"], sum(enters.get("eventsDropped", {}).values()), status)


async def drained(home: Path, session_id: str) -> None:
    """Until the session's process is gone: it ends when the store has acknowledged its last batch."""

    async def gone() -> bool:
        try:
            return f"session:{session_id}" not in await pids(home)
        except StrobeError:
            return False  # the supervisor was the victim, and its successor is on the way

    await node.until(gone, within_s=RETRY_S)


async def events(strobe: Strobe, session_id: str, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        reply = await patient(strobe, "debug_query", sessionId=session_id, limit=500, maxTokens=50_000, **filters, **cursor)
        found += reply["events"]
        if not reply["hasMore"]:
            return found
        cursor = {"cursor": reply["cursor"]}


def check_output(stdout: str, last: list[str], moment: str) -> None:
    lines = "".join([*(f"line {number}\n" for number in range(LINES)), *last])
    if stdout != lines:
        at = next((at for at, (is_, should) in enumerate(zip(stdout, lines, strict=False)) if is_ != should), min(len(stdout), len(lines)))
        pytest.fail(f"stdout {moment} differs at byte {at}: {stdout[at : at + 60]!r}, not {lines[at : at + 60]!r}")


def check_calls(result: Told, moment: str) -> None:
    """A call whose enter found no room has no exit either, so each drop is one call that is not there in full. Those left out by sampling are counted."""
    calls = int(re.fullmatch(r"calls (\d+)\n", result.stderr)[1])  # type: ignore[index]
    assert result.status["exitCode"] == EXIT_STATUS
    left_out = sum(one["notRecorded"] for one in result.status.get("sampling") or [])
    told_of = f"enters {result.enters} exits {result.exits} dropped {result.dropped} left out {left_out} of {calls} calls {moment}"
    assert result.exits + result.dropped + left_out == calls, told_of
    assert result.exits <= result.enters <= calls, told_of
    assert calls > 200_000, "too little load for a kill test"
