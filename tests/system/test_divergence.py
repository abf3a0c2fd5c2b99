"""debug_query's view divergence: two runs of a real program, which differ in one thing or only in what differs by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program

TRACED = ["turn", "price_of", "log_sum", "keep", "rate", "discount", "worker"]
TURNS = 40
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    async with strobe_mcp(tmp_path_factory.mktemp("divergence") / "home") as connected:
        yield connected


async def run(strobe: Strobe, how: str, turns: int = TURNS, trace: list[str] = TRACED) -> str:
    session = await strobe.launch(program("divergent.c", "-O1"), how, str(turns), root=TARGETS, trace=trace)
    await strobe.until_ended(session)
    await strobe.call("debug_session", action="stop", sessionId=session, retain=True)  # the same program may be started again
    return session


@pytest.fixture(scope="module")
async def same(strobe: Strobe) -> str:
    return await run(strobe, "same")


async def compare(strobe: Strobe, one: str, other: str, **more: Any) -> dict[str, Any]:
    return await strobe.call("debug_query", sessionId=one, view="divergence", against=other, **more)


async def test_runs_that_do_the_same(strobe: Strobe, same: str) -> None:
    """Addresses, ids of processes and of threads do differ."""
    again = await run(strobe, "same")
    reply = await compare(strobe, same, again)
    assert reply["events"] == [] and reply["totalCount"] == 0, reply
    assert reply["comparison"]["verdict"] == "same"
    calls = (await strobe.rows(same, "SELECT count(*) FROM calls"))[0][0]
    assert reply["comparison"]["calls"] == calls and reply["comparison"]["threads"] == 2
    kept = await strobe.rows(same, "SELECT DISTINCT a0, a1 FROM calls WHERE function = 'keep' ORDER BY 1")
    assert kept != await strobe.rows(again, "SELECT DISTINCT a0, a1 FROM calls WHERE function = 'keep' ORDER BY 1")


@pytest.mark.parametrize(
    ("how", "kind", "function", "path", "here", "there"),
    [
        ("arguments", "arguments", "log_sum", "sum", 8, 9),
        ("returns", "returnValue", "rate", "ret", 3, 7),
        ("inside", "arguments", "turn", "first.*.next.*.next.*.label", "odd", "strange"),
    ],
)
async def test_the_value_that_differs(strobe: Strobe, same: str, how: str, kind: str, function: str, path: str, here: Any, there: Any) -> None:
    reply = await compare(strobe, same, await run(strobe, how))
    first = reply["events"][0]
    assert (first["kind"], first["function"]) == (kind, function), reply
    [one] = first["differs"]
    assert one == {"path": path, "here": here, "there": there} or path.startswith("first"), first
    assert (one["here"], one["there"]) == (here, there)
    assert first["sourceFile"].endswith("divergent.c") and first["line"] > 0
    for side in ("here", "there"):
        event = (await strobe.call("debug_query", sessionId=first[side]["sessionId"], eventId=first[side]["id"]))["events"][0]
        assert event["function"] == function and event["threadId"] == first[side]["threadId"]
        assert [one["function"] for one in first[side]["callers"]][-1] == "worker"


async def test_the_call_whose_children_differ(strobe: Strobe, same: str) -> None:
    other = await run(strobe, "children")
    first = (await compare(strobe, same, other))["events"][0]
    assert (first["kind"], first["function"]) == ("children", "turn")
    assert first["here"]["function"] == "log_sum" and first["there"]["function"] == "discount"
    assert first["there"]["arguments"] == [{"name": "total", "type": "int", "value": 8}]
    turned = next(one for one in first["there"]["callers"] if one["function"] == "turn")
    event = (await strobe.call("debug_query", sessionId=other, eventId=turned["id"]))["events"][0]
    assert event["arguments"][0]["value"] == TURNS - 3


async def test_a_crash_ends_one_side(strobe: Strobe, same: str) -> None:
    crashed = await run(strobe, "crash")
    reply = await compare(strobe, crashed, same)
    first = reply["events"][0]
    assert first["kind"] == "ended" and first["function"] == "worker", reply
    assert first["here"]["next"] == "ended" and "SIGSEGV" in first["here"]["crash"]
    assert first["there"]["next"] == "returns"


async def test_filters_narrow_both(strobe: Strobe, same: str) -> None:
    other = await run(strobe, "returns")
    reply = await compare(strobe, same, other, function={"matches": "turn|keep"})
    assert reply["comparison"]["verdict"] == "same" and reply["comparison"]["functions"] == 2
    assert (await compare(strobe, same, other, function={"equals": "rate"}))["events"][0]["function"] == "rate"


async def test_what_is_traced_in_one_only_is_said(strobe: Strobe, same: str) -> None:
    fewer = await run(strobe, "same", trace=["turn", "keep"])
    reply = await compare(strobe, same, fewer)
    assert reply["comparison"]["verdict"] == "same" and reply["comparison"]["functions"] == 2
    assert any("price_of" in note and "left out" in note for note in reply["warnings"])
    other = await run(strobe, "same", trace=["discount"])
    reply = await compare(strobe, fewer, other)
    assert reply["comparison"]["verdict"] == "notComparable"
    assert any("same patterns" in note for note in reply["warnings"])


async def test_bad_input_is_named(strobe: Strobe, same: str) -> None:
    for arguments, word in (
        ({"against": "no-such-session"}, "no-such-session"),
        ({"against": same}, "same as itself"),
        ({}, "against"),
        ({"against": "x", "timeFrom": 3}, "timeFrom"),
        ({"against": "x", "view": "hotspots"}, "against"),
    ):
        with pytest.raises(ToolError, match=word):
            await strobe.call("debug_query", **{"sessionId": same, "view": "divergence", **arguments})


async def test_many_calls_take_seconds_and_little_memory(strobe: Strobe) -> None:
    await strobe.call("debug_trace", budget={"callsPerSecond": 0})
    sessions = []
    for how in ("same", "arguments"):
        await strobe.call("debug_trace", budget={"callsPerSecond": 0})
        sessions.append(await run(strobe, how, 60_000, ["log_sum", "turn", "price_of"]))
    reply = await compare(strobe, *sessions, function={"matches": "log_sum|price_of"})
    first = reply["events"][0] if reply["events"] else {}
    lost = [note for note in reply["warnings"] if "lost" in note]
    assert lost or (first["kind"], first["function"]) == ("arguments", "log_sum"), reply
    assert reply["comparison"]["calls"] > 200_000 or lost


