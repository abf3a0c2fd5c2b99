"""debug_memory polls through `strobe mcp`: samples on the timeline, and how they end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import ToolError, strobe_mcp
from tests.harness.memory_client import ENDS_S, Running, c_program, started

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("polls") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def fresh(shared_home: Path) -> AsyncIterator[Running]:
    async with started(shared_home, c_program()) as running:
        yield running


async def done(running: Running, poll: str, within_s: float = ENDS_S) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The poll's samples and its last event."""
    deadline = time.monotonic() + within_s
    while True:
        events = [one for one in await running.strobe.events(running.id, eventType="variable_snapshot", verbose=True) if one["data"]["poll"] == poll]
        if events and events[-1]["data"].get("done"):
            return events[:-1], events[-1]
        assert time.monotonic() < deadline, f"{poll} did not end: {events[-1:]}"
        await asyncio.sleep(0.05)


async def test_poll_samples_on_the_timeline(fresh: Running) -> None:
    reply = await fresh.memory("poll", [{"variable": "ticking"}, {"variable": "gTempo"}, {"variable": "nope"}], intervalMs=50, durationMs=600)
    assert reply["intervalMs"] == 50
    assert reply["achievedIntervalMs"] >= 50
    assert reply["results"][1]["value"] == 120
    assert "no `nope`" in reply["results"][2]["error"]
    await fresh.one("write", variable="gTempo", value=99)
    samples, end = await done(fresh, reply["poll"])
    figures = end["data"]
    assert figures["endedBy"] == "its time is up"
    assert (figures["samples"], figures["askedIntervalMs"]) == (len(samples), 50)
    assert figures["samples"] + figures["missed"] == 13
    ticking = [one["data"]["values"]["ticking"] for one in samples]
    assert ticking == sorted(ticking)
    assert ticking[0] < ticking[-1]
    assert samples[-1]["data"]["values"]["gTempo"] == 99
    assert all("no `nope`" in one["data"]["errors"]["nope"] for one in samples)
    assert samples[0]["text"].startswith("ticking = ")
    times = [one["timestampNs"] for one in samples]
    span_ms = (times[-1] - times[0]) / 1e6
    assert span_ms / (len(times) - 1) == pytest.approx(figures["achievedIntervalMs"], abs=0.01)
    assert 500 <= span_ms <= 1200
    rows = await fresh.strobe.rows(fresh.id, "SELECT count(*) FROM samples_v")
    assert rows == [[len(samples) + 1]]


async def test_poll_of_changes_alone(fresh: Running) -> None:
    reply = await fresh.memory("poll", [{"variable": "gTempo"}, {"variable": "gLabel"}], intervalMs=50, durationMs=5000, onChange=True)
    await asyncio.wait_for(until_events(fresh, 1), ENDS_S)
    await fresh.one("write", variable="gLabel", value="new")
    await asyncio.wait_for(until_events(fresh, 2), ENDS_S)
    await fresh.strobe.call("debug_session", action="stop", sessionId=fresh.id, kill=True, retain=True)
    samples, end = await done(fresh, reply["poll"])
    assert [one["data"]["values"] for one in samples] == [{"gTempo": 120, "gLabel": "hello"}, {"gLabel": "new"}]
    assert end["data"]["endedBy"] == "the session was stopped"
    assert end["data"]["samples"] > end["data"]["events"] == 2


async def until_events(running: Running, count: int) -> None:
    while len(await running.strobe.events(running.id, eventType="variable_snapshot")) < count:
        await asyncio.sleep(0.02)


async def test_a_target_that_ends_ends_its_polls(fresh: Running) -> None:
    reply = await fresh.memory("poll", [{"variable": "ticking"}], intervalMs=5000, durationMs=30_000)
    await asyncio.wait_for(until_events(fresh, 1), ENDS_S)
    await fresh.line("exit")
    status = await fresh.strobe.until_ended(fresh.id)
    assert (status["status"], status["exitCode"]) == ("exited", 5)
    samples, end = await done(fresh, reply["poll"])
    assert len(samples) == 1
    assert end["data"]["endedBy"] == "the target has ended"
    for action, more in (("read", {}), ("poll", {"intervalMs": 50, "durationMs": 100})):
        with pytest.raises(ToolError) as gone:
            await fresh.memory(action, [{"variable": "gTempo"}], **more)
        assert gone.value.code == "PROCESS_EXITED"
    with pytest.raises(ToolError) as gone:
        await fresh.one("write", variable="gTempo", value=1)
    assert gone.value.code == "PROCESS_EXITED"


async def test_polls_are_limited(fresh: Running) -> None:
    for _ in range(4):
        await fresh.memory("poll", [{"variable": "gTempo"}], intervalMs=1000, durationMs=30_000)
    with pytest.raises(ToolError) as refused:
        await fresh.memory("poll", [{"variable": "gTempo"}], intervalMs=1000, durationMs=30_000)
    assert refused.value.code == "LIMIT_EXCEEDED"
    nothing = await fresh.memory("read", [{"variable": "gTempo"}] * 16)
    assert [one["value"] for one in nothing["results"]] == [120] * 16
