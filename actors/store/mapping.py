"""What a session file keeps in memory about its rows, from a commit or, when it is opened, from the tables: counts and the trace map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from actors.store.columns import Column
from actors.store.counts import Key, count_pairs
from actors.store.decoder import Decoded
from actors.store.trace_map import LONGEST_KEPT, TraceMap

Ints = NDArray[np.int64]
_COUNTS: Final = """
    SELECT 'enter', hook, thread, count(*) FROM raw_calls {where} GROUP BY ALL UNION ALL
    SELECT 'exit', hook, thread, count(exit_n) FROM raw_calls {where} GROUP BY ALL UNION ALL
    SELECT 'late', hook, thread, count(*) FROM raw_exits {where} GROUP BY ALL"""
EVICTED_COUNTS: Final = _COUNTS.replace("{where}", "WHERE n > {past} AND n <= {cut}")
_ALL_COUNTS: Final = (
    _COUNTS.replace("{where}", "")
    + """ UNION ALL
    SELECT 'output', stream, coalesce(thread, 0), count(*) FROM output GROUP BY ALL UNION ALL
    SELECT 'point:' || type, 0, 0, count(*) FROM points GROUP BY ALL"""
)


def stored_counts(connection: duckdb.DuckDBPyConnection) -> list[tuple[Key, int]]:
    rows = connection.execute(_ALL_COUNTS).fetchall()
    return [((branch, first, second), number) for branch, first, second, number in rows if number]


def added_counts(decoded: Decoded, rows: dict[str, list[dict[str, Any]]]) -> list[tuple[Key, int]]:
    """What a commit adds."""
    added: list[tuple[Key, int]] = []
    if decoded.calls:
        hooks, threads = decoded.calls["hook"].values, decoded.calls["thread"].values
        added += count_pairs("enter", hooks, threads)
        if "exit_n" in decoded.calls:
            closed = decoded.calls["exit_n"].valid
            added += count_pairs("exit", *((hooks, threads) if closed is None else (hooks[closed], threads[closed])))
    if decoded.exits:
        added += count_pairs("late", decoded.exits["hook"].values, decoded.exits["thread"].values)
    added += [(("output", row["stream"], row["thread"] or 0), 1) for row in rows.get("output", [])]
    added += [((f"point:{row['type']}", 0, 0), 1) for row in rows.get("points", [])]
    return added


def load_map(connection: duckdb.DuckDBPyConnection, events_max: int) -> TraceMap:
    made = TraceMap(events_max)
    bits = made.shift
    events = f"""
        SELECT n >> {bits}, count(*), min(ts), max(ts) FROM raw_calls GROUP BY 1 UNION ALL
        SELECT exit_n >> {bits}, count(*), min(exit_ts), max(exit_ts) FROM raw_calls WHERE exit_n IS NOT NULL GROUP BY 1 UNION ALL
        SELECT n >> {bits}, count(*), min(ts), max(ts) FROM raw_exits GROUP BY 1 UNION ALL
        SELECT n >> {bits}, count(*), min(ts), max(ts) FROM output GROUP BY 1 UNION ALL
        SELECT n >> {bits}, count(*), min(ts), max(ts) FROM points GROUP BY 1"""
    rows = f"""
        SELECT n >> {bits}, count(*) + count(exit_n) FROM raw_calls GROUP BY 1 UNION ALL
        SELECT n >> {bits}, count(*) FROM raw_exits GROUP BY 1"""
    held = f"SELECT n >> {bits}, sum(bytes)::BIGINT FROM payloads GROUP BY 1"
    longest = f"""
        SELECT d FROM (SELECT exit_ts - ts AS d FROM raw_calls UNION ALL SELECT ts - enter_ts FROM raw_exits)
        WHERE d IS NOT NULL ORDER BY d DESC LIMIT {LONGEST_KEPT}"""
    run = connection.execute
    made.load(run(events).fetchall(), run(rows).fetchall(), run(held).fetchall(), (row[0] for row in run(longest).fetchall()))
    return made


def map_commit(before: TraceMap, decoded: Decoded, first_n: int, others: Sequence[int]) -> TraceMap:
    """The map with a commit's events: records numbered from `first_n`, then others with these times. `before` stays for its readers."""
    made = before.copy()
    rows: list[tuple[Ints, Ints | None]] = []
    calls, exits = decoded.calls, decoded.exits
    if calls:
        left = calls.get("exit_n")
        held = None if left is None else np.full(left.values.size, 2, dtype=np.int64) if left.valid is None else 1 + left.valid.astype(np.int64)
        rows.append((calls["n"].values, held))
        if left is not None:
            made.add_durations((calls["exit_ts"].values - calls["ts"].values)[_where(left)])
    if exits:
        rows.append((exits["n"].values, None))
        made.add_durations((exits["ts"].values - exits["enter_ts"].values)[_where(exits["enter_ts"])])
    made.add(first_n, np.concatenate([decoded.times, np.array(others, dtype=np.int64)]) if others else decoded.times, rows)
    if decoded.payloads is not None:
        made.add_bytes(decoded.payloads.n, decoded.payloads.sizes)
    for moved, ts in decoded.moved:
        made.moved(moved, ts)
    return made


def _where(column: Column) -> NDArray[np.bool_] | slice:
    return slice(None) if column.valid is None else column.valid
