"""Records of a keeper's output file (agent/native/KEEPER.md, `output`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HEADER: Final = struct.Struct("<QQIBBH")
END_OF_STREAM: Final = 1
STDOUT: Final = 1
STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """Bytes that the keeper read at once. `offset`: of this stream before them; `start`, `end`: of the record in the file."""

    start: int
    end: int
    arrival_ns: int
    offset: int
    stream: int
    last: bool
    data: memoryview


def parse_output(content: memoryview, start: int = 0) -> Iterator[OutputRecord]:
    """The complete records in `content`, which was read from the file's offset `start`."""
    at = 0
    while at + HEADER.size <= len(content):
        arrival_ns, offset, count, stream, flags, _ = HEADER.unpack_from(content, at)
        data = at + HEADER.size
        end = data + (count + 7 & ~7)
        if end > len(content):
            return
        yield OutputRecord(start + at, start + end, arrival_ns, offset, stream, bool(flags & END_OF_STREAM), content[data : data + count])
        at = end
