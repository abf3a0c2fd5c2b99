"""Captured texts: each distinct one is stored once, and columns hold its id."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from strobe.lanes.layout import SLOT_BYTES, StringState

Ints = NDArray[np.int64]
NULL_ID: Final = 0
UNREADABLE_ID: Final = -1
KNOWN_MAX: Final = 200_000  # texts remembered; beyond it they are forgotten, and a text may get a second id


class StringTable:
    """Ids of texts. New ones wait in `fresh` for the commit: (id, text, truncated)."""

    def __init__(self, next_id: int = 1) -> None:
        self._next_id = next_id
        self._known: dict[tuple[bytes, bool], int] = {}
        self.fresh: list[tuple[int, str, bool]] = []

    def ids(self, slots: NDArray[np.uint8], payload: Ints, descriptors: NDArray[np.uint64], rooms: Ints) -> Ints:
        """The id for each descriptor (layout.STRING) of entries whose payloads begin at the slots `payload` and have `rooms` bytes.

        A descriptor that points outside its payload (the target's own writes can spoil it) counts as unreadable.
        """
        offsets = (descriptors & np.uint64(0xFFFF)).astype(np.int64)
        lengths = (descriptors >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.int64)
        states = (descriptors >> np.uint64(32) & np.uint64(0xFF)).astype(np.int64)
        found = np.full(payload.size, UNREADABLE_ID, dtype=np.int64)
        found[states == StringState.NULL] = NULL_ID
        inside = offsets + lengths <= rooms
        for state in (StringState.OK, StringState.TRUNCATED):
            rows = np.flatnonzero((states == state) & inside)
            if rows.size:
                starts = payload[rows] * SLOT_BYTES + offsets[rows]
                found[rows] = self._encode(slots, starts, lengths[rows], state == StringState.TRUNCATED)
        return found

    def _encode(self, slots: NDArray[np.uint8], starts: Ints, lengths: Ints, truncated: bool) -> Ints:
        ends = np.cumsum(lengths)
        begins = ends - lengths
        places = np.repeat(starts - begins, lengths) + np.arange(int(ends[-1]) if ends.size else 0)
        offsets = np.zeros(starts.size + 1, dtype=np.int32)
        offsets[1:] = ends
        texts = pa.Array.from_buffers(pa.binary(), starts.size, [None, pa.py_buffer(offsets), pa.py_buffer(slots[places])])
        coded = texts.dictionary_encode()
        ids = np.array([self._id(text, truncated) for text in coded.dictionary.to_pylist()], dtype=np.int64)
        indices: NDArray[np.int32] = coded.indices.to_numpy()
        return ids[indices]

    def _id(self, text: bytes, truncated: bool) -> int:
        key = (text, truncated)
        known = self._known.get(key)
        if known is not None:
            return known
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = self._next_id
        self.fresh.append((self._next_id, text.decode("utf-8", "replace"), truncated))
        self._next_id += 1
        return self._next_id - 1
