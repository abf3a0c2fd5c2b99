"""The keeper's output file as the collector reads it: forward, never twice, and its disk space given back behind what is committed."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from pathlib import Path
from typing import Final

from strobe.launch.output import OutputRecord, parse_output

READ_BYTES: Final = 1 << 20
_RECORD_BYTES_MAX: Final = (1 << 20) + 64  # the keeper reads at most 1 MiB at once
_PUNCH_BYTES: Final = 4 << 20
RECENT_BYTES: Final = 128 << 10
_KEEP_SIZE_PUNCH_HOLE: Final = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, <linux/falloc.h>
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Spool:
    """Reads on from file offset `position`; holds the bytes of each stream until they are taken."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.position = position  # everything before is read
        self._punched = 0
        self.recent_from = self._recent_next = position  # the record from which on the latest output is read anew: RECENT_BYTES of it, or twice as much
        self._pieces: dict[int, deque[tuple[int, int, memoryview]]] = {1: deque(), 2: deque()}  # (offset in stream, record's start, bytes)

    def close(self) -> None:
        os.close(self._file)

    def read(self, size: int) -> list[OutputRecord]:
        """Records up to file size `size`, about 1 MiB of them. Empty when all is read."""
        wanted = min(size - self.position, READ_BYTES + _RECORD_BYTES_MAX)
        if wanted <= 0:
            return []
        records = list(parse_output(memoryview(os.pread(self._file, wanted, self.position)), self.position))
        for record in records:
            self.position = record.end
            if record.end - self._recent_next > RECENT_BYTES:
                self.recent_from, self._recent_next = self._recent_next, record.start
            if record.data:
                self._pieces[record.stream].append((record.offset, record.start, record.data))
        return records

    def take(self, stream: int, offset: int, count: int) -> list[memoryview]:
        """The bytes [offset, offset + count) of a stream; forgets what comes before their end."""
        pieces = self._pieces[stream]
        taken: list[memoryview] = []
        end = offset + count
        while pieces and pieces[0][0] < end:
            start, _, data = pieces[0]
            taken.append(data[max(0, offset - start) : end - start])
            if start + len(data) > end:
                break
            pieces.popleft()
        return [piece for piece in taken if piece]

    def forget(self, stream: int, offset: int) -> None:
        """Nothing before `offset` of the stream will be asked for."""
        pieces = self._pieces[stream]
        while pieces and pieces[0][0] + len(pieces[0][2]) <= offset:
            pieces.popleft()

    def needed_from(self) -> int:
        """File offset of the first record of which something is not taken yet: where a successor must read on."""
        return min((pieces[0][1] for pieces in self._pieces.values() if pieces), default=self.position)

    def committed(self, position: int) -> None:
        """The store has everything before this file offset: its blocks go back to the disk, the file's size stays."""
        end = min(position, self.recent_from) & ~4095
        if end - self._punched < _PUNCH_BYTES:
            return
        # Where the file system cannot punch holes the file simply stays as large as it is.
        _LIBC.fallocate(self._file, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_long(self._punched), ctypes.c_long(end - self._punched))
        self._punched = end
