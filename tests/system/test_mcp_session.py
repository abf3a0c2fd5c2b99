"""One whole session through `strobe mcp`, by the official SDK's client, in both protocol eras: launch, output, trace, query, stop."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
ENDS_S = 30.0


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The home of one node for all tests of this file; at the end it is stopped, and must leave nothing."""
    home = tmp_path_factory.mktemp("session") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture(params=["auto", "legacy"])
async def strobe(request: pytest.FixtureRequest, shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, mode=request.param, keep_node=True) as connected:
        yield connected
        await end_all(connected)


@pytest.fixture
async def one(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        await end_all(connected)


async def end_all(strobe: Strobe) -> None:
    for item in (await strobe.call("debug_session", action="list"))["sessions"]:
        await strobe.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)


def ticks() -> Path:
    return program("ticks.c", "-O0")


async def hooked(strobe: Strobe, session: str, *patterns: str) -> dict[str, Any]:
    reply = await strobe.call("debug_trace", sessionId=session, add=list(patterns))
    assert reply["mode"] == "runtime"
    return reply


async def eventually(strobe: Strobe, within_s: float = 10.0, **query: Any) -> dict[str, Any]:
    """The first answer that holds an event."""
    deadline = time.monotonic() + within_s
    while not (reply := await strobe.call("debug_query", **query))["events"]:
        assert time.monotonic() < deadline, f"nothing within {within_s:g} s: {query}"
        await asyncio.sleep(0.02)
    return reply


async def test_the_whole_way(strobe: Strobe) -> None:
    launched = await strobe.call("debug_launch", command=str(ticks()), args=["120", "50", "7"], projectRoot=str(TARGETS))
    session, pid = launched["sessionId"], launched["pid"]
    assert session.startswith("ticks-")
    assert Path(f"/proc/{pid}").exists()
    assert launched["capabilities"]["runtime"] == "native"
    assert launched["capabilities"]["functionTracing"] == "full"
    assert launched["capabilities"]["outputCapture"] == "full"
    assert any(session in step for step in launched["nextSteps"])

    first = await eventually(strobe, sessionId=session, eventType="stdout")
    assert first["events"][0]["text"].startswith("tick 1 odd 0\n")

    traced = await hooked(strobe, session, "tick", "weight", "no_such_function")
    assert traced["hookedFunctions"] == 2
    assert set(traced["activePatterns"]) == {"tick", "weight", "no_such_function"}
    assert any("no_such_function" in warning for warning in traced["warnings"])

    calls = await eventually(strobe, sessionId=session, eventType="function_exit", function={"equals": "tick"}, verbose=True)
    event = calls["events"][0]
    arguments = {item["name"]: item for item in event["arguments"]}
    number = arguments["number"]["value"]
    assert event["returnValue"] == (10 * number if number > 3 else number)
    assert arguments["number"]["type"] == "int"
    assert arguments["name"]["value"] == ("odd" if number % 2 else "even")
    assert arguments["scale"]["value"] == 0.5
    assert event["sourceFile"].endswith("ticks.c")
    assert event["threadId"] == event["pid"] == pid
    weights = await eventually(strobe, sessionId=session, eventType="function_enter", function={"equals": "weight"}, verbose=True)
    assert {item["name"]: item["value"] for item in weights["events"][0]["arguments"]}["mood"] in ("CALM", "BUSY")

    removed = await strobe.call("debug_trace", sessionId=session, remove=["weight", "no_such_function"])
    assert removed["activePatterns"] == ["tick"]
    assert removed["hookedFunctions"] == 1
    assert (await strobe.call("debug_trace", sessionId=session))["activePatterns"] == ["tick"]

    ended = await strobe.until_ended(session, within_s=ENDS_S)
    assert (ended["status"], ended["exitCode"]) == ("exited", 7)
    lines = "".join(item["text"] for item in await strobe.events(session, eventType="stdout"))
    assert lines.splitlines()[0] == "tick 1 odd 0"
    assert len(lines.splitlines()) == 120
    stderr = await strobe.call("debug_query", sessionId=session, eventType="stderr")
    assert "".join(item["text"] for item in stderr["events"]).startswith("total ")

    stopped = await strobe.call("debug_session", action="stop", sessionId=session)
    assert stopped["success"] is True
    assert stopped["eventsCollected"] > 120
    with pytest.raises(ToolError) as gone:
        await strobe.call("debug_query", sessionId=session)
    assert gone.value.code == "SESSION_NOT_FOUND"


