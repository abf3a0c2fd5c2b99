"""Which trace events go when a session holds more than it may: the oldest by arrival, in blocks, so that it is one DELETE a commit.

Counts per block of arrival numbers are kept in memory; a call's enter and exit go together, by the enter's number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from actors.store.columns import Column

EVENTS_MAX_DEFAULT: Final = 2_000_000
_BLOCK_MAX: Final = 4096


class TraceBlocks:
    """After `overflow` the session holds at most `events_max` trace events, and at least that less one block."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.size = max(1, min(events_max // 64, _BLOCK_MAX))
        self.events = 0
        self._blocks: dict[int, int] = {}

    def copy(self) -> TraceBlocks:
        made = TraceBlocks(self.events_max)
        made.size, made.events, made._blocks = self.size, self.events, dict(self._blocks)
        return made

    def load(self, blocks: Iterable[tuple[int, int]]) -> None:
        """(block, events), any order."""
        for block, events in sorted(blocks):
            self._put(block, events)

    def add(self, n: Column, closed: Column | None = None) -> None:
        """Rows with these numbers: one event each, and one more where `closed` is valid."""
        blocks = n.values // self.size
        first = int(blocks.min())
        weights = np.ones(blocks.size) if closed is None else 1.0 + (np.ones(blocks.size) if closed.valid is None else closed.valid)
        sums = np.bincount(blocks - first, weights=weights)
        for index in np.flatnonzero(sums).tolist():
            self._put(first + index, int(sums[index]))

    def _put(self, block: int, events: int) -> None:
        self._blocks[block] = self._blocks.get(block, 0) + events
        self.events += events

    def overflow(self) -> int | None:
        """Up to which number the trace events must go; None: there is room. They count as gone."""
        if self.events <= self.events_max:
            return None
        cut = 0
        for block in sorted(self._blocks):
            if self.events <= self.events_max:
                break
            self.events -= self._blocks.pop(block)
            cut = (block + 1) * self.size - 1
        return cut
