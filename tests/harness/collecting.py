"""A collector with all that is around it: keeper, pool, stream; and what came out at its end."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.session.collector import Collector
from actors.session.crash import Crash
from strobe.lanes.layout import ChunkState, Kind
from strobe.lanes.pool import Pool, create_pool
from strobe.lanes.reader import entries, heads_of
from strobe.launch.keeper import Keeper
from tests.harness.launching import WAIT_S, Launcher, eventually, launcher, output_of
from tests.harness.sink import Sink, frames_of
from tests.harness.targets import program


@dataclass
class Bench:
    """One session's worth of parts."""

    keepers: Launcher
    sink: Sink
    pool: Pool
    collectors: list[Collector] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def write(self, *arguments: object, **options: Any) -> Keeper:
        writer = str(program("lane_writer.c", "-O2"))
        keeper = self.keepers.start(writer, str(self.pool.path), *map(str, arguments), stop=True, **options)
        status = keeper.status()
        self.pool.set_streams(status.stream_dev, status.stream_ino)
        return keeper

    def collect(self, keeper: Keeper) -> Collector:
        collector = Collector(
            session_id="s", pool=self.pool, keeper=keeper, endpoint=self.sink.endpoint, on_crash=self.crashes.append, on_failure=self.failures.append
        )
        self.collectors.append(collector)
        collector.start()
        return collector

    def said(self, keeper: Keeper) -> dict[str, int]:
        """What the writer says it did."""
        words = re.findall(rb"(\w+) (\d+)", output_of(keeper)[1])
        return {name.decode(): int(number) for name, number in words}


@contextmanager
def benched(tmp_path: Path) -> Iterator[Bench]:
    pool = create_pool(Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}", 16)
    with launcher(tmp_path / "keepers") as keepers:
        sink = Sink(tmp_path / "run")
        made = Bench(keepers, sink, pool)
        try:
            yield made
        finally:
            for collector in made.collectors:
                collector.close()
            pool.unlink()
            sink.close()
        assert not made.failures


def ended(keeper: Keeper) -> None:
    keeper.wait(lambda status: status.ended, WAIT_S)


def all_free(pool: Pool) -> bool:
    return bool((pool.chunks["state"] == ChunkState.FREE).all()) and int(pool.header["chunks_free"]) == pool.chunk_count


def entries_of(batch: Any) -> Any:
    slot_map, slots = frames_of(batch)
    found = entries(slots, heads_of(slot_map))
    return found[found["kind"] != Kind.PAD]


def pass_time(seconds: float) -> None:
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until, "a moment")


def hooks_known(count: int) -> Any:
    from actors.session.collector.requests import Submission

    return Submission("hooks", {"hooks": [{"id": count}]})


def call_times(bench: Bench) -> dict[int, int]:
    """Number of a call's record → its time in ns."""
    times: dict[int, int] = {}
    for batch in bench.sink.committed.of("records"):
        rows, clock = entries_of(batch), batch.header["clock"]
        for kind, word, ts in zip(rows["kind"].tolist(), rows["word"].tolist(), rows["ts"].tolist(), strict=True):
            if kind <= Kind.EXIT:
                times[word] = ts if clock is None else clock[1] + round((ts - clock[0]) * (clock[3] - clock[1]) / (clock[2] - clock[0]))
    return times
