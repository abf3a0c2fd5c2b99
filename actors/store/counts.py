"""How many events a session holds, by what the commonest filters ask: kept as they are stored, so that such a total costs no scan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors.store.trace_map import TraceMap

Key = tuple[str, int, int]  # (branch, hook or stream, thread); points: (`point:` and type, 0, 0)
_DENSE_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the session's file held after some commit. A query counts and reads up to `last_n`, so both see the same."""

    last_n: int
    settled_ns: int
    newest_ns: int
    evicted: int
    map: TraceMap


class Counts:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Key, int] = {}
        self._all = 0
        self._called: dict[int, int] = {}
        self._snapshot = Snapshot(0, 0, 0, 0, TraceMap(1))

    def publish(self, added: Iterable[tuple[Key, int]], snapshot: Snapshot) -> None:
        """After a commit: what it added (negative: evicted), and how far the file now goes."""
        with self._lock:
            for key, number in added:
                self._counts[key] = self._counts.get(key, 0) + number
                self._all += number
                if key[0] == "enter" and number > 0:
                    self._called[key[1]] = self._called.get(key[1], 0) + number
            self._snapshot = snapshot

    def snapshot(self) -> Snapshot:
        with self._lock:
            return self._snapshot

    def total(self, wanted: Callable[[Key], bool] | None = None) -> tuple[int, Snapshot]:
        """The sum over the keys that `wanted` accepts (None: all), and the snapshot it belongs to."""
        with self._lock:
            if wanted is None:
                return self._all, self._snapshot
            return sum(number for key, number in self._counts.items() if wanted(key)), self._snapshot

    def called(self) -> dict[int, int]:
        """Calls by hook since the file was opened, those evicted since included."""
        with self._lock:
            return dict(self._called)

    def branches(self) -> set[str]:
        """Those that hold anything; `point` for all sorts of points."""
        with self._lock:
            return {key[0].partition(":")[0] for key, number in self._counts.items() if number}

    def holds(self, name: str) -> bool:
        with self._lock:
            return any(number for key, number in self._counts.items() if key[0] == name)

    def trace_events(self) -> int:
        return self.total(lambda key: key[0] in ("enter", "exit", "late"))[0]


def count_pairs(branch: str, hooks: NDArray[np.int32], threads: NDArray[np.int32]) -> list[tuple[Key, int]]:
    """How often each (hook, thread) occurs."""
    if not hooks.size:
        return []
    width = int(threads.max()) + 1
    codes = hooks.astype(np.int64) * width + threads
    if (int(hooks.max()) + 1) * width <= _DENSE_MAX:
        numbers = np.bincount(codes)
        present = np.flatnonzero(numbers)
        found = zip(present.tolist(), numbers[present].tolist(), strict=True)
    else:
        unique, times = np.unique(codes, return_counts=True)
        found = zip(unique.tolist(), times.tolist(), strict=True)
    return [((branch, code // width, code % width), number) for code, number in found]
