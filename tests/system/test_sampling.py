"""Hot functions: most of their calls are counted only, all are counted, and replies say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program

CALLS = 12_000_000
ENDS_S = 120.0


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    async with strobe_mcp(tmp_path_factory.mktemp("sampling") / "home") as connected:
        yield connected


async def run(strobe: Strobe, *args: str) -> tuple[str, dict[str, Any]]:
    """The session, and how often the program says that it called what."""
    session = await strobe.launch(program("hot.c", "-O1", "-g"), *args, root=TARGETS, trace=["hot", "seldom"])
    await strobe.until_ended(session, within_s=ENDS_S)
    words = (await strobe.output(session))[0].decode().split()
    return session, {"hot": int(words[1]), "seldom": int(words[3])}


async def hotspots(strobe: Strobe, session: str) -> dict[str, dict[str, Any]]:
    reply = await strobe.call("debug_query", sessionId=session, view="hotspots")
    assert not any("hot" in cause for cause in reply["eventsDropped"])
    return {row["function"]: row for row in reply["events"]}


async def test_every_call_counts_and_few_are_recorded(strobe: Strobe) -> None:
    session, said = await run(strobe, str(CALLS))
    reply = await strobe.call("debug_query", sessionId=session, function={"equals": "hot"}, eventType="function_enter", limit=1)
    dropped = sum(reply["eventsDropped"].values())
    recorded = reply["totalCount"]
    assert recorded < CALLS / 2
    assert any("hot (now 1 call in 100" in text for text in reply["warnings"]), reply["warnings"]
    rows = await hotspots(strobe, session)
    assert rows["hot"]["recorded"] == recorded
    assert said["hot"] - dropped <= rows["hot"]["calls"] <= said["hot"]
    assert rows["seldom"]["calls"] == said["seldom"] or dropped
    assert "recorded" not in rows["seldom"]
    late = await strobe.call(
        "debug_query", sessionId=session, function={"equals": "hot"}, eventType="function_exit", timeFrom="-100ms", limit=5, verbose=True
    )
    assert late["events"]
    assert all(event["sampled"] and event["sampleRate"] == 0.01 for event in late["events"])
    status = await strobe.call("debug_session", action="status", sessionId=session)
    [one] = status["sampling"]
    assert (one["function"], one["rate"]) == ("hot", 0.01)
    assert one["notRecorded"] + recorded + dropped >= said["hot"]
    await strobe.call("debug_session", action="stop", sessionId=session)


async def test_what_calms_down_is_recorded_whole_again(strobe: Strobe) -> None:
    session, said = await run(strobe, str(CALLS // 4), "5")
    late = await strobe.call("debug_query", sessionId=session, function={"equals": "hot"}, eventType="function_enter", timeFrom="-1s", limit=500, verbose=True)
    assert late["totalCount"] >= 100  # of 500 a second at most, fewer on a busy machine; 5 if still sampled
    assert not any(event.get("sampled") for event in late["events"])
    rows = await hotspots(strobe, session)
    assert rows["hot"]["calls"] <= said["hot"]
    await strobe.call("debug_session", action="stop", sessionId=session)


async def test_a_caller_may_want_everything(strobe: Strobe) -> None:
    await strobe.call("debug_trace", budget={"callsPerSecond": 0})
    session, said = await run(strobe, "600000")
    reply = await strobe.call("debug_query", sessionId=session, function={"equals": "hot"}, eventType="function_enter", limit=1)
    assert reply["totalCount"] + sum(reply["eventsDropped"].values()) >= said["hot"]
    assert not any("Sampled" in text for text in reply.get("warnings", []))
    await strobe.call("debug_session", action="stop", sessionId=session)


async def test_a_budget_bounds_all_functions_together(strobe: Strobe) -> None:
    await strobe.call("debug_trace", budget={"eventsPerSecond": 20_000, "callsPerSecond": 0})
    session, said = await run(strobe, str(CALLS))
    rows = await hotspots(strobe, session)
    assert rows["hot"]["recorded"] < said["hot"] / 4
    status = await strobe.call("debug_session", action="status", sessionId=session)
    assert {one["function"] for one in status["sampling"]} >= {"hot"}
    assert all(one["rate"] < 0.01 for one in status["sampling"] if one["function"] == "hot")
    await strobe.call("debug_session", action="stop", sessionId=session)


async def test_settings_of_the_project(strobe: Strobe, tmp_path: Path) -> None:
    """The rate comes from settings; a budget of a call comes before it, while the target runs too."""
    settings = strobe.home / "settings.json"
    settings.write_text('{"sampling.callsPerSecond": 50000, "sampling.rate": 0.5}')
    try:
        session, said = await run(strobe, str(CALLS // 4))
        status = await strobe.call("debug_session", action="status", sessionId=session)
        assert [(one["function"], one["rate"]) for one in status["sampling"]] == [("hot", 0.5)]
        rows = await hotspots(strobe, session)
        assert rows["hot"]["calls"] <= said["hot"]
        await strobe.call("debug_session", action="stop", sessionId=session)
    finally:
        settings.unlink()
