"""Output on its way from the spool to batches: bytes from the keeper's file, times from the recorder's marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.session.collector.order import MARK_WAIT_NS, Mark, Segment, StreamOrder, Writer
from actors.session.collector.spool import Spool
from strobe.launch.output import STDERR, STDOUT

BATCH_BYTES: Final = 1 << 20
PENDING_BYTES_MAX: Final = 8 << 20  # more than this does not wait for marks
NO_MARKS_WAIT_NS: Final = 5_000_000  # the wait while no recorder has written anything
BACKLOG_WAIT_NS: Final = 500_000_000  # the wait for marks that stand behind a backlog of records


@dataclass(frozen=True, slots=True)
class OutputBatch:
    header: dict[str, Any]
    content: bytes | memoryview


class Printed:
    def __init__(self, spool: Spool, state: Sequence[Any] | None) -> None:
        self.spool = spool
        out, err, dropped = (None, None, 0) if state is None else state
        self._marks_dropped: int = dropped
        self.orders = {STDOUT: StreamOrder(STDOUT, out), STDERR: StreamOrder(STDERR, err)}

    def state(self) -> list[Any]:
        return [self.orders[STDOUT].state(), self.orders[STDERR].state(), self._marks_dropped]

    def marks_dropped(self, total: int) -> None:
        """How many marks found no room in the lanes so far: look after taking marks out, before asking for a batch."""
        if total != self._marks_dropped:
            self._marks_dropped = total
            for order in self.orders.values():
                order.mark_missing()

    def marked(self, marks: NDArray[np.void], times_ns: list[int], by: Writer) -> None:
        """Output marks of one slice, their times in CLOCK_MONOTONIC, and whose they are."""
        rows = zip(marks["hook"].tolist(), times_ns, marks["word"].tolist(), marks["span"].tolist(), strict=True)
        by_stream: dict[int, list[Mark]] = {STDOUT: [], STDERR: []}
        for stream, ts_ns, count, span in rows:
            if stream in by_stream and count > 0:
                by_stream[stream].append(Mark(ts_ns, count, span, by))
        for stream, found in by_stream.items():
            if found:
                self.orders[stream].marked(found)

    def read(self, size: int) -> bool:
        """Reads on in the spool, whose complete records end at `size`. True when it read something."""
        if self.pending_bytes > PENDING_BYTES_MAX:
            return False
        records = self.spool.read(size)
        for record in records:
            self.orders[record.stream].arrived(record.offset, len(record.data), record.arrival_ns)
        for stream, order in self.orders.items():
            self.spool.forget(stream, order.told)
        return bool(records)

    @property
    def idle(self) -> bool:
        """No bytes wait for a time, and no marks for bytes."""
        return all(order.idle for order in self.orders.values())

    @property
    def pending_bytes(self) -> int:
        return sum(order.pending_bytes for order in self.orders.values())

    def oldest_pending_ns(self) -> int | None:
        return min((ns for order in self.orders.values() if (ns := order.oldest_pending_ns) is not None), default=None)

    def batch(self, now_ns: int, marks_until_ns: int, *, size: int, recorder: bool, hold_ns: int, wait_ns: int | None) -> OutputBatch | None:
        """The next `output` batch, if any bytes' times are settled. All marks made before `marks_until_ns` are known."""
        known_ns = max(marks_until_ns, now_ns - BACKLOG_WAIT_NS)
        if wait_ns is None:
            wait_ns = MARK_WAIT_NS if recorder else NO_MARKS_WAIT_NS
        if self.pending_bytes > PENDING_BYTES_MAX:
            known_ns, wait_ns = now_ns, 0
        all_read = self.spool.position >= size
        segments: list[Segment] = []
        for order in self.orders.values():
            segments += order.settle(known_ns, BATCH_BYTES, all_read=all_read, wait_ns=wait_ns, hold_ns=hold_ns)
        if not segments:
            return None
        pieces = [piece for segment in segments for piece in self.spool.take(segment.stream, segment.offset, segment.bytes)]
        told = [
            {"stream": stream, "offset": offset, "bytes": count, "tsNs": ts_ns, "approximate": approximate, "span": span or None, "by": by}
            for stream, offset, count, ts_ns, approximate, span, by in segments
        ]
        return OutputBatch({"segments": told}, pieces[0] if len(pieces) == 1 else b"".join(pieces))
