"""A store for tests: a real stream consumer that keeps what it commits, and may be cut off between two commits as a kill would."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from strobe.lanes.layout import SLOT_BYTES, Kind
from strobe.lanes.reader import entries, heads_of, payload
from strobe.runtime.stream import Batch, Position, StreamConsumer


@dataclass
class Committed:
    """What a store would have on disk: rows and position change together."""

    position: Position = field(default_factory=Position)
    batches: list[Batch] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def of(self, kind: str) -> list[Batch]:
        return [batch for batch in self.batches if batch.kind == kind]

    def records(self) -> NDArray[np.void]:
        """Headers of all entries but padding, as they came."""
        found = [entries(slots, heads_of(slot_map)) for slot_map, slots in map(frames_of, self.of("records"))]
        every = np.concatenate(found) if found else np.zeros(0, dtype=entries(np.zeros(32, np.uint8), np.zeros(0, np.int64)).dtype)
        kept: NDArray[np.void] = every[every["kind"] != Kind.PAD]
        return kept

    def words(self, hook: int) -> NDArray[np.uint64]:
        """The numbers of a hook's calls, as they came (tests/targets/lane_writer.c)."""
        every = self.records()
        words: NDArray[np.uint64] = every["word"][(every["hook"] == hook) & (every["kind"] <= Kind.EXIT)]
        return words

    def payloads(self) -> list[bytes]:
        return [payload(slots, slot_map, int(head)) for slot_map, slots in map(frames_of, self.of("records")) for head in heads_of(slot_map)]

    def slices(self) -> list[dict[str, Any]]:
        return [part for batch in self.of("records") for part in batch.header["slices"]]

    def segments(self) -> list[dict[str, Any]]:
        """Of all output batches; each with its `data`."""
        found = []
        for batch in self.of("output"):
            at = 0
            for segment in batch.header["segments"]:
                found.append({**segment, "data": bytes(batch.frames[0][at : at + segment["bytes"]])})
                at += segment["bytes"]
            assert at == len(batch.frames[0])
        return found

    def output(self, stream: int = 1) -> bytes:
        """A stream's bytes, having checked that its segments follow one another."""
        mine = [segment for segment in self.segments() if segment["stream"] == stream]
        at = 0
        for segment in mine:
            assert segment["offset"] == at, f"stream {stream}: {segment['offset']} after {at}"
            at += segment["bytes"]
        return b"".join(segment["data"] for segment in mine)

    def losses(self) -> Counter[tuple[str, Any]]:
        """(cause, hook or kind) → how many."""
        total: Counter[tuple[str, Any]] = Counter()
        for batch in self.of("losses"):
            for name, lost in [*batch.header["hooks"].items(), *batch.header["kinds"].items()]:
                total[batch.header["cause"], name] += lost
        return total

    def events(self) -> list[dict[str, Any]]:
        return [event for batch in self.of("event") for event in batch.header["events"]]


def frames_of(batch: Batch) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    slot_map, slots = np.frombuffer(batch.frames[0], dtype=np.uint8), np.frombuffer(batch.frames[1], dtype=np.uint8)
    assert slots.size == slot_map.size * SLOT_BYTES == sum(part["slots"] for part in batch.header["slices"]) * SLOT_BYTES
    return slot_map, slots


class Sink:
    """One session's store. `keep=False` counts and throws the batches away (for measurements)."""

    def __init__(self, folder: Path, *, commit_s: float = 0.02, keep: bool = True) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.endpoint = f"ipc://{folder}/data"
        self.committed = Committed()
        self.commit_s = commit_s
        self.keep = keep
        self.slots = 0
        self.paused = threading.Event()
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.open()

    def open(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="sink", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """As a kill: what is not committed is gone."""
        self._stop.set()
        assert self._thread is not None
        self._thread.join(10)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.cut()
        assert self._failure is None, self._failure

    def _run(self) -> None:
        consumer = StreamConsumer(self.endpoint, lambda _session: self.committed.position, structlog.get_logger())
        try:
            self._consume(consumer)
        except BaseException as error:  # noqa: BLE001 - shown by close()
            self._failure = error
        finally:
            consumer.close()

    def _consume(self, consumer: StreamConsumer) -> None:
        taken: list[Batch] = []
        due = time.monotonic()
        while not self._stop.is_set():
            if self.paused.is_set():
                time.sleep(0.005)
                continue
            taken += consumer.receive(5, 64)
            if taken and time.monotonic() >= due:
                self._commit(taken)
                last = taken[-1]
                consumer.ack(last.session, last.epoch, last.seq, last.header["resume"])
                taken = []
                due = time.monotonic() + self.commit_s

    def _commit(self, taken: list[Batch]) -> None:
        last = taken[-1]
        self.committed.position = Position(last.epoch, last.seq, last.header["resume"])
        self.committed.kinds.update(batch.kind for batch in taken)
        self.slots += sum(len(batch.frames[0]) for batch in taken if batch.kind == "records")
        if self.keep:
            self.committed.batches += taken
