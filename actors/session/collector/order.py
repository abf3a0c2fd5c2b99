"""When output was printed: marks place a stream's bytes among calls (DESIGN §4, output order). Pure: no I/O, no clock of its own.

The recorder marks every write(2) of the target to its stdout or stderr with a time and a number of bytes; the keeper tells when it read
which bytes. On one stream, marks in the order of their times cover its bytes in the order of their offsets, as long as every writer is
marked. A writer that is not (a child, a static helper) shows itself: its bytes had arrived clearly before the next mark was made. Such
bytes keep their arrival time and are flagged approximate, and so do bytes for which no mark comes in time. A mark that comes later still
belongs to them; it is matched with them and says nothing any more.

Where a mark is known to be missing (dropped, or its bytes went to another), the next ones may cover the wrong bytes: their times are
still about right, but flagged approximate and without a call, until the stream was quiet and both sides begin anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

HOLD_NS: Final = 3_000_000  # a mark waits so long for earlier ones of other threads
MARK_WAIT_NS: Final = 30_000_000  # bytes wait so long for their mark
SLACK_NS: Final = 20_000_000  # a mark may be made so long after the keeper has read its bytes
SLACK_NS_PER_BYTE: Final = 10  # and longer for a large write, whose mark is made when the last byte is in the pipe
LATE_NS: Final = 100_000_000  # bytes may arrive so long after their mark
HISTORY_NS: Final = 2_000_000_000  # bytes handed out with their arrival time wait so long for the mark that belongs to them
_HISTORY_MAX: Final = 256
_MARKS_MAX: Final = 65536


Writer = tuple[int, int, int, str]  # thread index, pid, tid, name


class Mark(NamedTuple):
    """`ts_ns` of CLOCK_MONOTONIC; `span` is the innermost traced call, 0 outside any; `by` who wrote."""

    ts_ns: int
    bytes: int
    span: int
    by: Writer | None = None


class Segment(NamedTuple):
    """Bytes [offset, offset + bytes) of a stream, printed at `ts_ns`."""

    stream: int
    offset: int
    bytes: int
    ts_ns: int
    approximate: bool
    span: int
    by: Writer | None = None


@dataclass(slots=True)
class _Run:
    """Bytes that no mark has covered yet. `told`: already handed out, with their arrival time."""

    offset: int
    bytes: int
    arrival_ns: int
    told: bool


class StreamOrder:
    """One stream. `arrived` and `marked` put in, `settle` takes out segments in the order of their offsets."""

    def __init__(self, stream: int, state: Any = None) -> None:
        """`state` is what `state()` of an earlier one said: bytes that it handed out are not handed out again."""
        self.stream = stream
        self.told: int = 0  # offset up to which segments were handed out
        self._last_ns: int = 0
        self._runs: deque[_Run] = deque()
        self._marks: deque[Mark] = deque()
        self._part_of_mark = False  # the first mark has covered bytes already
        self._doubt = False
        self._active_ns = 0  # latest time of a mark or of an arrival
        if state is not None:
            self.told, self._last_ns, marks, runs, self._doubt, self._active_ns = state
            self._marks.extend(Mark(ts_ns, count, span, _writer(by)) for ts_ns, count, span, by in marks)
            self._runs.extend(_Run(offset, count, arrival_ns, True) for offset, count, arrival_ns in runs)

    def state(self) -> list[Any]:
        runs = [[run.offset, run.bytes, run.arrival_ns] for run in self._runs if run.told]
        return [self.told, self._last_ns, [list(mark) for mark in self._marks], runs, self._doubt, self._active_ns]

    @property
    def idle(self) -> bool:
        return not self._runs and not self._marks and not self._doubt

    @property
    def pending_bytes(self) -> int:
        """Arrived and not handed out."""
        return sum(run.bytes for run in self._runs if not run.told)

    @property
    def oldest_pending_ns(self) -> int | None:
        return next((run.arrival_ns for run in self._runs if not run.told), None)

    def arrived(self, offset: int, count: int, arrival_ns: int) -> None:
        """The keeper has read `count` bytes that follow `offset`; what was handed out before is passed over."""
        fresh = min(count, offset + count - self.told)
        self._active_ns = max(self._active_ns, arrival_ns)
        if fresh > 0:
            self._runs.append(_Run(offset + count - fresh, fresh, arrival_ns, False))

    def marked(self, marks: Iterable[Mark]) -> None:
        self._marks.extend(marks)
        self._active_ns = max(self._active_ns, *(mark.ts_ns for mark in self._marks), 0)
        if len(self._marks) > 1:
            first, *rest = self._marks
            # A mark that has covered bytes stays first, whatever comes in late.
            self._marks = deque([first, *sorted(rest, key=_in_time)] if self._part_of_mark else sorted(self._marks, key=_in_time))
        while len(self._marks) > _MARKS_MAX:
            self._marks.popleft()

    def mark_missing(self) -> None:
        """A mark was dropped."""
        self._doubt = True

    def settle(self, now_ns: int, bytes_max: int, *, all_read: bool, wait_ns: int = MARK_WAIT_NS, hold_ns: int = HOLD_NS) -> list[Segment]:
        """At most `bytes_max` bytes (one segment more at most) whose time is known, or will not become known within `wait_ns`.

        All marks made before `now_ns` have been put in; `all_read`: so have all bytes that the keeper has read.
        """
        segments: list[Segment] = []
        budget = bytes_max
        while budget > 0 and self._runs:
            run = self._runs[0]
            mark = self._marks[0] if self._marks and self._marks[0].ts_ns <= now_ns - hold_ns else None
            if mark is not None and run.arrival_ns - mark.ts_ns > LATE_NS:
                self._drop_mark()  # its bytes were taken for another's long ago
                self._doubt = True
            elif mark is not None and mark.ts_ns - run.arrival_ns <= SLACK_NS + mark.bytes * SLACK_NS_PER_BYTE:
                budget -= self._cover(run, mark, segments)
            elif mark is not None:
                self._doubt = self._doubt or not run.told
                budget -= self._by_arrival(run, segments)
                self._runs.popleft()
            else:
                break
        self._give_up(now_ns - wait_ns, budget, segments)
        self._forget(now_ns, all_read)
        return segments

    def _cover(self, run: _Run, mark: Mark, segments: list[Segment]) -> int:
        """The run's first bytes are the mark's."""
        count = min(run.bytes, mark.bytes)
        if not run.told:
            self._tell(segments, run.offset, count, mark._replace(span=0, by=None) if self._doubt else mark, self._doubt)
        if count < run.bytes:
            run.offset += count
            run.bytes -= count
        else:
            self._runs.popleft()
        if count < mark.bytes:
            self._marks[0] = mark._replace(bytes=mark.bytes - count)
            self._part_of_mark = True
        else:
            self._drop_mark()
        return 0 if run.told else count

    def _by_arrival(self, run: _Run, segments: list[Segment]) -> int:
        if run.told:
            return 0
        self._tell(segments, run.offset, run.bytes, Mark(run.arrival_ns, run.bytes, 0), True)
        run.told = True
        return run.bytes

    def _give_up(self, before_ns: int, budget: int, segments: list[Segment]) -> None:
        """Bytes that arrived before that time get no mark any more, or get it too late."""
        for run in self._runs:
            if budget <= 0 or run.arrival_ns > before_ns:
                break
            budget -= self._by_arrival(run, segments)

    def _tell(self, segments: list[Segment], offset: int, count: int, mark: Mark, approximate: bool) -> None:
        """A stream's bytes were printed in their order: where times say otherwise, they are the ones that are wrong."""
        ts_ns, _, span, by = mark
        last = segments[-1] if segments else None
        if last is not None and (last.span, last.by, last.approximate, last.ts_ns) == (span, by, approximate, ts_ns):
            segments[-1] = last._replace(bytes=last.bytes + count)
        else:
            segments.append(Segment(self.stream, offset, count, max(ts_ns, self._last_ns), approximate or ts_ns < self._last_ns, span, by))
        self._last_ns = segments[-1].ts_ns
        self.told = offset + count

    def _drop_mark(self) -> None:
        self._marks.popleft()
        self._part_of_mark = False

    def _forget(self, now_ns: int, all_read: bool) -> None:
        """Runs that were handed out are kept for their marks only so long, and so many. After a quiet time there is no doubt."""
        told = sum(run.told for run in self._runs)
        while self._runs and self._runs[0].told and (told > _HISTORY_MAX or now_ns - self._runs[0].arrival_ns > HISTORY_NS):
            self._runs.popleft()
            told -= 1
        while all_read and self._marks and not self._runs and now_ns - self._marks[0].ts_ns > LATE_NS:
            self._drop_mark()
            self._doubt = True
        if self._doubt and all_read and not self._marks and told == len(self._runs) and now_ns - self._active_ns > SLACK_NS:
            self._doubt = False


def _in_time(mark: Mark) -> tuple[int, int, int]:
    return mark[:3]


def _writer(by: list[Any] | None) -> Writer | None:
    return None if by is None else (by[0], by[1], by[2], by[3])
