"""Typed values through real processes: batches to the store, debug_query by the gateway, names of functions from the indexer."""

from __future__ import annotations

import asyncio
import json
import struct
from pathlib import Path
from typing import Any

from strobe.client import Client
from strobe.protocol.indexer import Resolve
from strobe.render.budget import estimate_tokens
from tests.actor.test_store import Feed, create, feed
from tests.bench.store_records import Lane
from tests.harness.node import node, run
from tests.harness.shim import Dealer, dealer
from tests.harness.store_typed import BODY, HEAP, KEY, hooks, order_bytes, order_entry, region, with_image
from tests.harness.targets import program

BIAS = 0x5600_0000_0000


async def query(wire: Dealer, number: int, **arguments: Any) -> tuple[dict[str, Any], str]:
    """debug_query's structured reply, or its error; and the text."""
    answer = await wire.call(number, "debug_query", **arguments)
    return answer["result"]["structuredContent"], answer["result"]["content"][0]["text"]


async def function_of(client: Client, path: Path) -> tuple[str, int]:
    """A function of the program: its name, and its link-time address."""
    ask = Resolve(patterns=["main"], modules=[str(path)], main_modules=[str(path)], project_root=str(path.parent))
    place = (await client.ask("indexer", ask, deadline_s=30)).places[0]
    return place.function, place.offset


def fill(sender: Feed, path: Path, offset: int) -> None:
    wire = [hook.model_dump(by_alias=True) for hook in hooks()]
    sender.send("hooks", {"hooks": wire, "types": {KEY: BODY}, "modules": {str(path): BIAS}})
    sender.records(Lane().enter(100, 1, 1, order_entry(17, -4.0, 1, next_total=2.5)).exit(200, 1, 1, 7))
    sender.records(Lane().enter(300, 2, 4, struct.pack("<Q", BIAS + offset)).exit(350, 2, 4))
    chain = [region(HEAP + 64 * k, order_bytes(k, float(k), next_=HEAP + 64 * (k + 1))) for k in range(60)]
    sender.records(Lane().enter(400, 3, 1, with_image(struct.pack("<QI", HEAP, 0), *chain)).exit(500, 3, 1, 7))
    sender.flush()


def test_typed_values_from_batch_to_reply(tmp_path: Path) -> None:
    path = program("numbers.c")

    async def story() -> None:
        async with node(tmp_path, roles=("store", "gateway", "indexer")) as client, dealer(tmp_path) as wire:
            await wire.hello()
            await wire.initialize()
            name, offset = await function_of(client, path)
            session_id = (await client.ask("store", create(str(path)))).session_id
            with feed(session_id) as sender:
                await asyncio.to_thread(fill, sender, path, offset)
            reply, text = await query(wire, 2, sessionId=session_id, verbose=True, function={"equals": "place"}, timeTo=250)
            assert reply["events"][0]["arguments"][0]["value"]["next"]["total"] == 2.5
            assert "place(order={id: 17, total: -4.0, items: [1, 2, 3, 4], next: {id: 1017" in text and "mode=Test)  = 7" in text
            reply, text = await query(wire, 3, sessionId=session_id, verbose=True, function={"equals": "each"})
            assert reply["events"][0]["arguments"][0]["value"] == f"{BIAS + offset:#x} <{name}>" and f"<{name}>)" in text
            await values_in_part(wire, session_id)
            reply, _ = await query(wire, 9, sessionId=session_id, argument={"name": "order.totl", "equals": 1})
            assert reply["code"] == "VALIDATION_ERROR" and "total" in reply["nextStep"]
            reply, text = await query(wire, 10, sessionId=session_id, view="callTree", verbose=True)
            assert [row["function"] for row in reply["events"]] == ["place", "each", "place"] and "place(order={id: 17" in text

    run(story())


async def values_in_part(wire: Dealer, session_id: str) -> None:
    """An order with three behind it (the depth of the plan) is more than the least page has room for."""
    least = {"sessionId": session_id, "maxTokens": 500}
    page, text = await query(wire, 4, **least, verbose=True, timeFrom=400, eventType="function_exit")
    assert within(page, text) and len(page["events"]) == 1
    event_id = page["events"][0]["id"]
    value, text = await query(wire, 5, **least, eventId=event_id, path="order.next.next.total")
    assert value["value"] == {"path": "order.next.next.total", "type": "double", "value": 2.0} and not value["hasMore"]
    assert text.startswith("order.next.next.total: double = 2.0")
    whole, text = await query(wire, 6, **least, eventId=event_id, path="order")
    assert within(whole, text) and whole["value"]["value"]["total"] == 0.0
    event, _ = await query(wire, 7, sessionId=session_id, eventId=event_id)
    assert event["events"][0]["returnValue"] == 7
    wrong, _ = await query(wire, 8, sessionId=session_id, eventId=event_id, pid=3)
    assert wrong["code"] == "VALIDATION_ERROR" and "pid" in wrong["what"]


def within(reply: dict[str, Any], text: str) -> bool:
    return estimate_tokens(json.dumps(reply, separators=(",", ":"))) + estimate_tokens(text) <= 500
