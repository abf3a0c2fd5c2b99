"""Which batches the store has taken and not stored yet, in a file that outlives it: a batch that it dies of twice is not taken a third time.

A death counts when the store died by itself (the supervisor tells its successor): then it was one of the batches in hand, or several. Until those are
stored they are taken one by one, so that the second death names the one. A kill from outside says nothing about any batch.

The file is mapped, so that marking a batch costs no system call; the kernel keeps what a process wrote that died. A row: session id (184 bytes, 0-padded),
u64 epoch, first and last batch in hand (first > last: none), last batch to be taken alone, deaths with it in hand, the batch not to be taken again.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

NAME_BYTES: Final = 184
ROW: Final = struct.Struct(f"<{NAME_BYTES}s6Q")
ROWS: Final = 256  # sessions that ingest at once; those beyond have no journal
DEATHS_MAX: Final = 2


class Row(NamedTuple):
    """One session's. `alone`: batches up to it are taken one by one. `deadly`: 0 if none is."""

    epoch: int = 0
    first: int = 1
    last: int = 0
    alone: int = 0
    deaths: int = 0
    deadly: int = 0

    def after(self, *, fell: bool) -> Row:
        """What the next store makes of it. Nothing is in its hands yet; a row that was suspect stays so."""
        if max(self) >= 1 << 63:
            return Row()  # not ours
        rest = self._replace(first=self.last + 1)
        if not fell or self.first > self.last:
            return rest
        deaths = self.deaths + 1
        deadly = self.last if deaths >= DEATHS_MAX and self.first == self.last else 0
        return rest._replace(alone=max(self.alone, self.last), deaths=deaths, deadly=deadly)


class InHand:
    """Of the whole store. `problem`: why it would not outlive this process (a full disk)."""

    def __init__(self, path: Path, *, fell: bool) -> None:
        self.problem: OSError | None = None
        try:
            self._memory = _mapped(path)
        except OSError as error:
            self.problem, self._memory = error, mmap.mmap(-1, ROWS * ROW.size)
        self._numbers: dict[str, int] = {}
        for number in range(ROWS):
            name, *values = ROW.unpack_from(self._memory, number * ROW.size)
            row = Row(*values).after(fell=fell)
            if row.deaths:
                self._numbers[name.rstrip(b"\0").decode(errors="replace")] = number
            self._write(number, name if row.deaths else b"", row if row.deaths else Row())

    def get(self, session_id: str) -> Row:
        number = self._numbers.get(session_id)
        return Row() if number is None else Row(*ROW.unpack_from(self._memory, number * ROW.size)[1:])

    def put(self, session_id: str, row: Row) -> None:
        """Not kept where all rows are in use, or the name is too long for one."""
        name = session_id.encode()
        if session_id not in self._numbers:
            taken = set(self._numbers.values())
            number = next((number for number in range(ROWS) if number not in taken), None)
            if number is None or len(name) > NAME_BYTES:
                return
            self._numbers[session_id] = number
        self._write(self._numbers[session_id], name, row)

    def forget(self, session_id: str) -> None:
        number = self._numbers.pop(session_id, None)
        if number is not None:
            self._write(number, b"", Row())

    def _write(self, number: int, name: bytes, row: Row) -> None:
        ROW.pack_into(self._memory, number * ROW.size, name, *row)

    def close(self) -> None:
        self._memory.close()


def _mapped(path: Path) -> mmap.mmap:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, ROWS * ROW.size)  # a page that finds no room would be a SIGBUS
        return mmap.mmap(file, ROWS * ROW.size)
    finally:
        os.close(file)


class SessionInHand:
    """Of one session."""

    def __init__(self, whole: InHand, session_id: str) -> None:
        self._whole = whole
        self._session_id = session_id
        self._row = whole.get(session_id)

    def is_deadly(self, epoch: int, seq: int) -> bool:
        """The store died of this very batch as often as it may."""
        return (epoch, seq) == (self._row.epoch, self._row.deadly)

    def is_suspect(self, epoch: int, seq: int) -> bool:
        """It is to be taken, and stored, while no other is in hand."""
        return self._row.deaths > 0 and epoch == self._row.epoch and seq <= self._row.alone

    def take(self, epoch: int, seq: int) -> None:
        """Before anything is made of it."""
        row = self._row
        if epoch != row.epoch or seq > row.alone:
            row = row._replace(alone=0, deaths=0, deadly=0)
        if epoch != row.epoch or row.first > row.last:
            row = row._replace(first=seq)
        self._put(row._replace(epoch=epoch, last=seq))

    def refuse(self) -> None:
        """The deadly one is put aside; those that were in hand with it at first stay suspect."""
        self._put(self._row._replace(deaths=1, deadly=0))

    def stored(self, epoch: int, seq: int) -> None:
        """All up to there."""
        if epoch == self._row.epoch:
            self._put(self._row._replace(first=seq + 1))

    def _put(self, row: Row) -> None:
        self._row = row
        self._whole.put(self._session_id, row)
