"""Captured values of many entries at once: from payloads and words to bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from actors.store.columns import Column
from actors.store.scalars import DTYPES, Shape, Source, to_bits, word_bits
from strobe.lanes.reader import gather

if TYPE_CHECKING:
    from actors.store.hook_table import SourceMap
    from actors.store.strings import StringTable

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ValueReader:
    def __init__(self, slots: NDArray[np.uint8], strings: StringTable) -> None:
        # A gather near the end must not reach past it: one slot of zeros more would copy everything, so short payloads are masked instead.
        self._slots = slots
        self._strings = strings

    def column(self, sources: SourceMap, hooks: Ints, heads: Ints, words: NDArray[np.uint64], rooms: Ints, wanted: Mask | None = None) -> Column | None:
        """Bits of one argument position (or the result) for the entries at `heads`; None when no hook has any there.

        A value is NULL where `wanted` is False, where its hook captures none, and where the payload is too short for it.
        """
        groups = sources.of(hooks)
        if not groups:
            return None
        if len(groups) == 1 and groups[0][1] is None and wanted is None:
            source = groups[0][0]
            if source.in_word or int(rooms.min()) >= source.bytes_needed:
                return Column(self._read(source, heads, words, rooms))
        bits = np.zeros(hooks.size, dtype=np.int64)
        valid = np.zeros(hooks.size, dtype=np.bool_)
        for source, rows in groups:
            taken = np.ones(hooks.size, dtype=np.bool_) if rows is None else np.zeros(hooks.size, dtype=np.bool_)
            if rows is not None:
                taken[rows] = True
            if wanted is not None:
                taken &= wanted
            if not source.in_word:
                taken &= rooms >= source.bytes_needed
            chosen = np.flatnonzero(taken)
            bits[chosen] = self._read(source, heads[chosen], words[chosen], rooms[chosen])
            valid |= taken
        return Column(bits, None if valid.all() else valid)

    def _read(self, source: Source, heads: Ints, words: NDArray[np.uint64], rooms: Ints) -> Ints:
        if source.shape is Shape.TEXT:
            descriptors = words if source.in_word else gather(self._slots, heads, source.offset, "<u8")
            return self._strings.ids(self._slots, heads, descriptors, rooms)
        if source.in_word:
            return word_bits(words, source.shape)
        return to_bits(gather(self._slots, heads, source.offset, DTYPES[source.shape]), source.shape)
