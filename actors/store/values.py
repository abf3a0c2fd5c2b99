"""Captured values of many entries at once: from payloads and words to bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.store.columns import Column
from actors.store.entries import Part
from actors.store.hook_table import SourceMap
from actors.store.scalars import DTYPES, Shape, Source, to_bits, word_bits
from actors.store.strings import StringTable
from strobe.lanes.layout import SLOT_BYTES
from strobe.lanes.reader import gather

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ValueReader:
    def __init__(self, slots: NDArray[np.uint8], strings: StringTable) -> None:
        self._slots = slots
        self._strings = strings

    def column(self, sources: SourceMap, part: Part, hooks: Ints, wanted: Mask | None = None) -> Column | None:
        """Bits of one argument position (or the result) for the entries of `part`, whose hooks are among `hooks`; None when none has any.

        A value is NULL where `wanted` is False, where its hook captures none, and where the payload is too short for it.
        """
        groups = sources.of(part.hook, hooks)
        if not groups:
            return None
        if len(groups) == 1 and groups[0][1] is None and (groups[0][0].in_word or int(part.spare.min()) >= groups[0][0].slots_needed):
            source = groups[0][0]
            if wanted is None or source.shape is not Shape.TEXT:
                return Column(self._read(source, part.payload, part.word, part.spare), wanted)
        bits = np.zeros(part.size, dtype=np.int64)
        valid = np.zeros(part.size, dtype=np.bool_)
        for source, rows in groups:
            chosen = self._chosen(source, rows, part, wanted)
            bits[chosen] = self._read(source, part.payload[chosen], part.word[chosen], part.spare[chosen])
            valid[chosen] = True
        return Column(bits, None if valid.all() else valid)

    @staticmethod
    def _chosen(source: Source, rows: Ints | None, part: Part, wanted: Mask | None) -> Ints:
        """The rows of a group that have their value."""
        chosen = np.arange(part.size) if rows is None else rows
        if wanted is not None:
            chosen = chosen[wanted[chosen]]
        return chosen if source.in_word else chosen[part.spare[chosen] >= source.slots_needed]

    def _read(self, source: Source, payload: Ints, words: NDArray[np.uint64], spare: NDArray[np.uint8]) -> Ints:
        if source.shape is Shape.TEXT:
            descriptors = words if source.in_word else self._gather(payload, source.offset, "<u8")
            return self._strings.ids(self._slots, payload, descriptors, spare.astype(np.int64) * SLOT_BYTES)
        if source.in_word:
            return word_bits(words, source.shape)
        return to_bits(self._gather(payload, source.offset, DTYPES[source.shape]), source.shape)

    def _gather(self, payload: Ints, offset: int, dtype: str) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize
        slot, inside = divmod(offset, SLOT_BYTES)
        if inside % size:
            return gather(self._slots, payload - 1, offset, dtype)
        column: NDArray[Any] = self._slots.view(dtype)[inside // size :: SLOT_BYTES // size]
        return column[payload + slot if slot else payload]