async def test_pending_patterns_catch_the_first_call(one: Strobe) -> None:
    waiting = await one.call("debug_trace", add=["main", "tick"])
    assert (waiting["mode"], waiting["activePatterns"], waiting["hookedFunctions"]) == ("pending", ["main", "tick"], 0)
    launched = await one.call("debug_launch", command=str(ticks()), args=["3", "1"], projectRoot=str(TARGETS))
    assert launched["pendingPatternsApplied"] == 2
    session = launched["sessionId"]
    await one.until_ended(session, within_s=ENDS_S)
    calls = await one.events(session, eventType="function_enter", verbose=True)
    assert [call["function"] for call in calls] == ["main", "tick", "tick", "tick"]
    assert [call["parentEventId"] for call in calls[1:]] == [calls[0]["id"]] * 3
    names = [next(item["value"] for item in call["arguments"] if item["name"] == "name") for call in calls[1:]]
    assert names == ["odd", None, "odd"]
    assert (await one.call("debug_trace"))["activePatterns"] == []


async def test_a_crash_is_an_event_with_its_place(one: Strobe) -> None:
    session = await one.launch(ticks(), "2", "1", "crash", root=TARGETS)
    status = await one.until_ended(session, within_s=ENDS_S)
    assert status["status"] == "crashed"
    assert status["signal"] == 11
    crash = (await one.call("debug_query", sessionId=session))["crash"]
    assert (crash["signal"], crash["address"], crash["function"]) == ("SIGSEGV", "0x10", "strike")
    assert crash["sourceFile"].endswith("ticks.c")
    events = await one.events(session)
    assert events[-1]["eventType"] == "crash" or events[-1]["eventType"] in ("stdout", "stderr")
    kinds = [event["eventType"] for event in events]
    assert kinds.count("crash") == 1


async def test_stdin_text_cwd_and_env(one: Strobe, tmp_path: Path) -> None:
    session = await one.launch(ticks(), "0", root=TARGETS, stdin="first\nsecond\n")
    await one.until_ended(session, within_s=ENDS_S)
    text = "".join(event["text"] for event in await one.events(session, eventType="stdout"))
    assert text == "in: first\nin: second\n"
    shell = await one.launch(Path("/bin/sh"), "-c", "pwd; echo $COLOUR; cat", root=TARGETS, cwd=str(tmp_path), env={"COLOUR": "blue"})
    await one.until_ended(shell, within_s=ENDS_S)
    text = "".join(event["text"] for event in await one.events(shell, eventType="stdout"))
    assert text == f"{tmp_path}\nblue\n"


async def test_a_terminal_merges_the_streams(one: Strobe) -> None:
    reply = await one.call(
        "debug_launch", command="/bin/sh", args=["-c", "test -t 0 && test -t 1 && echo out && echo err >&2"], projectRoot=str(TARGETS), pty=True
    )
    assert any("stderr" in text for text in [*reply["capabilities"]["limitations"], *reply.get("warnings", [])])
    status = await one.until_ended(reply["sessionId"], within_s=ENDS_S)
    assert status["exitCode"] == 0
    text = "".join(event["text"] for event in await one.events(reply["sessionId"], eventType="stdout"))
    assert text.replace("\r", "") == "out\nerr\n"


