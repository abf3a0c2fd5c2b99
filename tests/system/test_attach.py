"""Attaching to processes that run already, through `strobe mcp`: busy ones, stopped ones, those that may not be touched; and leaving them as they were."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.code_bytes import functions_changed
from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program, without_inherited_signals

pytestmark = pytest.mark.anyio
WAIT_S = 20.0


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("attach") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def one(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"])


@contextmanager
def running(*argv: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its output in pipes; it is gone at the end."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    process: subprocess.Popen[bytes] = subprocess.Popen(argv, preexec_fn=without_inherited_signals, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def attached(threads: int = 2, seconds: float = 30, code: int = 7, *more: str) -> list[str]:
    return [str(program("attached.c", "-O1")), str(threads), str(seconds), str(code), *more]


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    """It runs."""
    assert process.stdout is not None
    return process.stdout.readline()


async def attach(strobe: Strobe, pid: int) -> dict[str, Any]:
    return await strobe.call("debug_launch", pid=pid, projectRoot=str(TARGETS))


async def eventually(strobe: Strobe, within_s: float = 10.0, **query: Any) -> list[dict[str, Any]]:
    """The first answer that holds an event."""
    deadline = time.monotonic() + within_s
    while not (found := (await strobe.call("debug_query", **query))["events"]):
        assert time.monotonic() < deadline, f"nothing within {within_s:g} s: {query}"
        await asyncio.sleep(0.02)
    return found  # type: ignore[no-any-return]


async def test_a_busy_process_is_traced_and_left_as_it_was(one: Strobe) -> None:
    with running(*attached()) as process:
        first = first_line(process)
        launched = await attach(one, process.pid)
        session = launched["sessionId"]
        assert launched["pid"] == process.pid
        assert launched["capabilities"]["outputCapture"] == "partial"
        assert launched["capabilities"]["functionTracing"] == "full"
        traced = await one.call("debug_trace", sessionId=session, add=["step", "weigh", "work"])
        assert traced["hookedFunctions"] == 3

        call = (await eventually(one, sessionId=session, eventType="function_exit", function={"equals": "step"}, verbose=True))[0]
        arguments = {item["name"]: item["value"] for item in call["arguments"]}
        assert arguments["label"] == ("odd" if arguments["number"] % 2 else "even")
        assert call["returnValue"] == 3 * arguments["number"] + 2
        assert call["threadId"] == call["pid"] == process.pid
        worker = (await eventually(one, sessionId=session, eventType="function_enter", function={"equals": "work"}, verbose=True))[0]
        assert worker["threadName"] == "worker"
        printed = await eventually(one, sessionId=session, eventType="stdout", verbose=True)
        assert printed[0]["text"].startswith("step ")
        noted = await eventually(one, sessionId=session, eventType="stderr")
        assert noted[0]["text"] == "note even\n"
        value = await one.call("debug_memory", action="read", sessionId=session, targets=[{"variable": "gSteps"}])
        assert value["results"][0]["value"] > 0

        assert functions_changed(process.pid, {"step", "weigh", "work"}) == {"step", "weigh", "work"}
        stopped = await one.call("debug_session", action="stop", sessionId=session)
        assert stopped["status"] == "stopped"
        assert functions_changed(process.pid) == set()
        assert process.poll() is None
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 7
        lines = (first + out).decode().splitlines()
        assert lines[-1] == "done 2"
        assert lines[:-1] == [f"step {n} sum {3 * n + 2}" for n in range(1, len(lines))]
        assert err.decode() == "note even\n" * ((len(lines) - 1) // 10)
