"""Output that the recorder copied (`copy_output` of the pool): of a process that was attached to there is no keeper that reads it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.layout import SLOT_BYTES, Kind
from strobe.lanes.reader import KIND_OFFSET
from strobe.launch.output import STDERR, STDOUT

RECENT_BYTES: Final = 128 << 10
_HEAD: Final = struct.Struct("<QQIBBBBQ")  # layout.ENTRY
_PIECE: Final = struct.Struct("<QQ")  # offset in the stream, bytes
View = tuple[NDArray[np.uint8], NDArray[np.uint8]]


class Copied:
    """`recent`: what each stream was given lately."""

    def __init__(self) -> None:
        self.recent: dict[int, bytearray] = {STDOUT: bytearray(), STDERR: bytearray()}

    def take(self, views: Sequence[View], to_ns: Callable[[int], int]) -> tuple[list[dict[str, Any]], bytes]:
        """Segments of an `output` batch and their bytes, in the order of their times. `views`: map and slots of slices."""
        pieces = sorted(piece for slot_map, slots in views for piece in _pieces(slot_map, slots))
        for _, _, stream, _, data in pieces:
            self.recent[stream] += data
            del self.recent[stream][:-RECENT_BYTES]
        segments: list[dict[str, Any]] = []
        before: tuple[int, int, int] | None = None
        for ticks, offset, stream, span, data in pieces:
            if before == (ticks, offset, stream):  # of the same write
                segments[-1]["bytes"] += len(data)
            else:
                segments.append({"stream": stream, "offset": offset, "bytes": len(data), "tsNs": to_ns(ticks), "approximate": False, "span": span or None})
            before = ticks, offset + len(data), stream
        return segments, b"".join(piece[-1] for piece in pieces)


def _pieces(slot_map: NDArray[np.uint8], slots: NDArray[np.uint8]) -> list[tuple[int, int, int, int, bytes]]:
    """(time, offset in stream, stream, span, bytes) of each entry that holds output. Sizes come from memory that the target can write to."""
    found = []
    for at in np.flatnonzero((slot_map > 1) & (slots[KIND_OFFSET::SLOT_BYTES] == Kind.OUTPUT_MARK)).tolist():
        start, room = at * SLOT_BYTES, (int(slot_map[at]) - 1) * SLOT_BYTES - _PIECE.size
        entry = slots[start : start + SLOT_BYTES * int(slot_map[at])].tobytes()
        if len(entry) < SLOT_BYTES + _PIECE.size:
            continue
        ticks, span, stream, *_ = _HEAD.unpack_from(entry)
        offset, size = _PIECE.unpack_from(entry, SLOT_BYTES)
        if stream in (STDOUT, STDERR) and 0 < size <= room:
            data = SLOT_BYTES + _PIECE.size
            found.append((ticks, offset, stream, span, entry[data : data + size]))
    return found
