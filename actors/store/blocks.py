"""Rows of a session that were read before, by block of arrival numbers.

What is stored never changes, and who debugs asks about the same stretch of time again and again: the next page, another filter, the status.
A statement costs a millisecond before it reads its first row (planned anew each time), a block found here some microseconds.
Evicted events leave stale blocks: the count of evicted events is part of a block's name.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final, NamedTuple

import numpy as np

BYTES_MAX: Final = 16 << 20  # a session file that is in use
SHIFT: Final = 10  # numbers a block: 1 << 10
Columns = dict[str, Any]  # name: array of one value a row, masked where it may be NULL


class BlockName(NamedTuple):
    """Rows of `branch` numbered in a block, up to the number `high` (the block's last, unless it is still filling)."""

    branch: str
    block: int
    high: int
    evicted: int
    value_columns: int


class BlockCache:
    """Used by all query threads at once. Holds the blocks asked for last, up to `bytes_max`. Block k has the numbers from k << shift."""

    def __init__(self, bytes_max: int = BYTES_MAX, shift: int = SHIFT) -> None:
        self._lock = threading.Lock()
        self._bytes_max = bytes_max
        self._blocks: OrderedDict[BlockName, tuple[Columns, int]] = OrderedDict()
        self.bytes = 0
        self.shift = shift

    def get(self, name: BlockName) -> Columns | None:
        with self._lock:
            found = self._blocks.get(name)
            if found is None:
                return None
            self._blocks.move_to_end(name)
            return found[0]

    def put(self, name: BlockName, columns: Columns) -> None:
        size = _bytes_of(columns)
        with self._lock:
            before = self._blocks.pop(name, None)
            self._blocks[name] = columns, size
            self.bytes += size - (before[1] if before else 0)
            while self.bytes > self._bytes_max:
                _, (_, dropped) = self._blocks.popitem(last=False)
                self.bytes -= dropped


def _bytes_of(columns: Columns) -> int:
    size = 200 * len(columns)
    for column in columns.values():
        size += column.nbytes
        if column.dtype == np.object_:
            size += sum(len(text) for text in column.tolist() if isinstance(text, str))
    return size
