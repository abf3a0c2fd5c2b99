"""Lines of a pipe, whole and of bounded length.

Neither dataclasses (10 ms), typing (5 ms) nor pathlib are imported here or in the shim's other files, for its client waits for `initialize`.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # as in typing, which takes 5 ms to import
if TYPE_CHECKING:
    from typing import Final

READ_BYTES: Final = 1 << 16
EDGE_BYTES: Final = 512
_ID: Final = rb'"id"\s*:\s*(-?\d+|"[^"\\]{0,200}")'
_ID_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST: Final = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Oversized:
    """A line over the limit: its length so far as it was read, and its id where first or last field shows it (as JSON)."""

    __slots__ = ("length", "request_id")

    def __init__(self, length: int, request_id: bytes) -> None:
        self.length = length
        self.request_id = request_id


class Lines:
    """Cuts what `read` gets from `fd`. Holds at most one line of `limit` bytes and one read."""

    def __init__(self, fd: int, limit: int) -> None:
        self.ended = False
        self._fd = fd
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0
        self._head = b""
        self._tail = b""

    def read(self) -> list[bytes | Oversized]:
        """Lines that are complete now, without their newline, empty ones left out. Sets `ended` at the end of the pipe."""
        data = os.read(self._fd, READ_BYTES)
        if not data:
            self.ended = True
            return []
        found: list[bytes | Oversized] = []
        *complete, rest = data.split(b"\n")
        for end in complete:
            self._add(end)
            line = self._take()
            if line:
                found.append(line)
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._limit:
            self._parts.append(part)
            return
        if self._parts:
            whole = b"".join(self._parts)
            self._head, self._tail = whole[:EDGE_BYTES], whole[-EDGE_BYTES:]
            self._parts.clear()
        self._tail = (self._tail + part)[-EDGE_BYTES:]

    def _take(self) -> bytes | Oversized:
        length, self._length = self._length, 0
        if length <= self._limit:
            line = b"".join(self._parts).strip()
            self._parts.clear()
            return line
        match = _ID_FIRST.match(self._head) or _ID_LAST.search(self._tail)
        return Oversized(length, match[1] if match else b"null")
