"""Reading chunks: the published prefix of a map, the entries' heads, and gathers from their payloads. All vectorised, none copies a slot.

Everything here works on a map (u8, one byte a slot) and its slots (u8, 32 bytes a slot), be they views of a pool or frames of a
`records` batch. `heads` are the slot indexes at which entries start.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.dtype import ENTRY_DTYPE
from strobe.lanes.layout import SLOT_BYTES

Heads = NDArray[np.int64]
Bytes = NDArray[np.uint8]
KIND_OFFSET: Final = int(ENTRY_DTYPE.fields["kind"][1]) if ENTRY_DTYPE.fields else 20


def published(slot_map: Bytes, start: int, limit: int) -> tuple[Heads, int]:
    """Heads in [start, limit) of the entries published without a gap since `start`, and where they end."""
    window = slot_map[start:limit]
    heads = np.flatnonzero(window)
    if not heads.size:
        return heads, start
    ends = heads + window[heads]
    fits = np.empty(heads.size, dtype=np.bool_)
    fits[0] = heads[0] == 0
    np.equal(heads[1:], ends[:-1], out=fits[1:])
    if not fits.all():
        count = int(fits.argmin())
        heads, ends = heads[:count], ends[:count]
        if not count:
            return heads, start
    end = start + int(ends[-1])
    if start:
        heads += start
    return heads, end


def heads_of(slot_map: Bytes) -> Heads:
    """Heads in the map frame of a batch: there every entry is published."""
    return np.flatnonzero(slot_map)


def entries(slots: Bytes, heads: Heads) -> NDArray[np.void]:
    """The entries' headers as a structured array (a copy of 32 bytes each)."""
    wide = slots.view(np.uint64).reshape(-1, SLOT_BYTES // 8)  # taking rows of integers is five times faster than taking structures
    return wide.take(heads, axis=0).view(ENTRY_DTYPE).reshape(-1)


def kinds(slots: Bytes, heads: Heads) -> Bytes:
    """The entries' kinds, without copying their headers."""
    return slots[KIND_OFFSET::SLOT_BYTES][heads]


def payload_sizes(slot_map: Bytes, heads: Heads) -> NDArray[np.int64]:
    """Bytes of payload each entry has room for."""
    return (slot_map[heads].astype(np.int64) - 1) * SLOT_BYTES


def gather(slots: Bytes, heads: Heads, offset: int, dtype: Any) -> NDArray[Any]:
    """The value of `dtype` at payload `offset` of each entry. Offsets need no alignment. Callers see to it that payloads reach that far."""
    kind: np.dtype[Any] = np.dtype(dtype)
    places = (heads + 1) * SLOT_BYTES + offset
    shifted = slots[offset % kind.itemsize :]
    values: NDArray[Any] = shifted[: shifted.size // kind.itemsize * kind.itemsize].view(kind)
    return values[places // kind.itemsize]


def payload(slots: Bytes, slot_map: Bytes, head: int) -> bytes:
    """One entry's payload, for the few that need it whole."""
    return slots[(head + 1) * SLOT_BYTES : (head + int(slot_map[head])) * SLOT_BYTES].tobytes()
