"""The data stream between real processes, each killed with SIGKILL at seeded instants: every batch once, in order."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from strobe.runtime.stream import WINDOW, Batch, Position, StreamConsumer, StreamProducer, SupersededError
from tests.harness.stream_ends import SESSION, open_rows, produce

DEADLINE_S = 60.0


class Ends:
    """Starts, kills and restarts the processes of tests.harness.stream_ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.endpoint = f"ipc://{folder}/data"
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.harness.stream_ends", arguments[0], self.endpoint, str(self.folder), *arguments[1:]]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.children.append(child)
        return child

    def consumer(self) -> subprocess.Popen[bytes]:
        child = self.start("consume")
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        return child

    def stored(self) -> int:
        with sqlite3.connect(self.folder / "rows.db") as database:
            return int(database.execute("select count(*) from rows").fetchone()[0])

    def wait_stored(self, count: int) -> None:
        until = time.monotonic() + DEADLINE_S
        while self.stored() < count:
            assert time.monotonic() < until, f"{self.stored()} of {count} stored"
            time.sleep(0.002)

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.communicate()


@pytest.fixture
def ends() -> Iterator[Ends]:
    with tempfile.TemporaryDirectory(prefix="strobe-stream-") as folder:
        open_rows(Path(folder)).close()
        made = Ends(Path(folder))
        yield made
        made.close()


def assert_each_once(ends: Ends, count: int) -> None:
    with sqlite3.connect(ends.folder / "rows.db") as database:
        numbers = [row[0] for row in database.execute("select number from rows order by rowid")]
    assert numbers == list(range(count))


def kill_at(ends: Ends, marks: list[int]) -> threading.Thread:
    """Kills and restarts the consumer whenever so many rows are stored."""

    def work() -> None:
        consumer = ends.children[-1]
        for mark in marks:
            ends.wait_stored(mark)
            consumer.kill()
            consumer.wait()
            consumer = ends.consumer()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize(("count", "kills"), [(6_000, 4), pytest.param(20_000, 8, marks=pytest.mark.full)])
def test_killed_consumer_stores_each_batch_once(ends: Ends, count: int, kills: int) -> None:
    ends.consumer()
    killer = kill_at(ends, sorted(random.Random(7).sample(range(500, count - 500), kills)))
    producer = produce(ends.endpoint, count, 16_384)
    killer.join()
    assert producer.acked == count
    assert producer.resent > 0, "no kill hit a batch on its way: the test proved nothing"
    producer.close()
    assert_each_once(ends, count)


@pytest.mark.parametrize(("count", "kills"), [(4_000, 3), pytest.param(10_000, 6, marks=pytest.mark.full)])
def test_producer_killed_continues_at_its_resume_mark(ends: Ends, count: int, kills: int) -> None:
    ends.consumer()
    for mark in sorted(random.Random(11).sample(range(500, count - 500), kills)):
        producer = ends.start("produce", str(count), "4096")
        ends.wait_stored(mark)
        producer.kill()
        producer.wait()
    last = ends.start("produce", str(count), "4096")
    assert last.wait(DEADLINE_S) == 0
    assert_each_once(ends, count)


@pytest.mark.parametrize("marks", [(1_000, 1_700), pytest.param((1_000, 2_500, 4_000), marks=pytest.mark.full)])
def test_both_killed_at_once(ends: Ends, marks: tuple[int, ...]) -> None:
    count = marks[-1] + 800
    for mark in marks:
        consumer, producer = ends.consumer(), ends.start("produce", str(count), "4096")
        ends.wait_stored(mark)
        consumer.kill()
        producer.kill()
        consumer.wait()
        producer.wait()
    ends.consumer()
    assert ends.start("produce", str(count), "4096").wait(DEADLINE_S) == 0
    assert_each_once(ends, count)


class Memory:
    """A consumer in this process whose commits the test decides."""

    def __init__(self, endpoint: str) -> None:
        self.at = Position()
        self.consumer = StreamConsumer(endpoint, lambda _session: self.at, structlog.get_logger())

    def commit(self, epoch: int, seq: int, resume: bytes | None = None) -> None:
        self.at = Position(epoch, seq, resume)
        self.consumer.ack(SESSION, epoch, seq, resume)


