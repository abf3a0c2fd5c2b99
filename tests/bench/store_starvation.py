"""What heavy SQL does to ingestion: events per second committed alone, and while two heavy queries run without pause.

    python -m tests.bench.store_starvation [--seconds 5]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import structlog

from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from tests.bench.store_records import Traffic, record, two_functions

HEAVY = "SELECT count(*) FROM raw_calls a JOIN raw_calls b ON a.a1 = b.a1"


def ingest(writer: SessionWriter, batches: list[tuple[dict[str, object], list[bytes]]], seconds: float, seq: int) -> tuple[float, float, int]:
    """(events per second, longest commit in ms, last seq)."""
    started, events, longest = time.perf_counter(), 0, 0.0
    while time.perf_counter() - started < seconds:
        header, frames = batches[seq % len(batches)]
        seq += 1
        assert writer.accept({**header, "epoch": 1, "seq": seq}, frames)
        if writer.pending_rows >= 100_000:
            events += writer.pending_rows
            before = time.perf_counter()
            writer.commit()
            longest = max(longest, time.perf_counter() - before)
    return events / (time.perf_counter() - started), longest * 1e3, seq


def heavy(file: SessionFile, stop: threading.Event) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)  # as the store's SQL threads
    connection = file.reader()
    while not stop.is_set():
        try:
            connection.execute(HEAVY).fetchall()
        except duckdb.InterruptException:
            break
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    traffic = Traffic()
    batches = [traffic.batch(4096) for _ in range(40)]
    with tempfile.TemporaryDirectory() as folder:
        file = SessionFile(Path(folder) / "bench.duckdb", record(detail={"eventsMax": 100_000_000}))
        writer = SessionWriter(file, structlog.get_logger())
        writer.accept({"epoch": 1, "seq": 1, "kind": "hooks", "hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]}, [])
        writer.commit()
        rate, longest, seq = ingest(writer, batches, options.seconds, 1)
        print(f"alone:               {rate / 1e6:.2f} M events/s, longest commit {longest:.0f} ms")
        stop = threading.Event()
        threads = [threading.Thread(target=heavy, args=(file, stop), daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        rate, longest, _ = ingest(writer, batches, options.seconds, seq)
        print(f"with 2 heavy queries: {rate / 1e6:.2f} M events/s, longest commit {longest:.0f} ms")
        stop.set()
    os._exit(0)  # the heavy queries need not end


if __name__ == "__main__":
    main()
