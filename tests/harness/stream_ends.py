"""Both ends of a data stream as processes that tests kill: `python -m tests.harness.stream_ends consume|produce ENDPOINT FOLDER …`.

The consumer commits (number, bytes) rows and the position in one SQLite transaction. The producer sends the numbers 0 … count-1, one
a batch, continuing at the resume mark the consumer gives it.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from pathlib import Path

from strobe.runtime.log import open_log
from strobe.runtime.stream import Position, StreamConsumer, StreamProducer

SESSION = "stream-test"


def open_rows(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / "rows.db", isolation_level=None)
    database.executescript(
        "pragma journal_mode=wal; pragma synchronous=off;"
        "create table if not exists rows(number integer, bytes integer);"
        "create table if not exists positions(session text primary key, epoch integer, seq integer, resume blob)"
    )
    return database


def consume(endpoint: str, folder: Path) -> None:
    database = open_rows(folder)
    log, _ = open_log(folder / "consumer.jsonl")

    def position_of(session: str) -> Position:
        row = database.execute("select epoch, seq, resume from positions where session=?", (session,)).fetchone()
        return Position(*row) if row else Position()

    consumer = StreamConsumer(endpoint, position_of, log)
    print("up", flush=True)  # noqa: T201
    while True:
        batches = consumer.receive(50, 32)
        if not batches:
            continue
        database.execute("begin")
        for batch in batches:
            database.execute("insert into rows values(?, ?)", (struct.unpack("<Q", batch.frames[0][:8])[0], len(batch.frames[0])))
        last = batches[-1]
        database.execute("insert or replace into positions values(?,?,?,?)", (last.session, last.epoch, last.seq, last.header["resume"]))
        database.execute("commit")
        consumer.ack(last.session, last.epoch, last.seq, last.header["resume"])


def produce(endpoint: str, count: int, size: int) -> StreamProducer:
    """Returns when all are acknowledged."""
    producer = StreamProducer(endpoint, SESSION)
    while not producer.hello(1000):
        pass
    resume = producer.position.resume
    number = struct.unpack("<Q", resume)[0] if resume else 0
    filler = bytes(size - 8)
    while number < count:
        if producer.send("numbers", {"resume": struct.pack("<Q", number + 1)}, [struct.pack("<Q", number) + filler]) is None:
            producer.poll(20)
        else:
            number += 1
    while not producer.flush(1000):
        pass
    return producer


if __name__ == "__main__":
    if sys.argv[1] == "consume":
        consume(sys.argv[2], Path(sys.argv[3]))
    else:
        produce(sys.argv[2], int(sys.argv[4]), int(sys.argv[5])).close()
