"""Batches on their way: each goes out with the resume mark that describes the state after it, and has its effects once it is committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.session.collector.crashes import CrashPages
from actors.session.collector.lanes import Advance, Lanes
from actors.session.collector.losses import Losses
from actors.session.collector.mark import ResumeMark
from actors.session.collector.printed import Printed
from actors.session.collector.stream import BatchStream, Buffer


@dataclass(frozen=True, slots=True)
class _Flight:
    """What becomes true when batch `seq` is committed."""

    seq: int
    advances: Sequence[Advance]
    file: int
    crash: tuple[int, int] | None


@dataclass
class Parts:
    """Everything whose state a resume mark holds."""

    lanes: Lanes
    printed: Printed
    losses: Losses
    crashes: CrashPages

    def mark(self) -> ResumeMark:
        return ResumeMark(
            chunks=self.lanes.position(),
            file=self.printed.spool.needed_from(),
            printed=self.printed.state(),
            losses=self.losses.state(self.lanes.unfinished),
            crashes=tuple((page, ts) for page, ts in self.crashes.state()),
        )


class Outbox:
    def __init__(self, stream: BatchStream, parts: Parts) -> None:
        self._stream = stream
        self._parts = parts
        self._flights: deque[_Flight] = deque()
        self.last_seq = 0
        self.unsettled = False  # something was sent since the last `settled`
        self.ended = False  # `end` was sent: nothing may follow

    @property
    def room(self) -> int:
        return self._stream.window_free

    @property
    def acked(self) -> int:
        return self._stream.acked

    def send(
        self, kind: str, header: dict[str, Any], frames: Sequence[Buffer] = (), *, advances: Sequence[Advance] = (), crash: tuple[int, int] | None = None
    ) -> None:
        """There is room: callers have checked. Of the parts' state every bit must be as it is after this batch."""
        mark = self._parts.mark()
        skipped = self._parts.lanes.take_skipped()
        seq = self._stream.send(kind, {**header, "resume": mark.pack()}, frames)
        if seq is None:
            raise RuntimeError(f"the stream refused a {kind} batch though its window had room for {self.room}")
        self.last_seq = seq
        self.unsettled = kind not in ("settled", "end")
        self.ended = kind == "end"
        self._flights.append(_Flight(seq, [*skipped, *advances], mark.file, crash))

    def take_acks(self) -> None:
        acked = self._stream.acked
        while self._flights and self._flights[0].seq <= acked:
            flight = self._flights.popleft()
            self._parts.lanes.advance(flight.advances)
            self._parts.printed.spool.committed(flight.file)
            if flight.crash is not None:
                self._parts.crashes.free(*flight.crash)
