"""Where a session's events lie: per block of arrival numbers, how many there are and which times they span.

Numbers follow time within a commit and commits follow each other, so a page in time order lies in few blocks: with their bounds a query
reads hundreds of rows instead of millions. The same blocks say which trace events must go when the session holds too many. In memory
only; rebuilt from the file when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
EVENTS_MAX_DEFAULT: Final = 2_000_000
LONGEST_KEPT: Final = 512
PAYLOAD_BYTES: Final = 512  # that a session may hold for each event it may hold
PAYLOAD_BYTES_LEAST: Final = 16 << 20
PAYLOAD_BYTES_MOST: Final = 4 << 30
_BLOCKS: Final = 8192  # about as many blocks, up to twice, when the session is full
_BLOCKS_MAX: Final = 8 * _BLOCKS
_SHIFT_MAX: Final = 10
_RANGES_MAX: Final = 16
_NEVER: Final = np.iinfo(np.int64).max
BLOCK_DTYPE: Final = np.dtype([("events", "<i8"), ("rows", "<i8"), ("bytes", "<i8"), ("ts_low", "<i8"), ("ts_high", "<i8")])


@dataclass(frozen=True, slots=True)
class Window:
    """Bounds, included, within which the events asked for lie, and how many there may be. `whole`: nothing lies outside.

    `ranges`: the numbers they have, where that is less than all between the bounds (output is numbered behind the calls of its commit).
    """

    n_low: int
    n_high: int
    ts_high: int | None
    whole: bool
    events: int
    ranges: tuple[tuple[int, int], ...] = ()


class TraceMap:
    """`events` of a block: those that have its numbers; `rows`: the trace events that go when the calls entered in it go.

    `bytes`: of the payloads that have its numbers. `trace_total` is the sum of `rows`, `bytes_total` that of `bytes`.
    """

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.shift = min(max(events_max // _BLOCKS, 1).bit_length() - 1, _SHIFT_MAX)
        self.first = 0  # number of the first block
        self.blocks = np.zeros(0, dtype=BLOCK_DTYPE)
        self.longest: Ints = np.zeros(0, dtype=np.int64)  # durations, ascending; may hold some of evicted calls
        self.trace_total = 0
        self.bytes_total = 0
        self.past_high = -_NEVER  # latest time before the first block, where only output is left

    @property
    def bytes_max(self) -> int:
        return min(max(PAYLOAD_BYTES * self.events_max, PAYLOAD_BYTES_LEAST), PAYLOAD_BYTES_MOST)

    def copy(self) -> TraceMap:
        made = TraceMap(self.events_max)
        made.shift, made.first, made.trace_total, made.longest = self.shift, self.first, self.trace_total, self.longest
        made.bytes_total, made.past_high = self.bytes_total, self.past_high
        made.blocks = self.blocks.copy()
        return made

    # Filling

    def load(
        self, events: Iterable[tuple[int, int, int, int]], rows: Iterable[tuple[int, int]], held: Iterable[tuple[int, int]], longest: Iterable[int]
    ) -> None:
        """(block, events, lowest ts, highest ts), in any number and order; (block, rows); (block, bytes of payloads); durations."""
        events, rows, held = list(events), list(rows), list(held)
        numbers = [part[0] for part in events] + [part[0] for part in rows] + [part[0] for part in held]
        if numbers:  # at once: block after block would copy all of them each time
            self._cover(self._first_kept(numbers, [*rows, *held]), max(numbers))
        for block, count, low, high in events:
            if block < self.first:
                self.past_high = max(self.past_high, high)
                continue
            one = self.blocks[block - self.first]
            one["events"] += count
            one["ts_low"], one["ts_high"] = min(one["ts_low"], low), max(one["ts_high"], high)
        for block, count in rows:
            self.blocks["rows"][block - self.first] += count
            self.trace_total += count
        for block, count in held:
            self.blocks["bytes"][block - self.first] += count
            self.bytes_total += count
        self.longest = np.sort(np.fromiter(longest, dtype=np.int64))

    @staticmethod
    def _first_kept(numbers: list[int], traced: list[tuple[int, int]]) -> int:
        """The first block. Where they are too many, blocks before the first trace event are not kept, as `_merge` does it."""
        if max(numbers) - min(numbers) < _BLOCKS_MAX:
            return min(numbers)
        return min((block for block, _ in traced), default=max(numbers))

    def add(self, first_n: int, times: Ints, rows: list[tuple[Ints, Ints | None]]) -> None:
        """A commit: the time of each number from `first_n` on; (numbers of its rows, how many events each holds if not one)."""
        if not times.size:
            return
        low, high = first_n >> self.shift, first_n + times.size - 1 >> self.shift
        self._cover(low, high)
        at = slice(low - self.first, high - self.first + 1)
        starts = np.maximum(np.arange(low, high + 1) << self.shift, first_n) - first_n
        blocks = self.blocks[at]
        blocks["events"] += np.diff(starts, append=times.size)
        blocks["ts_low"] = np.minimum(blocks["ts_low"], np.minimum.reduceat(times, starts))
        blocks["ts_high"] = np.maximum(blocks["ts_high"], np.maximum.reduceat(times, starts))
        for numbers, held in rows:
            blocks["rows"] += np.bincount((numbers >> self.shift) - low, weights=held, minlength=high - low + 1).astype(np.int64)
            self.trace_total += numbers.size if held is None else int(held.sum())

    def add_bytes(self, numbers: Ints, sizes: Ints) -> None:
        """Payloads of a commit that was added."""
        self.blocks["bytes"] += np.bincount((numbers >> self.shift) - self.first, weights=sizes, minlength=self.blocks.size).astype(np.int64)
        self.bytes_total += int(sizes.sum())

    def moved(self, numbers: Ints, ts: Ints) -> None:
        """Some events were given a later time than the one they were numbered by."""
        np.maximum.at(self.blocks["ts_high"], (numbers >> self.shift) - self.first, ts)

    def add_durations(self, durations: Ints) -> None:
        """Keeps the longest ones: a page of the longest calls then knows where to begin."""
        least = int(self.longest[0]) if self.longest.size >= LONGEST_KEPT else -1
        longer = durations[durations > least]
        if longer.size:
            self.longest = np.sort(np.concatenate([self.longest, longer]))[-LONGEST_KEPT:]

    def _cover(self, low: int, high: int) -> None:
        """Makes room up to block `high`; blocks come in ascending order."""
        if not self.blocks.size:
            self.first = low
        missing = high + 1 - self.first - self.blocks.size
        if missing > 0:
            fresh = np.zeros(missing, dtype=BLOCK_DTYPE)
            fresh["ts_low"], fresh["ts_high"] = _NEVER, -_NEVER
            self.blocks = np.concatenate([self.blocks, fresh])

    # Asking

    def overflow(self) -> int | None:
        """Up to which number calls must go so that at most `events_max` trace events and `bytes_max` of payloads are left; None: there is room.
        They count as gone.

        What was printed in a block stays, so the block stays too; its count of events is then too high, which costs a query one more look.
        """
        excesses = (("rows", self.trace_total - self.events_max), ("bytes", self.bytes_total - self.bytes_max))
        needed = [int(np.searchsorted(np.cumsum(self.blocks[name]), excess)) + 1 for name, excess in excesses if excess > 0]
        if not needed:
            return None
        gone = max(needed)
        self.trace_total -= int(self.blocks["rows"][:gone].sum())
        self.bytes_total -= int(self.blocks["bytes"][:gone].sum())
        self.blocks["rows"][:gone] = 0
        self.blocks["bytes"][:gone] = 0
        cut = (self.first + gone << self.shift) - 1
        if self.blocks.size > _BLOCKS_MAX:
            self._merge(gone)
        return cut

    def _merge(self, gone: int) -> None:
        """Forgets the bounds of the first blocks, but for the latest time in them."""
        self.past_high = max(self.past_high, int(self.blocks["ts_high"][:gone].max()))
        self.blocks = self.blocks[gone:].copy()
        self.first += gone

    def by_time(self, ts_from: int | None, count: int) -> Window:
        """Where the first `count` trace events from a time on lie, in order of time."""
        blocks = self.blocks
        begin = -_NEVER if ts_from is None else ts_from
        sure = np.flatnonzero((blocks["ts_low"] >= begin) & (blocks["events"] > 0))
        order = sure[np.argsort(blocks["ts_high"][sure], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(blocks["events"][order]), count))
        if enough >= order.size:
            return self._spanning(np.flatnonzero(blocks["ts_high"] >= begin), begin, None)
        ts_high = int(blocks["ts_high"][order[enough]])
        return self._spanning(np.flatnonzero((blocks["ts_high"] >= begin) & (blocks["ts_low"] <= ts_high)), begin, ts_high)

    def by_arrival(self, n_from: int, count: int) -> Window:
        """Where the first `count` events after a number lie."""
        at = max((n_from >> self.shift) - self.first, -1)
        sums = np.cumsum(self.blocks["events"][at + 1 :])
        enough = int(np.searchsorted(sums, count))
        if enough >= sums.size:
            return Window(n_from, _NEVER, None, True, (int(sums[-1]) if sums.size else 0) + (1 << self.shift))
        return Window(n_from, (self.first + at + enough + 2 << self.shift) - 1, None, False, int(sums[enough]) + (1 << self.shift))

    def between(self, ts_from: int | None, ts_to: int | None) -> tuple[int, list[tuple[int, int]]]:
        """Between two times, both included: (events of blocks that lie inside, numbers of the blocks that may lie there in part)."""
        begin, end = -_NEVER if ts_from is None else ts_from, _NEVER if ts_to is None else ts_to
        low, high, held = self.blocks["ts_low"], self.blocks["ts_high"], self.blocks["events"] > 0
        inside = held & (low >= begin) & (high <= end)
        partly = np.flatnonzero(held & (high >= begin) & (low <= end) & ~inside)
        edges = [(int(block) << self.shift, (int(block) + 1 << self.shift) - 1) for block in partly + self.first]
        return int(self.blocks["events"][inside].sum()), edges

    def first_after(self, ts: int) -> int:
        """A number before which no event has a time later than `ts`."""
        if self.past_high > ts:
            return 1
        found = np.flatnonzero(self.blocks["ts_high"] > ts)
        return (self.first + int(found[0]) if found.size else self.first + self.blocks.size) << self.shift

    def _spanning(self, chosen: Ints, begin: int, ts_high: int | None) -> Window:
        if not chosen.size:
            return Window(1, 0 if self.past_high < begin else (self.first << self.shift) - 1, ts_high, ts_high is None, 0)
        low = self.first + int(chosen[0]) << self.shift if self.past_high < begin else 1
        events = int(self.blocks["events"][chosen[0] : chosen[-1] + 1].sum())
        ranges = self._ranges(chosen) if self.past_high < begin else ()
        return Window(low, (self.first + int(chosen[-1]) + 1 << self.shift) - 1, ts_high, ts_high is None, events, ranges)

    def _ranges(self, chosen: Ints) -> tuple[tuple[int, int], ...]:
        """The numbers of these blocks, ascending, as few stretches; () when they are many."""
        gaps = np.flatnonzero(np.diff(chosen) > 1)
        if gaps.size >= _RANGES_MAX:
            return ()
        first, last = chosen[np.concatenate([[0], gaps + 1])], chosen[np.concatenate([gaps, [chosen.size - 1]])]
        stretches = zip((first + self.first).tolist(), (last + self.first).tolist(), strict=True)
        return tuple((low << self.shift, (high + 1 << self.shift) - 1) for low, high in stretches)