async def test_stop_lets_the_target_run_on_unless_told_to_kill(one: Strobe) -> None:
    for kill in (False, True):
        reply = await one.call("debug_launch", command=str(ticks()), args=["2000", "20"], projectRoot=str(TARGETS))
        await hooked(one, reply["sessionId"], "tick")
        await eventually(one, sessionId=reply["sessionId"], eventType="function_exit")
        stopped = await one.call("debug_session", action="stop", sessionId=reply["sessionId"], kill=kill)
        assert stopped["success"] is True
        alive = Path(f"/proc/{reply['pid']}/stat").exists()
        assert alive is not kill
        if alive:
            assert any("runs on" in text for text in stopped["warnings"])
            os.kill(reply["pid"], 9)


async def test_retained_sessions_stay_until_deleted(one: Strobe) -> None:
    session = await one.launch(ticks(), "2", "1", root=TARGETS)
    await one.until_ended(session, within_s=ENDS_S)
    await one.call("debug_session", action="stop", sessionId=session, retain=True)
    listed = (await one.call("debug_session", action="list"))["sessions"]
    assert [item["sessionId"] for item in listed] == [session]
    assert listed[0]["endedAt"] is not None
    assert (await one.call("debug_query", sessionId=session, eventType="stdout"))["totalCount"] > 0
    assert (await one.call("debug_delete_session", sessionId=session))["success"] is True
    assert (await one.call("debug_list_sessions"))["sessions"] == []


async def test_two_clients_share_the_node_and_not_their_sessions_names(shared_home: Path) -> None:
    """SESSION_EXISTS is a matter of one client; the other one sees all sessions."""
    async with strobe_mcp(shared_home, keep_node=True) as first:
        async with strobe_mcp(shared_home, keep_node=True) as second:
            mine = await first.launch(ticks(), "500", "20", root=TARGETS)
            with pytest.raises(ToolError) as again:
                await first.launch(ticks(), "500", "20", root=TARGETS)
            assert again.value.code == "SESSION_EXISTS"
            theirs = await second.launch(ticks(), "500", "20", root=TARGETS)
            assert theirs != mine
            assert {item["sessionId"] for item in (await second.call("debug_session", action="list"))["sessions"]} == {mine, theirs}
        for session in (mine, theirs):
            await first.call("debug_session", action="stop", sessionId=session, kill=True)
    async with strobe_mcp(shared_home, keep_node=True) as last:
        assert (await last.call("debug_session", action="list"))["sessions"] == []


async def test_pages_follow_each_other_without_gap_or_overlap(one: Strobe) -> None:
    session = await one.launch(ticks(), "12", "1", root=TARGETS, trace=["tick", "weight"])
    await one.until_ended(session, within_s=ENDS_S)
    everything = [event["id"] for event in await one.events(session)]
    assert len(everything) == len(set(everything)) > 60 - 1
    for budget in (700, 4000):
        paged: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            reply = await one.call("debug_query", sessionId=session, limit=100, maxTokens=budget, **cursor)
            assert reply["events"]
            assert reply["totalCount"] == len(everything)
            paged += [event["id"] for event in reply["events"]]
            if not reply["hasMore"]:
                break
            cursor = {"cursor": reply["cursor"]}
        assert paged == everything


async def test_views_tell_the_same_as_the_events(one: Strobe) -> None:
    session = await one.launch(ticks(), "12", "1", root=TARGETS, trace=["main", "tick", "weight"])
    await one.until_ended(session, within_s=ENDS_S)
    enters = await one.events(session, eventType="function_enter")
    tree = (await one.call("debug_query", sessionId=session, view="callTree", maxTokens=20_000))["events"]
    assert [(row["function"], row["depth"]) for row in tree] == [("main", 0), *[("tick", 1), ("weight", 2)] * 12]
    assert [row["id"] for row in tree] == [event["id"] for event in enters]
    exits = {event["parentEventId"]: event["durationNs"] for event in await one.events(session, eventType="function_exit", verbose=True)}
    assert {row["id"]: row["durationNs"] for row in tree} == exits
    hot = {row["function"]: row for row in (await one.call("debug_query", sessionId=session, view="hotspots"))["events"]}
    assert {name: row["calls"] for name, row in hot.items()} == {"main": 1, "tick": 12, "weight": 12}
    assert hot["main"]["totalNs"] == tree[0]["durationNs"]
    assert hot["tick"]["selfNs"] == hot["tick"]["totalNs"] - hot["weight"]["totalNs"]
    summary = await one.call("debug_query", sessionId=session, view="summary")
    by_type = {row["eventType"]: row["count"] for row in summary["events"] if "eventType" in row}
    assert by_type["function_enter"] == by_type["function_exit"] == 25
    assert sum(by_type.values()) == summary["totalCount"] == (await one.call("debug_query", sessionId=session, limit=1))["totalCount"]
    only = await one.call("debug_query", sessionId=session, view="hotspots", function={"matches": "^(tick|weight)$"}, limit=1)
    assert (only["totalCount"], only["hasMore"], only["events"][0]["function"]) == (2, True, "tick")
    rest = await one.call("debug_query", sessionId=session, view="hotspots", function={"matches": "^(tick|weight)$"}, offset=1)
    assert [row["function"] for row in rest["events"]] == ["weight"]
    with pytest.raises(ToolError) as refused:
        await one.call("debug_query", sessionId=session, view="hotspots", eventType="stdout")
    assert refused.value.content["value"] == "eventType"


