"""How often each hooked function is called, estimated from what is collected: enough to tell hot functions, and cheap beside collecting."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.layout import HOOK_CAPACITY, SLOT_BYTES, Kind
from strobe.lanes.pool import Pool
from strobe.lanes.reader import KIND_OFFSET, entries

WINDOW_NS: Final = 100_000_000
LOOK_SLOTS: Final = 1024  # of each slice


class Rates:
    """`saw` each slice that goes out, then ask `window`."""

    def __init__(self, pool: Pool, now_ns: int) -> None:
        self._hooks = pool.hooks
        self._since = now_ns
        self._entered = np.zeros(HOOK_CAPACITY)
        self._unrecorded = self._counted(HOOK_CAPACITY)

    def saw(self, slot_map: NDArray[np.uint8], slots: NDArray[np.uint8]) -> None:
        """Entries spread evenly over a slice: its beginning stands for all of it."""
        looked = slot_map[:LOOK_SLOTS]
        places = np.flatnonzero(looked)
        places = places[slots[places * SLOT_BYTES + KIND_OFFSET] == Kind.ENTER]
        if places.size:
            hooks = entries(slots, places)["hook"]
            found = np.bincount(hooks[hooks < HOOK_CAPACITY])
            self._entered[: found.size] += found * (slot_map.size / looked.size)

    def window(self, now_ns: int, hook_limit: int) -> NDArray[np.float64] | None:
        """Calls a second of each hook up to `hook_limit` since the last window, recorded or not; None where that is not over yet."""
        if now_ns - self._since < WINDOW_NS:
            return None
        counted = self._counted(hook_limit + 1)
        rates: NDArray[np.float64] = (self._entered[: hook_limit + 1] + (counted - self._unrecorded[: hook_limit + 1])) * 1e9 / (now_ns - self._since)
        self._unrecorded[: hook_limit + 1] = counted
        self._entered[: hook_limit + 1] = 0
        self._since = now_ns
        return rates

    def _counted(self, size: int) -> NDArray[np.float64]:
        """Calls that found no room, enter and exit each counted, and those left out."""
        return self._hooks["left_out"][:size] + self._hooks["dropped"][:size] / 2
