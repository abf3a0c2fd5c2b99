"""Interrupts queries that take too long: one thread for all of them, which sleeps while none does."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


@dataclass(eq=False, slots=True)
class Watched:
    """`late` becomes true when it was interrupted for its deadline."""

    work: Interruptible
    until: float
    late: bool = False


class Deadlines:
    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._watched: set[Watched] = set()
        self._sleeps_until = 0.0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @contextmanager
    def watch(self, work: Interruptible, until: float) -> Iterator[Watched]:
        """Interrupts `work` at `until` (time.monotonic); once left, it interrupts no more: what comes next on `work` is not met by it."""
        watched = Watched(work, until)
        with self._changed:
            self._watched.add(watched)
            if until < self._sleeps_until:
                self._changed.notify()
        try:
            yield watched
        finally:
            with self._changed:
                self._watched.discard(watched)

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                for watched in [one for one in self._watched if one.until <= now]:
                    watched.late = True
                    watched.work.interrupt()
                    self._watched.discard(watched)
                self._sleeps_until = min((one.until for one in self._watched), default=math.inf)
                self._changed.wait(None if math.isinf(self._sleeps_until) else self._sleeps_until - now)
                self._sleeps_until = 0.0

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