async def test_polling_misses_nothing_while_the_target_runs(one: Strobe) -> None:
    session = await one.launch(ticks(), "150", "5", root=TARGETS, trace=["tick", "weight"])
    seen: list[str] = []
    after: dict[str, str] = {}
    ended = False
    while True:
        reply = await one.call("debug_query", sessionId=session, limit=500, maxTokens=60_000, **after)
        seen += [event["id"] for event in reply["events"]]
        if reply.get("lastEventId"):
            after = {"afterEventId": reply["lastEventId"]}
        if ended and not reply["events"]:
            break
        ended = (await one.status(session))["status"] == "exited"
    assert len(seen) == len(set(seen))
    assert set(seen) == {event["id"] for event in await one.events(session)}


@pytest.mark.alone
@pytest.mark.full  # a time: it means something on a machine of its own only
async def test_events_are_visible_within_100_ms(one: Strobe) -> None:
    """How old a printed line was when the last query that did not show it began (CLOCK_MONOTONIC, the line is the time it was printed)."""
    script = "import sys,time\nfor _ in range(20):\n    print(time.monotonic_ns(), flush=True)\n    time.sleep(0.1)\n"
    reply = await one.call("debug_launch", command="python3", args=["-c", script], projectRoot=str(TARGETS))
    assert any("PATH" in text for text in reply["warnings"])
    session = reply["sessionId"]
    stale_ms: list[float] = []
    after: dict[str, str] = {}
    previous = 0
    while len(stale_ms) < 20:
        began = time.monotonic_ns()
        answer = await one.call("debug_query", sessionId=session, eventType="stdout", **after)
        for event in answer["events"]:
            stale_ms += [max(0, previous - int(line)) / 1e6 for line in event["text"].split()]
        previous = began
        if answer.get("lastEventId"):
            after = {"afterEventId": answer["lastEventId"]}
    assert sorted(stale_ms)[10] <= 100, stale_ms  # the median: on a machine that runs other tests too, single ones may come late
    assert max(stale_ms) <= 1000, stale_ms
    await one.until_ended(session, within_s=ENDS_S)


async def test_no_reply_is_larger_than_max_tokens(one: Strobe) -> None:
    session = await one.launch(program("output.c"), root=TARGETS)
    await one.until_ended(session, within_s=ENDS_S)
    for budget in (500, 1000, 4000):
        result = await one.client.call_tool("debug_query", {"sessionId": session, "maxTokens": budget, "verbose": True})
        assert not result.is_error
        assert tokens(result) <= budget * 1.05


def tokens(result: Any) -> int:
    """o200k_base tokens of both forms of a reply."""
    import bpe_openai  # 75 MB of tables: only where it is used

    encoding = bpe_openai.get_encoding("o200k_base")
    text = "".join(block.text for block in result.content)
    return len(encoding.encode(text)) + len(encoding.encode(json.dumps(result.structured_content, separators=(",", ":"), ensure_ascii=False)))
