"""Crash pages of the pool: each told to the session once, and free for the next crash when the store has the event."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.session.collector.owners import thread_alive
from actors.session.crash import GREGS, Crash
from strobe.lanes.layout import (
    CRASH_EXCEPTION_BYTES,
    CRASH_EXCEPTION_OFFSET,
    CRASH_MAPS_BYTES,
    CRASH_MAPS_OFFSET,
    CRASH_STACK_BYTES,
    CRASH_STACK_OFFSET,
    StringState,
)
from strobe.lanes.pool import Pool

FREE = 0
WRITING = 1
COMPLETE = 2


class CrashPages:
    def __init__(self, pool: Pool, handled: Iterable[tuple[int, int]] = ()) -> None:
        """`handled`: (page, ts) of crashes whose event the store has: they are only freed."""
        self._pool = pool
        self._states = pool.crash_bytes[:, :4].view(np.uint32)[:, 0]  # a plain view: cheap to look at each time
        self._handled = set(handled)  # in a batch that is not committed yet, or committed by a predecessor
        self._told: set[tuple[int, int]] = set()
        for page, ts in list(self._handled):
            self.free(page, ts)

    def state(self) -> list[list[int]]:
        return [[page, ts] for page, ts in sorted(self._handled)]

    def look(self) -> list[Crash]:
        """Crashes that were not told before."""
        if not self._states.any():
            return []
        found = []
        for page in np.flatnonzero(self._states == COMPLETE).tolist():
            key = page, int(self._pool.crashes["ts"][page])
            if key not in self._told:
                self._told.add(key)
                found.append(self._read(page))
        return found

    def unfinished(self) -> bool:
        """Whether a thread that still lives is writing one. Pages of dead ones are freed."""
        living = False
        for page in np.flatnonzero(self._states == WRITING).tolist():
            row = self._pool.crashes[page]
            pid, tid = int(row["pid"]), int(row["tid"])
            if pid and tid and not thread_alive(pid, tid):
                row["state"] = FREE
            else:
                living = True
        return living

    def handle(self, ts: int, tid: int) -> tuple[int, int] | None:
        """The page that an event is about, now counted as handled; None: of no page."""
        for page in np.flatnonzero(self._states == COMPLETE).tolist():
            row = self._pool.crashes[page]
            if int(row["ts"]) == ts and int(row["tid"]) == tid:
                self._handled.add((page, ts))
                return page, ts
        return None

    def free(self, page: int, ts: int) -> None:
        """The store has its event."""
        self._handled.discard((page, ts))
        row = self._pool.crashes[page]
        if int(row["ts"]) == ts and int(row["state"]) == COMPLETE:
            self._told.discard((page, ts))
            row["state"] = FREE

    def _read(self, page: int) -> Crash:
        row = self._pool.crashes[page]
        content = self._pool.crash_bytes[page]
        stack_bytes = min(int(row["stack_bytes"]), CRASH_STACK_BYTES)
        maps_bytes = min(int(row["maps_bytes"]), CRASH_MAPS_BYTES)
        values: dict[str, Any] = {name: int(row[name]) for name in ("signo", "code", "address", "pid", "tid", "sender_pid", "ts", "span", "stack_base")}
        return Crash(
            **values,
            regs=dict(zip(GREGS, row["regs"].tolist(), strict=True)),
            stack=content[CRASH_STACK_OFFSET : CRASH_STACK_OFFSET + stack_bytes].tobytes(),
            maps=content[CRASH_MAPS_OFFSET : CRASH_MAPS_OFFSET + maps_bytes].tobytes().decode(errors="replace"),
            comm=bytes(row["comm"]).split(b"\0")[0].decode(errors="replace"),
            thrown=_thrown(content, int(row["exception_bytes"])),
        )


def _thrown(content: NDArray[np.uint8], size: int) -> tuple[str, str | None] | None:
    """(mangled type, message) of the payload that recorder_exception.c describes."""
    payload = content[CRASH_EXCEPTION_OFFSET : CRASH_EXCEPTION_OFFSET + min(size, CRASH_EXCEPTION_BYTES)].tobytes()
    if len(payload) < 16:
        return None
    texts = []
    for at in (0, 8):
        offset, length, state = struct.unpack_from("<HHI", payload, at)
        texts.append(None if state == StringState.NULL else payload[offset : offset + length].decode(errors="replace"))
    return (texts[0], texts[1]) if texts[0] else None
