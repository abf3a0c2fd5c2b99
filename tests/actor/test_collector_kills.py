"""Collectors and stores that die at any instant, and their successors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.session.collector import Collector
from strobe.errors import Code, StrobeError
from strobe.lanes.pool import open_pool
from strobe.launch.keeper import Keeper, adopt_keeper
from tests.harness.collecting import Bench, all_free, ended, hooks_known, pass_time
from tests.harness.launching import eventually, output_of


def test_the_store_may_die_at_any_time(bench: Bench) -> None:
    keeper = bench.write("run", 2, 600_000, 300_000, 1)
    collector = bench.collect(keeper)
    keeper.continue_target()
    moments = np.random.default_rng(7).uniform(0.02, 0.25, 8)
    for moment in moments:
        pass_time(moment)
        bench.sink.cut()
        bench.sink.open()
    ended(keeper)
    collector.finish()
    for hook in (1, 2):
        assert np.array_equal(bench.sink.committed.words(hook), np.arange(600_000))
    assert not bench.sink.committed.losses() and all_free(bench.pool)


FACTORY = """
import os, signal, sys, threading
from pathlib import Path
from actors.session.collector import Collector
from strobe.lanes.pool import open_pool
from strobe.launch.keeper import adopt_keeper
folder, pool, endpoint = sys.argv[1:]
for _ in sys.stdin:
    child = os.fork()
    if not child:
        Collector(
            session_id="s", pool=open_pool(Path(pool)), keeper=adopt_keeper(Path(folder)), endpoint=endpoint,
            on_crash=print, on_failure=lambda error: (print(repr(error), flush=True), os._exit(1)),
        ).start()
        signal.pause()
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class CollectorProcesses:
    """Collectors in processes of their own, forked from one that has imported everything: a start costs milliseconds."""

    def __init__(self, bench: Bench, keeper: Keeper) -> None:
        arguments = [sys.executable, "-c", FACTORY, str(keeper.directory), str(bench.pool.path), bench.sink.endpoint]
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)

    def run_and_kill(self, moment: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        child = self._process.stdout.readline()
        assert child.strip().isdigit(), child + self._process.stdout.read()
        pass_time(moment)
        meanwhile()
        os.kill(int(child), signal.SIGKILL)
        status = self._process.stdout.readline()
        assert status == f"{int(signal.SIGKILL)}\n", status

    def close(self) -> None:
        self._process.communicate(timeout=20)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_the_collector_may_be_killed_at_any_time(bench: Bench, seed: int) -> None:
    """kill -9 at seeded instants while records and drops go on: each record, byte and loss once."""
    keeper = bench.write("run", 2, 500_000, 150_000, 0)
    processes = CollectorProcesses(bench, keeper)
    random = np.random.default_rng(seed)

    def cut_the_store() -> None:
        if random.random() < 0.3:
            bench.sink.cut()
            bench.sink.open()

    processes.run_and_kill(0.1)
    keeper.continue_target()
    for moment in random.uniform(0.005, 0.3, 15):
        processes.run_and_kill(moment, cut_the_store)
    processes.close()
    collector = bench.collect(keeper)
    collector._submissions.append(hooks_known(2))
    ended(keeper)
    collector.finish()
    done, told = bench.sink.committed, bench.said(keeper)
    lost = sum(done.losses().values())
    assert lost == told["dropped"]
    for hook in (1, 2):
        words = done.words(hook).astype(np.int64)
        assert (np.diff(words) > 0).all()
        assert len(words) + done.losses()["lanesFull", hook] == 500_000
    assert done.output(2) == output_of(keeper)[1]
    assert all_free(bench.pool)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_lines_survive_killed_collectors_byte_for_byte(bench: Bench, seed: int) -> None:
    keeper = bench.write("lines", 200_000, 0)
    processes = CollectorProcesses(bench, keeper)
    processes.run_and_kill(0.1)
    keeper.continue_target()
    for moment in np.random.default_rng(seed).uniform(0.005, 0.2, 12):
        processes.run_and_kill(moment)
    processes.close()
    collector = bench.collect(keeper)
    ended(keeper)
    collector.finish()
    done = bench.sink.committed
    assert done.output() == b"".join(b"line %d\n" % i for i in range(200_000))
    for segment in done.segments():
        if segment["stream"] == 1 and not segment["approximate"]:
            assert segment["span"] & 0xFFFFFFFFFF == int(segment["data"].split()[1]) + 1


def test_a_successor_frees_what_a_predecessor_had_committed(bench: Bench) -> None:
    keeper = bench.write("run", 1, 200_000, 0, 1)
    first = bench.collect(keeper)
    keeper.continue_target()
    ended(keeper)
    first.flush(10)
    first.close()
    again = Collector(
        session_id="s", pool=open_pool(bench.pool.path), keeper=adopt_keeper(keeper.directory), endpoint=bench.sink.endpoint, on_crash=print, on_failure=print
    )
    bench.collectors.append(again)
    again.start()
    again.finish()
    assert np.array_equal(bench.sink.committed.words(1), np.arange(200_000)) and all_free(bench.pool)


def test_a_collector_whose_stream_fails_says_so(bench: Bench) -> None:
    def broken() -> Any:
        raise_ = StrobeError(Code.ACTOR_UNAVAILABLE, "no stream", "wait")

        class Stream:
            window_free, acked, resume = 1, 0, b"\x81\xa1v\x63"

            def hello(self, timeout_ms: int) -> bool:
                del timeout_ms
                raise raise_

            def close(self) -> None:
                return None

        return Stream()

    heard: list[BaseException] = []
    keeper = bench.keepers.start("/bin/true")
    collector = Collector(session_id="s", pool=bench.pool, keeper=keeper, endpoint="", on_crash=print, on_failure=heard.append, open_stream=broken)
    collector.start()
    eventually(lambda: bool(heard), "failure told")
    with pytest.raises(StrobeError) as raised:
        collector.flush(1)
    assert raised.value.code is Code.ACTOR_UNAVAILABLE and "no stream" in raised.value.what
