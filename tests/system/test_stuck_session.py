"""debug_session status of programs that hang, through `strobe mcp`: the suspicion by itself, the whole diagnosis when asked for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
SUSPECTED_S: Final = 15.0


async def until_suspected(strobe: Strobe, session: str) -> dict[str, Any]:
    deadline = time.monotonic() + SUSPECTED_S
    while time.monotonic() < deadline:
        status = await strobe.call("debug_session", action="status", sessionId=session)
        if "stuck" in status:
            return status
        await asyncio.sleep(0.2)
    raise AssertionError("never suspected")


async def test_a_deadlock_is_told_by_status(tmp_path: Path) -> None:
    async with strobe_mcp(tmp_path) as strobe:
        session = await strobe.launch(program("stuck/locks.c", "-O0"), "two", root=TARGETS)
        status = await until_suspected(strobe, session)
        stuck = status["stuck"]
        assert (stuck["kind"], stuck["cause"], stuck["certainty"]) == ("deadlock", "mutex_cycle", "proven")
        assert "transfer-ab" in stuck["summary"] and "threads" not in stuck

        whole = await strobe.call("debug_session", action="status", sessionId=session, diagnose=True)
        threads = {thread["name"]: thread["stack"] for thread in whole["stuck"]["threads"]}
        assert any(frame.startswith("transfer") for frame in threads["transfer-ab"])
        assert {edge["name"] for edge in whole["stuck"]["edges"] if edge["kind"] == "mutex"} == {"lock_a", "lock_b"}
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


async def test_a_program_that_sleeps_is_not_suspected(tmp_path: Path) -> None:
    async with strobe_mcp(tmp_path) as strobe:
        session = await strobe.launch(program("stuck/outside.c", "-O0"), "sleep", root=TARGETS)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert "stuck" not in await strobe.call("debug_session", action="status", sessionId=session)
            await asyncio.sleep(0.3)
        asked = await strobe.call("debug_session", action="status", sessionId=session, diagnose=True)
        assert (asked["stuck"]["kind"], asked["stuck"]["cause"]) == ("waiting_outside", "timer")
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)
