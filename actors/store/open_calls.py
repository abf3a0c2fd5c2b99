"""Which enter belongs to an exit or is a parent: by span id, within a commit and, through the open calls, across commits.

Open calls (entered, not yet left) are one small numpy array sorted by span, bounded, and stored with each commit, so that a store that
starts again still knows them.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

OPEN_MAX: Final = 131_072
RECENT_COMMITS: Final = 8
OPEN_DTYPE: Final = np.dtype([("span", "<i8"), ("n", "<i8"), ("ts", "<i8"), ("hook", "<i4"), ("caller", "<i4"), ("thread", "<i4"), ("pad", "<i4")])

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class SpanIndex:
    """Finds rows by span. One thread's spans are nearly consecutive: then it is a plain table; else sorted, and searched."""

    def __init__(self, spans: Ints) -> None:
        self._table: NDArray[np.int32] | None = None
        self._low = int(spans.min()) if spans.size else 0
        width = int(spans.max()) - self._low + 1 if spans.size else 0
        if width <= 4 * spans.size + 1024:
            self._table = np.full(width, -1, dtype=np.int32)
            self._table[spans - self._low] = np.arange(spans.size, dtype=np.int32)
        else:
            self._order = np.argsort(spans, kind="stable")
            self._sorted = spans.take(self._order)

    def find(self, wanted: Ints) -> tuple[Ints, Mask]:
        """The row of each wanted span, and whether there is one (else the row is 0)."""
        if self._table is None:
            place, hit = find(self._sorted, wanted)
            return np.where(hit, self._order.take(place), 0), hit
        if not self._table.size or not wanted.size:
            return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
        offset = wanted - self._low
        inside = offset.view(np.uint64) < np.uint64(self._table.size)
        rows = self._table.take(offset, mode="clip").astype(np.int64)
        hit = inside & (rows >= 0)
        rows *= hit
        return rows, hit


def find(sorted_spans: Ints, wanted: Ints) -> tuple[Ints, Mask]:
    """Index of each wanted span in the sorted ones, and whether it is there (else the index means nothing)."""
    if not sorted_spans.size or not wanted.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    places = np.searchsorted(sorted_spans, wanted)
    np.minimum(places, sorted_spans.size - 1, out=places)
    return places, sorted_spans[places] == wanted


class OpenCalls:
    """`calls` is sorted by span. `forgotten` counts those that did not fit: their exits will be stored without a duration."""

    def __init__(self, packed: bytes = b"") -> None:
        self.calls: NDArray[np.void] = np.frombuffer(packed, dtype=OPEN_DTYPE).copy()
        self.forgotten = 0

    def pack(self) -> bytes:
        return self.calls.tobytes()

    def change(self, left: Ints, entered: NDArray[np.void]) -> None:
        """Takes out the calls at the indexes `left` and puts `entered` in (OPEN_DTYPE, any order)."""
        kept = np.delete(self.calls, left) if left.size else self.calls
        if entered.size:
            kept = np.concatenate([kept, entered])
            kept = kept[np.argsort(kept["span"], kind="stable")]
        if kept.size > OPEN_MAX:
            # The oldest go: with this many open they are the outermost frames of runaway recursions, or of dead threads.
            newest = np.sort(np.argpartition(kept["n"], kept.size - OPEN_MAX)[kept.size - OPEN_MAX :])
            self.forgotten += kept.size - OPEN_MAX
            kept = kept[newest]
        self.calls = kept


class RecentCalls:
    """The calls entered in the last few commits, ended or not: output and crashes name the call they happened in, and may come later."""

    def __init__(self) -> None:
        self._commits: deque[tuple[SpanIndex, Ints, NDArray[np.int32]]] = deque(maxlen=RECENT_COMMITS)

    def add(self, index: SpanIndex, n: Ints, threads: NDArray[np.int32]) -> None:
        if n.size:
            self._commits.append((index, n, threads))

    def find(self, span: int) -> tuple[int | None, int | None]:
        """(n, thread)."""
        wanted = np.array([span], dtype=np.int64)
        for index, n, threads in reversed(self._commits):
            row, hit = index.find(wanted)
            if hit[0]:
                return int(n[row[0]]), int(threads[row[0]])
        return None, None
