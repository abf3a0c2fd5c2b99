"""What was lost, counted exactly: totals in shared memory against what the store was told."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool

LANES_FULL: Final = "lanesFull"
THREAD_DIED: Final = "threadDied"
IMAGES: Final = "valuesLeftOut"  # no record was lost, but what its arguments point to
_KINDS: Final = {kind: kind.name.lower() for kind in Kind}
_BY_HOOK: Final = frozenset({Kind.ENTER, Kind.EXIT, Kind.UNWIND, Kind.YIELD, Kind.RESUME})  # counted at their hook as well


class Losses:
    """`hook_limit`: ids up to this one may be in use; looking at all 65,536 each time would cost more than the rest of the collector."""

    def __init__(self, pool: Pool, state: Any = None) -> None:
        self._pool = pool
        used = np.flatnonzero(pool.hooks["flags"] | (pool.hooks["dropped"] != 0))
        self.hook_limit = int(used.max(initial=0))
        self._hooks = np.zeros(pool.hooks.size, dtype=np.uint64)
        self._kinds = np.zeros(pool.header["dropped_by_kind"].size, dtype=np.uint64)
        self._images = self.unfinished_told = 0
        self.unfinished_before = 0  # counted by earlier collectors
        if state is not None:
            ids, totals, kinds, self.unfinished_before, self.unfinished_told, self._images = state
            self._hooks[np.frombuffer(ids, dtype=np.uint32)] = np.frombuffer(totals, dtype=np.uint64)
            self._kinds[:] = np.frombuffer(kinds, dtype=np.uint64)
        self._packed: list[Any] | None = None

    def state(self, unfinished: int) -> list[Any]:
        """For a successor: [hook ids, their totals, totals by kind, unfinished entries seen, of them told, images left out]."""
        if self._packed is None:
            ids = np.flatnonzero(self._hooks).astype(np.uint32)
            self._packed = [ids.tobytes(), self._hooks[ids].tobytes(), self._kinds.tobytes()]
        return [*self._packed, self.unfinished_before + unfinished, self.unfinished_told, self._images]

    def news(self, unfinished: int) -> list[dict[str, Any]]:
        """Headers of `losses` batches for what was lost since the last call; it counts as told."""
        batches: list[dict[str, Any]] = []
        totals = self._pool.hooks["dropped"][: self.hook_limit + 1].copy()
        grown = np.flatnonzero(totals != self._hooks[: totals.size])
        kinds = self._pool.header["dropped_by_kind"].copy()
        hooks = dict(zip(grown.tolist(), (totals[grown] - self._hooks[grown]).tolist(), strict=True))
        others = {_KINDS.get(Kind(kind), str(kind)) if kind in _KINDS else str(kind): int(kinds[kind] - self._kinds[kind]) for kind in self._other_kinds(kinds)}
        if hooks or others:
            batches.append({"hooks": hooks, "kinds": others, "cause": LANES_FULL})
            self._hooks[grown] = totals[grown]
            self._kinds[:] = kinds
            self._packed = None
        if self.unfinished_before + unfinished > self.unfinished_told:
            batches.append({"hooks": {}, "kinds": {"unfinished": self.unfinished_before + unfinished - self.unfinished_told}, "cause": THREAD_DIED})
            self.unfinished_told = self.unfinished_before + unfinished
        images = int(self._pool.header["images_left_out"])
        if images > self._images:
            batches.append({"hooks": {}, "kinds": {"image": images - self._images}, "cause": IMAGES})
            self._images = images
        return batches

    def widen(self) -> None:
        """From now on look at all hooks."""
        self.hook_limit = self._hooks.size - 1

    def totals(self, unfinished: int) -> dict[str, int]:
        """By cause, since the session began; what is 0 is left out."""
        kinds, images = self._pool.header["dropped_by_kind"], int(self._pool.header["images_left_out"])
        found = {LANES_FULL: int(kinds.sum(dtype=np.uint64)), THREAD_DIED: self.unfinished_before + unfinished, IMAGES: images}
        return {cause: lost for cause, lost in found.items() if lost}

    def _other_kinds(self, kinds: Any) -> list[int]:
        return [kind for kind in np.flatnonzero(kinds != self._kinds).tolist() if kind not in _BY_HOOK]
