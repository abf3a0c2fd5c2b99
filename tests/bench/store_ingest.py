"""Events per second from batch to committed row on one core, and bytes per stored event.

    python -m tests.bench.store_ingest [--events 10000000] [--threads 1] [--events-max 100000000]

Two functions, two int arguments and an int result each. Batches are made beforehand and used over and over with new headers; what is
timed is decode + commit, one after the other in one thread; the store's ingest decodes one commit while another is written.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import structlog

from actors.store.session_file import SessionFile
from actors.store.writer import SessionWriter
from tests.bench.store_records import Traffic, record, two_functions


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--commit-events", type=int, default=100_000)
    parser.add_argument("--events-max", type=int, default=100_000_000, help="what the session may hold; below --events, eviction is measured too")
    options = parser.parse_args()
    calls = 4096 // options.threads // 2 * 2
    per_batch = calls * 2 * options.threads
    traffic = Traffic(options.threads)
    batches = [traffic.batch(calls) for _ in range(options.events // per_batch)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.duckdb"
        facts = record(detail={"eventsMax": options.events_max})
        file = SessionFile(path, facts)
        writer = SessionWriter(file, structlog.get_logger())
        writer.accept({"epoch": 1, "seq": 1, "kind": "hooks", "hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]}, [])
        writer.commit()
        times: list[float] = []
        decoding = storing = 0.0
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for number, (header, frames) in enumerate(batches):
            assert writer.accept({**header, "epoch": 1, "seq": number + 2}, frames)
            if writer.pending_rows >= options.commit_events:
                start = time.perf_counter()
                writer.prepare()
                decoded = time.perf_counter()
                writer.store()
                writer.stored()
                stored = time.perf_counter()
                times.append(stored - start)
                decoding += decoded - start
                storing += stored - decoded
        writer.commit()
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        kept = file.counts.trace_events()
        times.sort()
        sent = len(batches) * per_batch
        print(f"{sent:,} events, {options.threads} threads: {sent / wall / 1e6:.2f} M events/s wall, {sent / cpu / 1e6:.2f} M events/s of cpu")
        print(f"decoding {decoding / sent * 1e9:.0f} ns and storing {storing / sent * 1e9:.0f} ns an event")
        print(f"commit p50 {times[len(times) // 2] * 1e3:.0f} ms, max {times[-1] * 1e3:.0f} ms")
        file.checkpoint()
        print(f"{path.stat().st_size / kept:.1f} bytes per event")
        file.close()


if __name__ == "__main__":
    main()
