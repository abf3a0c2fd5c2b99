"""Values of calls through `strobe mcp`: typed arguments and results, depth, watches, exceptions, filters, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
LEVELS = [pytest.param("-O0", id="O0"), pytest.param("-O2", id="O2")]


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("values") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def strobe(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)
        waiting = await connected.call("debug_trace")
        await connected.call("debug_trace", remove=waiting["activePatterns"], watches={"remove": [watch["label"] for watch in waiting["activeWatches"]]})


async def ended(strobe: Strobe, level: str, *patterns: str, rounds: int = 3, **trace: Any) -> str:
    """A session of shop.cpp that has run to its end."""
    if trace:
        await strobe.call("debug_trace", **trace)
    session = await strobe.launch(program("shop.cpp", level), str(rounds), root=TARGETS, trace=list(patterns))
    status = await strobe.until_ended(session)
    assert status["status"] == "exited" and status["exitCode"] == 0
    return session


async def calls(strobe: Strobe, session: str, function: str, kind: str = "function_enter", **filters: Any) -> list[dict[str, Any]]:
    return await strobe.events(session, function={"equals": function}, eventType=kind, verbose=True, **filters)


def arguments(event: dict[str, Any]) -> dict[str, Any]:
    return {item["name"]: item["value"] for item in event["arguments"]}


def without_addresses(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_addresses(item) for key, item in value.items() if key != "@"}
    return [without_addresses(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("level", LEVELS)
async def test_arguments_and_results_are_shown_whole(strobe: Strobe, level: str) -> None:
    session = await ended(strobe, level, "shop::**")
    entered = await calls(strobe, session, "shop::place")
    assert len(entered) == 3
    for number, event in enumerate(entered):
        order = arguments(event)["order"]
        assert order["@"].startswith("0x")
        items = [{"id": i, "price": i + 0.5} for i in range(number % 3 + 1)]
        later = {"id": number + 100, "name": "later", "items": [], "total": 0, "mode": "Test", "next": None}
        assert without_addresses(order) == {"id": number, "name": f"order {number}", "items": items, "total": 0, "mode": "Live", "next": later}
        assert arguments(event)["paid"] is (number % 2 == 0)
    left = await calls(strobe, session, "shop::place", "function_exit")
    sums = [sum(2 * (i + 0.5) for i in range(number % 3 + 1)) for number in range(3)]
    assert [event["returnValue"] for event in left] == [
        {"order": number, "paid": sums[number] if number % 2 == 0 else 0, "note": f"thanks, order {number}", "copies": [1, 2, number]} for number in range(3)
    ]
    moved = await calls(strobe, session, "shop::moved", "function_exit")
    assert [arguments(event)["from"] for event in moved] == [{"x": number, "y": 5} for number in range(3)]
    assert [event["returnValue"] for event in moved] == [{"x": number + 2, "y": 3} for number in range(3)]
    priced = await calls(strobe, session, "shop::price")
    assert arguments(priced[0])["item"] == {"id": 0, "price": 0.5}
    shape = arguments((await calls(strobe, session, "shop::area"))[0])["shape"]
    assert without_addresses(shape) == {"class": "shop::Square", "corners": 4, "side": 1.5}


async def test_depth(strobe: Strobe) -> None:
    session = await ended(strobe, "-O0", "shop::place", rounds=1, serializationDepth=1)
    order = arguments((await calls(strobe, session, "shop::place"))[0])["order"]
    assert order["name"] == "order 0" and order["next"].startswith("<shop::Order at 0x")


@pytest.mark.parametrize("level", LEVELS)
async def test_what_an_exception_left_with(strobe: Strobe, level: str) -> None:
    session = await ended(strobe, level, "shop::refund")
    left = await calls(strobe, session, "shop::refund", "function_exit")
    assert [event.get("unwound", False) for event in left] == [False, True, False]
    assert left[1]["exception"] == {"type": "std::runtime_error", "message": "odd order 1"}
    assert "returnValue" not in left[1] and [event["returnValue"] for event in (left[0], left[2])] == [0, 2]
    order = arguments(left[1])["order"]
    assert order["id"] == 1 and order["next"]["id"] == 101


async def test_watches(strobe: Strobe) -> None:
    watches = {
        "add": [
            {"variable": "shop::counter"},
            {"expr": "shop::gTill->coins", "label": "coins"},
            {"expr": "shop::till.last->items[0].price", "label": "price", "on": ["shop::moved"]},
            {"expr": "order->next->name", "label": "later"},
            {"expr": "shop::table[2]", "label": "two"},
        ]
    }
    session = await ended(strobe, "-O0", "shop::place", "shop::moved", watches=watches)
    placed = await calls(strobe, session, "shop::place")
    assert [event["watchValues"]["shop::counter"] for event in placed] == [0, 1, 2]
    assert [event["watchValues"]["two"] for event in placed] == [0, 1, 2]
    assert [event["watchValues"]["coins"] for event in placed] == [{"dime": 3, "penny": 12, "round": number} for number in range(3)]
    assert [event["watchValues"]["later"] for event in placed] == ["later"] * 3
    assert all("price" not in event["watchValues"] for event in placed)
    left = await calls(strobe, session, "shop::place", "function_exit")
    assert [event["watchValues"]["shop::counter"] for event in left] == [1, 2, 3]
    moved = await calls(strobe, session, "shop::moved")
    assert [event["watchValues"]["price"] for event in moved] == [0.5] * 3


async def test_watches_of_a_running_program(strobe: Strobe) -> None:
    session = await strobe.launch(program("shop.cpp", "-O0"), "100000", "5", root=TARGETS, trace=["shop::place"])
    reply = await strobe.call("debug_trace", sessionId=session, watches={"add": [{"expr": "shop::gTill->opened", "label": "opened"}]})
    (active,) = reply["activeWatches"]
    assert active["typeName"] == "long int" and active["size"] == 8 and active["functions"] == 1 and active["address"].startswith("0x")
    mark = await newest(strobe, session)
    await until(strobe, session, lambda event: event.get("watchValues") == {"opened": 7}, afterEventId=mark)
    with pytest.raises(ToolError) as caught:
        await strobe.call("debug_trace", sessionId=session, watches={"add": [{"expr": "shop::gTil->opened"}]})
    assert caught.value.code == "WATCH_FAILED" and "shop::gTill" in str(caught.value.content)
    with pytest.raises(ToolError) as caught:
        await strobe.call("debug_trace", sessionId=session, watches={"add": [{"expr": "shop::gTill->nosuch"}]})
    assert caught.value.code == "WATCH_FAILED" and "nosuch" in str(caught.value.content)
    reply = await strobe.call("debug_trace", sessionId=session, watches={"remove": ["opened"]})
    assert reply["activeWatches"] == []
    mark = await newest(strobe, session)
    await until(strobe, session, lambda event: not event.get("watchValues"), afterEventId=mark)


async def test_depth_of_a_running_program(strobe: Strobe) -> None:
    session = await strobe.launch(program("shop.cpp", "-O0"), "100000", "5", root=TARGETS, trace=["shop::place"])
    await until(strobe, session, lambda event: isinstance(arguments(event)["order"]["next"], dict))
    reply = await strobe.call("debug_trace", sessionId=session, serializationDepth=1)
    assert reply["typedFunctions"] == reply["hookedFunctions"] == 1
    mark = await newest(strobe, session)
    await until(strobe, session, lambda event: str(arguments(event)["order"]["next"]).startswith("<shop::Order at"), afterEventId=mark)


async def newest(strobe: Strobe, session: str) -> str:
    """The id of an event that is there already."""
    async with asyncio.timeout(20):
        while not (reply := await strobe.call("debug_query", sessionId=session, orderBy="duration", limit=1))["events"]:
            await asyncio.sleep(0.02)
    found: str = (await strobe.call("debug_query", sessionId=session, timeFrom="-1ms", limit=500))["lastEventId"] or reply["lastEventId"]
    return found


async def until(strobe: Strobe, session: str, check: Any, **query: Any) -> None:
    async with asyncio.timeout(20):
        while True:
            reply = await strobe.call("debug_query", sessionId=session, eventType="function_enter", verbose=True, limit=5, **query)
            if reply["events"] and check(reply["events"][-1]):
                return
            if reply["events"]:
                query["afterEventId"] = reply["lastEventId"]


async def test_filters_look_into_values(strobe: Strobe) -> None:
    session = await ended(strobe, "-O0", "shop::place", rounds=6)
    found = await calls(strobe, session, "shop::place", argument={"name": "order.id", "gte": 4})
    assert [arguments(event)["order"]["id"] for event in found] == [4, 5]
    found = await calls(strobe, session, "shop::place", argument={"name": "order.name", "contains": "der 3"})
    assert [arguments(event)["order"]["id"] for event in found] == [3]


async def test_secrets_are_not_shown(strobe: Strobe) -> None:
    session = await ended(strobe, "-O0", "shop::refund", rounds=1)
    reply = await strobe.call("debug_query", sessionId=session, function={"equals": "shop::refund"}, eventType="function_enter", verbose=True)
    assert arguments(reply["events"][0])["password"] == "<redacted>"
    assert "redacted" in " ".join(reply["warnings"])
    assert "hunter2" not in str(reply)