@pytest.fixture
def memory(ends: Ends) -> Iterator[Memory]:
    made = Memory(ends.endpoint)
    yield made
    made.consumer.close()


@pytest.fixture
def connect(ends: Ends, memory: Memory) -> Iterator[Callable[[], StreamProducer]]:
    """Producers of one session, closed when the test ends."""
    made: list[StreamProducer] = []

    def connect() -> StreamProducer:
        made.append(StreamProducer(ends.endpoint, SESSION))
        return made[-1]

    yield connect
    for producer in made:
        producer.close()


def received(memory: Memory, count: int) -> list[Batch]:
    """The next batches, `count` of them; fewer when no more came within a second."""
    got: list[Batch] = []
    until = time.monotonic() + 1
    while len(got) < count and time.monotonic() < until:
        got += memory.consumer.receive(50, count - len(got))
    return got


def greet(producer: StreamProducer, memory: Memory) -> bool:
    """True when the consumer answered the producer's HELLO within a second."""
    until = time.monotonic() + 1
    while not producer.hello(5):
        memory.consumer.receive(5, 10)
        if time.monotonic() > until:
            return False
    return True


def test_window_is_bounded_and_frames_arrive_as_sent(connect: Callable[[], StreamProducer], memory: Memory) -> None:
    producer = connect()
    assert producer.send("early", {}, []) is None, "nothing may be sent before the position is known"
    assert greet(producer, memory)
    big = bytes(range(256)) * 1024
    sent = [producer.send("k", {"n": n}, [big, b"x"]) for n in range(WINDOW + 3)]
    assert sent == [*range(1, WINDOW + 1), None, None, None]
    got = received(memory, WINDOW)
    assert [batch.header["n"] for batch in got] == list(range(WINDOW))
    assert bytes(got[0].frames[0]) == big and bytes(got[0].frames[1]) == b"x"
    memory.commit(producer.epoch, 40)
    while producer.acked < 40:
        producer.poll(100)
    assert producer.window_free == 40


def test_new_producer_waits_until_its_predecessors_batches_are_committed(connect: Callable[[], StreamProducer], memory: Memory) -> None:
    first = connect()
    assert greet(first, memory)
    first.send("k", {"resume": b"one"}, [b"1"])
    assert [batch.seq for batch in received(memory, 1)] == [1]
    second = connect()
    assert not greet(second, memory), "told a position while a batch of its predecessor was still being committed"
    memory.commit(first.epoch, 1, b"one")
    assert greet(second, memory)
    assert second.position == Position(first.epoch, 1, b"one")
    first.send("k", {}, [b"late"])
    assert received(memory, 1) == []
    with pytest.raises(SupersededError):
        first.flush(2000)


def test_clock_that_went_back_does_not_supersede_the_new_producer(connect: Callable[[], StreamProducer], memory: Memory) -> None:
    memory.at = Position(time.time_ns() + 10**15, 5, b"r")
    producer = connect()
    assert greet(producer, memory)
    assert producer.epoch == memory.at.epoch + 1
    assert producer.send("k", {}, [b"1"]) == 1
    assert [batch.seq for batch in received(memory, 1)] == [1]


def test_second_consumer_cannot_steal_the_endpoint(ends: Ends, connect: Callable[[], StreamProducer], memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.runtime.stream_consumer.BIND_WAIT_S", 0.1)
    with pytest.raises(Exception, match="Another process serves"):
        Memory(ends.endpoint)
    producer = connect()
    assert greet(producer, memory), "the first consumer lost its endpoint"


def test_unreadable_messages_are_dropped(connect: Callable[[], StreamProducer], memory: Memory) -> None:
    producer = connect()
    producer._socket.send_multipart([b"B", b"\xc1nonsense"])
    producer._socket.send_multipart([b"B"])
    assert greet(producer, memory)
