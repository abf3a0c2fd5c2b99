"""Time of a query at 200 thousand, 2 and 10 million events: p50 and p99 of each kind.

    python -m tests.bench.store_query [--events 200000 2000000 10000000] [--repeat 20] [--cold]

The session has two functions on four threads, and a line of output for each 2000 events. Every query runs on the store's own code path
below the message bus, one run before. So a page is one that was read before, as is a look at the next 50 events or another filter there;
`--cold` forgets the rows in memory each time, and measures the first look.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import structlog

from actors.store.blocks import BlockCache
from actors.store.query.run import run_query
from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from strobe.model.query import ArgumentFilter, Query, TextFilter
from tests.bench.store_records import STARTED_NS, Traffic, record, two_functions

THREADS = 4


def build(path: Path, events: int) -> SessionFile:
    file = SessionFile(path, record(detail={"eventsMax": 100_000_000}))
    writer = SessionWriter(file, structlog.get_logger())
    traffic, seq, sent = Traffic(THREADS), 1, 0
    writer.accept({"epoch": 1, "seq": 1, "kind": "hooks", "hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]}, [])
    while sent < events:
        header, frames = traffic.batch(1000)
        seq += 2
        assert writer.accept({**header, "epoch": 1, "seq": seq - 1}, frames)
        sent += 2000 * THREADS
        segments = [{"stream": 1, "offset": 0, "bytes": 6, "tsNs": STARTED_NS + sent * 60 + k, "approximate": False, "span": None} for k in range(4)]
        assert writer.accept({"epoch": 1, "seq": seq, "kind": "output", "segments": segments}, [b"hello\n" * 4])
        if writer.pending_rows >= 100_000:
            writer.commit()
    writer.commit()
    file.checkpoint()
    return file


def queries(file: SessionFile, session_id: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Query | str]:
    newest = file.counts.snapshot().newest_ns
    middle = newest // 2
    page = run_query(session_id, file, Query(time_from=middle, limit=50), connection)
    return {
        "first page": Query(),
        "first page, verbose": Query(verbose=True),
        "function": Query(function=TextFilter(equals="inner")),
        "type stdout": Query(event_type="stdout"),
        "the last second": Query(time_from="-1s"),
        "a window of 1 ms": Query(time_from=middle, time_to=middle + 1_000_000),
        "next page by cursor": Query(time_from=middle, limit=50, cursor=page.cursor),
        "poll after the last": Query(after_event_id=f"{session_id}-{file.counts.snapshot().last_n}"),
        "children of one call": Query(parent_event_id=page.events[0]["id"]),
        "thread": Query(thread_id=78, order_by="thread"),
        "argument equals": Query(argument=ArgumentFilter(name="count", equals=4711)),
        "min duration": Query(min_duration_ns=3_000),
        "longest": Query(order_by="duration"),
        "hotspots": Query(view="hotspots"),
        "summary": Query(view="summary"),
        "sql: per function": "SELECT function, count(*), avg(duration_ns), max(duration_ns) FROM calls GROUP BY function",
        "sql: by ms": "SELECT ts // 1000000, count(*) FROM calls GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
    }


def measure(work: Callable[[], Any], repeat: int, clock: Callable[[], float]) -> tuple[float, float]:
    work()
    times = []
    for _ in range(repeat):
        started = clock()
        work()
        times.append((clock() - started) * 1e3)
    times.sort()
    return times[len(times) // 2], times[-1 - len(times) // 100]


def answer(file: SessionFile, session_id: str, connection: duckdb.DuckDBPyConnection, query: Query | str, cold: bool) -> Any:
    if cold:
        file.blocks = BlockCache()
    return connection.execute(query).fetchall() if isinstance(query, str) else run_query(session_id, file, query, connection)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, nargs="+", default=[200_000, 2_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--cold", action="store_true", help="each query is the first that reads its rows")
    parser.add_argument("--cpu", action="store_true", help="cpu time instead of wall time, for a busy machine")
    options = parser.parse_args()
    clock = time.thread_time if options.cpu else time.perf_counter
    for events in options.events:
        with tempfile.TemporaryDirectory() as folder:
            file = build(Path(folder) / "bench.duckdb", events)
            session_id, connection = file.record.session_id, file.reader()
            print(f"{events:,} events, {file.bytes_on_disk() / 1e6:.0f} MB")
            for name, query in queries(file, session_id, connection).items():
                if options.only and options.only not in name:
                    continue
                p50, p99 = measure(partial(answer, file, session_id, connection, query, options.cold), options.repeat, clock)
                print(f"  {name:24} p50 {p50:8.1f} ms   p99 {p99:8.1f} ms")
            connection.close()
            file.close()


if __name__ == "__main__":
    main()
