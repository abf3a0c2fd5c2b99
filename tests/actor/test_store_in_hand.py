"""A batch that the store dies of twice by itself is put aside and counted; those that were in hand with it are stored."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from actors.store.catalog import Catalog
from actors.store.files import Files
from actors.store.in_hand import ROW, Row
from strobe import paths
from strobe.runtime.stream import StreamProducer
from tests.actor.test_store import create
from tests.bench.store_records import STARTED_NS

LINES, DEADLY = 20, 8  # the batch's seq
WAIT_S = 60.0


class Store:
    """A store that dies whenever a batch of its only session is in hand, as long as `deaths_left`; and comes back as the supervisor brings it back."""

    def __init__(self, home: Path, seq: int, deaths: int, by: signal.Signals) -> None:
        self._home, self._seq, self._by = home, seq, by
        self.deaths_left = deaths
        self._counted = 0
        self.dead = threading.Event()
        self._over = threading.Event()
        self._process = self._started(fell=False)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _started(self, *, fell: bool) -> subprocess.Popen[bytes]:
        known = {name: value for name, value in os.environ.items() if name != "STROBE_FELL"} | {"STROBE_HOME": str(self._home)}
        command = [sys.executable, "-m", "tests.actor.store_victim"]
        return subprocess.Popen(command, env=known | ({"STROBE_FELL": "1"} if fell else {}), stdout=subprocess.DEVNULL)

    def _watch(self) -> None:
        while self.deaths_left and not self._over.is_set():
            if self._in_hand():
                self._process.send_signal(self._by)
                assert self._process.wait() == -self._by
                self.deaths_left -= 1
                self._counted += self._by is not signal.SIGKILL
                self._process = self._started(fell=self._by is not signal.SIGKILL)
        self.dead.set()

    def _in_hand(self) -> bool:
        with (
            contextlib.suppress(FileNotFoundError, ValueError),
            (self._home / "in-hand").open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory,
        ):
            row = Row(*ROW.unpack_from(memory, 0)[1:])
            return row.first <= self._seq <= row.last and row.deaths == self._counted
        return False

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize(("by", "rejected"), [(signal.SIGSEGV, 1), (signal.SIGKILL, 0)], ids=["of itself", "killed"])
def test_the_second_death_of_a_batch_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals, rejected: int) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    catalog = Catalog(tmp_path / "catalog.duckdb", paths.sessions_folder())
    session_id = catalog.create(create()).session_id
    catalog.close()
    store = Store(tmp_path, DEADLY, 2, by)
    try:
        producer = StreamProducer(paths.data_endpoint(), session_id)
        with contextlib.closing(producer):
            send_lines(producer)
            deadline = time.monotonic() + WAIT_S
            while not store.dead.is_set():
                producer.poll(20)
                assert time.monotonic() < deadline, f"the batch was never in hand for death {3 - store.deaths_left}"
            assert producer.flush(int(WAIT_S * 1000))
    finally:
        store.stop()
    catalog = Catalog(tmp_path / "catalog.duckdb", paths.sessions_folder())
    files = Files(paths.sessions_folder(), catalog)
    with contextlib.closing(catalog), contextlib.closing(files), files.using(session_id) as file:
        lines = [row[0] for row in file.reader().execute("SELECT text FROM output ORDER BY n").fetchall()]
        assert lines == [f"line {number}\n" for number in range(1, LINES + 1) if not (rejected and number == DEADLY)]
        assert file.losses.get("rejected", 0) == rejected
        folder = tmp_path / "rejected"
        assert [one.name for one in folder.iterdir()] == [f"{session_id}-{file.position.epoch}-{DEADLY}.msgpack"] if rejected else not folder.exists()


def send_lines(producer: StreamProducer) -> None:
    deadline = time.monotonic() + WAIT_S
    while not producer.hello(1000):
        assert time.monotonic() < deadline
    for number in range(1, LINES + 1):
        line = f"line {number}\n".encode()
        segment = {"stream": 1, "offset": 0, "bytes": len(line), "tsNs": STARTED_NS + number, "approximate": False, "span": None}
        assert producer.send("output", {"segments": [segment]}, [line]) == number
