"""A launch whose gateway died between the session's processes and its target: the session can be looked at and stopped, and its id does not block the next."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from strobe.client import Client
from strobe.protocol.store import CreateSession, CreateSessionReply
from strobe.protocol.supervisor import OpenSession
from tests.harness.mcp import strobe_mcp

pytestmark = pytest.mark.anyio


async def test_a_session_without_a_target_is_told_and_stopped(home: Path) -> None:
    async with strobe_mcp(home) as strobe:
        await strobe.call("debug_session", action="list")
        async with Client(home) as client:
            create = CreateSession(
                client_id="gone", binary_path="/bin/true", command=["/bin/true"], cwd="/", project_root="/",
                started_at=time.time_ns(), started_monotonic_ns=time.monotonic_ns(),
            )  # fmt: skip
            created: CreateSessionReply = await client.ask("store", create)
            session = created.session_id
            await client.ask("supervisor", OpenSession(session_id=session), deadline_s=30)
        status = await strobe.status(session)
        assert status["status"] == "running" and any("no target yet" in text for text in status["warnings"])
        stopped = await strobe.call("debug_session", action="stop", sessionId=session, kill=True)
        assert stopped["success"] and stopped["status"] == "stopped"
        assert session not in [one["sessionId"] for one in (await strobe.call("debug_session", action="list"))["sessions"]]
