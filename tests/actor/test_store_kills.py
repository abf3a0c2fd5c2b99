"""kill -9 of the store at any instant: nothing that was acknowledged is lost, nothing is stored twice."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from actors.store.catalog import Catalog
from actors.store.files import Files
from actors.store.query.run import run_query
from strobe import paths
from strobe.model.query import Query
from strobe.runtime.stream import StreamProducer
from tests.actor.test_store import create
from tests.bench.store_records import STARTED_NS, Traffic, two_functions

KILLS = 7
KILLS_OFTEN = 22
CALLS = 1000


class Sender(threading.Thread):
    """Sends calls and numbered lines as fast as they are taken, until told to stop; then until all is acknowledged."""

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.session_id = session_id
        self.enough = threading.Event()
        self.calls = self.lines = self.resent = self.acked = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.error = error

    def _run(self) -> None:
        producer = StreamProducer(paths.data_endpoint(), self.session_id)
        try:
            deadline = time.monotonic() + 300
            while not producer.hello(1000):
                assert time.monotonic() < deadline
            self._send(producer, "hooks", {"hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]}, [])
            traffic = [Traffic(2)]
            while not self.enough.is_set():
                header, frames = traffic[0].batch(CALLS)
                self._send(producer, "records", header, frames)
                self.calls += 2 * CALLS
                line = f"line {self.lines}\n".encode()
                segment = {"stream": 1, "offset": 0, "bytes": len(line), "tsNs": STARTED_NS + self.lines, "approximate": False, "span": None}
                self._send(producer, "output", {"segments": [segment]}, [line])
                self.lines += 1
            assert producer.flush(120_000)
        finally:
            self.resent = producer.resent
            producer.close()

    def _send(self, producer: StreamProducer, kind: str, header: dict[str, object], frames: list[bytes]) -> None:
        deadline = time.monotonic() + 120
        while producer.send(kind, header, frames) is None:
            self.acked = producer.poll(50)
            assert time.monotonic() < deadline


def victim(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.actor.store_victim"], env={**os.environ, "STROBE_HOME": str(home)}, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("kills", [KILLS, pytest.param(KILLS_OFTEN, marks=pytest.mark.full)])
def test_kill_9_at_any_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    choose = random.Random(kills)
    catalog = Catalog(tmp_path / "catalog.duckdb", paths.sessions_folder())
    session_id = catalog.create(create(events_max=100_000_000)).session_id
    catalog.close()
    sender = Sender(session_id)
    sender.start()
    process = victim(tmp_path)
    try:
        for _ in range(kills):
            # An instant of its work, not of its start: some milliseconds after it has acknowledged something new.
            before, deadline = sender.acked, time.monotonic() + 60
            while sender.acked == before and sender.error is None:
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.001)
            time.sleep(choose.random() * 0.12)
            process.kill()
            process.wait()
            process = victim(tmp_path)
        sender.enough.set()
        sender.join(200)
        assert not sender.is_alive()
    finally:
        sender.enough.set()
        process.kill()
        process.wait()
    if sender.error is not None:
        raise sender.error
    assert sender.resent > 0
    check(tmp_path, session_id, sender)


def check(home: Path, session_id: str, sender: Sender) -> None:
    catalog = Catalog(home / "catalog.duckdb", home / "sessions")
    files = Files(home / "sessions", catalog)
    with contextlib.closing(files), files.using(session_id) as file:
        run = file.reader()
        assert run.execute("SELECT count(*), count(DISTINCT n), count(DISTINCT ts) > 0 FROM raw_calls").fetchall() == [(sender.calls, sender.calls, True)]
        unpaired = "SELECT count(*) FROM raw_calls WHERE exit_n IS NULL AND n NOT IN (SELECT call FROM raw_exits)"
        assert run.execute(unpaired).fetchall() == [(0,)]
        lines = [row[0] for row in run.execute("SELECT text FROM output ORDER BY n").fetchall()]
        assert lines == [f"line {number}\n" for number in range(sender.lines)]
        assert run_query(session_id, file, Query(limit=1), run).total_count == 2 * sender.calls + sender.lines
    catalog.close()
