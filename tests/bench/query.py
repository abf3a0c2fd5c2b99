"""p50 and p99 of debug_query through a real MCP client, on sessions of 200,000, 2 and 10 million events of a program with five functions and four threads."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.bench.figure import Figure, percentile
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.targets import TARGETS, program

SIZES: Final = (200_000, 2_000_000, 10_000_000)
CALLS_PER_ORDER: Final = 5
ORDERS_PER_S: Final = 60_000
SEED: Final = 20_261_121
RECORD_S: Final = 240.0
STORED_S: Final = 30.0

ANY_ORDER: Final = object()  # replaced by a random order's id in each query

Ask = Mapping[str, Any]
SIMPLE: Final[dict[str, Ask]] = {
    "first page": {"limit": 50},
    "function": {"function": {"equals": "price_of"}, "limit": 50},
    "argument": {"argument": {"name": "id", "equals": ANY_ORDER}, "limit": 20},
    "return value": {"function": {"equals": "store_order"}, "returnValue": {"equals": -1}, "limit": 20},
    "output text": {"eventType": "stdout", "limit": 20},
    "last second": {"timeFrom": "-1s", "limit": 50},
}
AGGREGATES: Final[dict[str, Ask]] = {
    "slowest calls": {"function": {"contains": "order"}, "eventType": "function_exit", "orderBy": "duration", "limit": 10},
    "calls by function": {"sql": "SELECT function, count(*) FROM events_v GROUP BY function ORDER BY 2 DESC"},
    "mean duration": {"sql": "SELECT function, avg(duration_ns), max(duration_ns) FROM calls GROUP BY function"},
}


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[Figure]:
    figures: list[Figure] = []
    for size in SIZES[:1] if options.quick else SIZES:
        orders = size // (2 * CALLS_PER_ORDER)
        async with live_node({"events.maxPerSession": 100_000_000}) as strobe:
            session_id = await _record(strobe, orders)
            figures += await _timed(strobe, session_id, orders, size, "simple", SIMPLE, options.times(40, 5), 10)
            figures += await _timed(strobe, session_id, orders, size, "aggregate", AGGREGATES, options.times(15, 3), 100)
    return figures


async def _record(strobe: Strobe, orders: int) -> str:
    path = program("bench_mix.c", "-O2")
    patterns = ["handle_order", "parse_order", "price_of", "discount", "store_order"]
    session_id = await strobe.launch(path, str(orders), str(ORDERS_PER_S), "4", root=TARGETS, trace=patterns)
    await strobe.until_ended(session_id, within_s=RECORD_S)
    wanted, deadline = orders * CALLS_PER_ORDER, time.monotonic() + STORED_S
    while True:
        reply = await strobe.call("debug_query", sessionId=session_id, eventType="function_exit", limit=1)
        if reply["totalCount"] == wanted:
            break
        if time.monotonic() > deadline:
            raise RuntimeError(f"{reply['totalCount']} calls of {wanted} were stored; dropped: {reply.get('eventsDropped')}")
        await asyncio.sleep(0.1)
    return session_id


def _filled(value: Any, order: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, order) for key, item in value.items()}
    return order if value is ANY_ORDER else value


async def _timed(
    strobe: Strobe, session_id: str, orders: int, size: int, kind: str, asks: Mapping[str, Ask], times: int, goal_ms: float
) -> list[Figure]:
    """p50 and p99 over all queries of a kind; each form's own p50 in the note."""
    chance = random.Random(SEED)
    took: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(times):
        for name, ask in asks.items():
            arguments = {key: _filled(value, chance.randrange(orders)) for key, value in ask.items()}
            started = time.perf_counter()
            await strobe.call("debug_query", sessionId=session_id, **arguments)
            took[name].append((time.perf_counter() - started) * 1e3)
    every = [value for values in took.values() for value in values]
    note = ", ".join(f"{name} {percentile(values, 0.5):.1f}" for name, values in took.items())
    return [
        Figure(f"{kind} query, {size:,} events, p50", percentile(every, 0.5), "ms", goal_ms, note=note),
        Figure(f"{kind} query, {size:,} events, p99", percentile(every, 0.99), "ms"),
    ]
