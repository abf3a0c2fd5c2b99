"""What was lost, counted exactly: totals in shared memory against what the store was told."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool

LANES_FULL: Final = "lanesFull"
THREAD_DIED: Final = "threadDied"
SAMPLED: Final = "sampled"  # calls that were not to be recorded
OUTPUT: Final = "outputBytes"  # of output that only the recorder could copy
IMAGES: Final = "valuesLeftOut"  # no record was lost, but what its arguments point to
_KINDS: Final = {kind: kind.name.lower() for kind in Kind}
_BY_HOOK: Final = frozenset({Kind.ENTER, Kind.EXIT, Kind.UNWIND, Kind.YIELD, Kind.RESUME})  # counted at their hook as well


class Losses:
    """`hook_limit`: ids up to this one may be in use; looking at all 65,536 each time would cost more than the rest of the collector."""

    def __init__(self, pool: Pool, state: Any = None) -> None:
        self._pool = pool
        used = np.flatnonzero(pool.hooks["flags"] | (pool.hooks["dropped"] != 0) | (pool.hooks["left_out"] != 0))
        self.hook_limit = int(used.max(initial=0))
        self._hooks = np.zeros(pool.hooks.size, dtype=np.uint64)
        self._left_out = np.zeros(pool.hooks.size, dtype=np.uint64)
        self._kinds = np.zeros(pool.header["dropped_by_kind"].size, dtype=np.uint64)
        self._images = self._output = self.unfinished_told = 0
        self.unfinished_before = 0  # counted by earlier collectors
        if state is not None:
            hooks, left_out, kinds, self.unfinished_before, self.unfinished_told, self._images, self._output = state
            for counts, (ids, totals) in ((self._hooks, hooks), (self._left_out, left_out)):
                counts[np.frombuffer(ids, dtype=np.uint32)] = np.frombuffer(totals, dtype=np.uint64)
            self._kinds[:] = np.frombuffer(kinds, dtype=np.uint64)
        self._packed: list[Any] | None = None

    def state(self, unfinished: int) -> list[Any]:
        """For a successor: [[hook ids, their drops], [hook ids, their calls left out], drops by kind, unfinished entries seen, of them told,
        images left out, bytes of output lost]."""
        if self._packed is None:
            self._packed = [_not_zero(self._hooks), _not_zero(self._left_out), self._kinds.tobytes()]
        return [*self._packed, self.unfinished_before + unfinished, self.unfinished_told, self._images, self._output]

    def news(self, unfinished: int) -> list[dict[str, Any]]:
        """Headers of `losses` batches for what was lost since the last call; it counts as told."""
        batches: list[dict[str, Any]] = []
        hooks = self._grown("dropped", self._hooks)
        kinds = self._pool.header["dropped_by_kind"].copy()
        others = {_KINDS.get(Kind(kind), str(kind)) if kind in _KINDS else str(kind): int(kinds[kind] - self._kinds[kind]) for kind in self._other_kinds(kinds)}
        if hooks or others:
            batches.append({"hooks": hooks, "kinds": others, "cause": LANES_FULL})
            self._kinds[:] = kinds
            self._packed = None
        if left_out := self._grown("left_out", self._left_out):
            batches.append({"hooks": left_out, "kinds": {}, "cause": SAMPLED})
            self._packed = None
        if self.unfinished_before + unfinished > self.unfinished_told:
            batches.append({"hooks": {}, "kinds": {"unfinished": self.unfinished_before + unfinished - self.unfinished_told}, "cause": THREAD_DIED})
            self.unfinished_told = self.unfinished_before + unfinished
        images = int(self._pool.header["images_left_out"])
        if images > self._images:
            batches.append({"hooks": {}, "kinds": {"image": images - self._images}, "cause": IMAGES})
            self._images = images
        output = int(self._pool.header["output_lost"])
        if output > self._output:
            batches.append({"hooks": {}, "kinds": {"outputByte": output - self._output}, "cause": OUTPUT})
            self._output = output
        return batches

    def _grown(self, name: str, told: NDArray[np.uint64]) -> dict[int, int]:
        """By how much a hook's number is above what was told; it counts as told."""
        totals = self._pool.hooks[name][: self.hook_limit + 1].copy()
        grown = np.flatnonzero(totals != told[: totals.size])
        more = dict(zip(grown.tolist(), (totals[grown] - told[grown]).tolist(), strict=True))
        told[grown] = totals[grown]
        return more

    def widen(self) -> None:
        """From now on look at all hooks."""
        self.hook_limit = self._hooks.size - 1

    def totals(self, unfinished: int) -> dict[str, int]:
        """By cause, since the session began; what is 0 is left out."""
        kinds, images = self._pool.header["dropped_by_kind"], int(self._pool.header["images_left_out"])
        output = int(self._pool.header["output_lost"])
        found = {LANES_FULL: int(kinds.sum(dtype=np.uint64)), THREAD_DIED: self.unfinished_before + unfinished, IMAGES: images, OUTPUT: output}
        return {cause: lost for cause, lost in found.items() if lost}

    def _other_kinds(self, kinds: Any) -> list[int]:
        return [kind for kind in np.flatnonzero(kinds != self._kinds).tolist() if kind not in _BY_HOOK]


def _not_zero(counts: NDArray[np.uint64]) -> list[bytes]:
    ids = np.flatnonzero(counts).astype(np.uint32)
    return [ids.tobytes(), counts[ids].tobytes()]
