"""Whole payloads of entries that have more to show than their scalars: gathered slot by slot, stored as one binary column a commit.

Taking whole 32-byte slots costs 4 ns each; taking single bytes would cost as much a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from actors.store.entries import Part
from strobe.lanes.layout import SLOT_BYTES

Ints = NDArray[np.int64]
_SLOT = np.dtype(f"V{SLOT_BYTES}")


@dataclass(frozen=True, slots=True)
class Payloads:
    """Of the events numbered `n`, ascending: `sizes` bytes each, one after the other in `body`. A payload ends with its entry's last slot."""

    n: Ints
    sizes: Ints
    body: NDArray[np.uint8]

    def to_table(self) -> pa.Table:
        offsets = np.zeros(self.n.size + 1, dtype=np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        body = pa.Array.from_buffers(pa.large_binary(), self.n.size, [None, pa.py_buffer(offsets), pa.py_buffer(self.body)])
        return pa.table({"n": self.n, "bytes": self.sizes.astype(np.int32), "body": body})


def gather_payloads(slots: NDArray[np.uint8], parts: Sequence[tuple[Part, Ints]]) -> Payloads | None:
    """Those of the given rows of each part; None when there is none."""
    chosen = [(part, rows[part.spare[rows] > 0]) for part, rows in parts]
    chosen = [(part, rows) for part, rows in chosen if rows.size]
    if not chosen:
        return None
    n, first, counts = (
        np.concatenate(columns)
        for columns in zip(*((part.n[rows], part.payload[rows], part.spare[rows].astype(np.int64)) for part, rows in chosen), strict=True)
    )
    order = np.argsort(n, kind="stable")  # numbers rise within a thread's records: near linear
    n, first, counts = n[order], first[order], counts[order]
    ends = np.cumsum(counts)
    places = np.repeat(first - (ends - counts), counts) + np.arange(ends[-1])
    return Payloads(n, counts * SLOT_BYTES, slots.view(_SLOT).take(places).view(np.uint8))
