"""Calls that were entered and have not been left yet, across commits: an exit finds its enter here, and an enter its parent.

Sorted by span id in one numpy array; small (threads × depth) and bounded. It is stored with each commit, so that a store that starts
again still knows them.
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


def find(sorted_spans: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
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
        self._commits: deque[tuple[Ints, Ints, NDArray[np.int32]]] = deque(maxlen=RECENT_COMMITS)

    def add(self, spans: Ints, n: Ints, threads: NDArray[np.int32]) -> None:
        """`spans` sorted."""
        if spans.size:
            self._commits.append((spans, n, threads))

    def find(self, span: int) -> tuple[int | None, int | None]:
        wanted = np.array([span], dtype=np.int64)
        for spans, n, threads in reversed(self._commits):
            place, hit = find(spans, wanted)
            if hit[0]:
                return int(n[place[0]]), int(threads[place[0]])
        return None, None
