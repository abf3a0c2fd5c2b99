"""The entries of a commit's batches, split into enters and exits, field by field. Few passes, and none over more than it must.

Measured per event on the machine that docs/benchmarks names: taking whole 32-byte heads costs 4 ns, a field from where it lies 3 ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.clock import to_session_ns
from strobe.lanes.layout import SLOT_BYTES, Kind

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
_HEAD: Final = np.dtype(f"V{SLOT_BYTES}")
_KIND_AT: Final = 20  # layout.ENTRY
_FLAGS_AT: Final = 21


@dataclass(frozen=True, slots=True)
class Records:
    """One `records` batch as received: map and slot bytes, the stored thread of each slice with its number of slots, clock points."""

    slot_map: Bytes
    slots: Bytes
    threads: list[tuple[int, int]]
    clock: list[int] | None


@dataclass(frozen=True, slots=True)
class Part:
    """Entries of one sort. `payload` is the slot after each head, `spare` how many slots follow the head."""

    ts: Ints
    n: Ints
    span: Ints
    hook: NDArray[np.int32]
    flags: Bytes
    word: NDArray[np.uint64]
    thread: NDArray[np.int32]
    payload: Ints
    spare: Bytes
    unwound: NDArray[np.bool_] | None  # exits: where the call did not return; None: nowhere

    @property
    def size(self) -> int:
        return self.ts.size

    def take(self, rows: Ints) -> Part:
        return Part(
            ts=self.ts.take(rows),
            n=self.n.take(rows),
            span=self.span.take(rows),
            hook=self.hook.take(rows),
            flags=self.flags.take(rows),
            word=self.word.take(rows),
            thread=self.thread.take(rows),
            payload=self.payload.take(rows),
            spare=self.spare.take(rows),
            unwound=None if self.unwound is None else self.unwound.take(rows),
        )


@dataclass(frozen=True, slots=True)
class Entries:
    """Every enter and exit took an arrival number, in the order of `times`; `hooks` are the ids that occur; `strange` ones had no known hook."""

    slots: Bytes
    enters: Part
    exits: Part
    hooks: Ints
    times: Ints
    strange: int


def read_entries(batches: Sequence[Records], known: NDArray[np.bool_], first_n: int, started_ns: int) -> Entries:
    """Enters and exits of hooks that are `known` (by id)."""
    slot_map, slots = _joined([batch.slot_map for batch in batches]), _joined([batch.slots for batch in batches])
    heads = np.flatnonzero(slot_map)
    # Sizes come from memory that the target can write to: an entry that would reach past the end is not read.
    if heads.size and heads[-1] + slot_map[heads[-1]] > slot_map.size:
        heads = heads[:-1]
    kinds = slots[_KIND_AT::SLOT_BYTES][heads]
    entered, left = kinds == Kind.ENTER, (kinds == Kind.EXIT) | (kinds == Kind.UNWIND)
    events = entered | left
    if not bool(events.all()):  # padding (of no time at all) and output marks are no events
        heads, kinds, entered, left = heads[events], kinds[events], entered[events], left[events]
    ts, thread = _times_and_threads(batches, slots, heads, started_ns)
    ranks, times = arrival_ranks(ts)
    n = first_n + ranks
    whole = _Whole(slot_map, slots, heads, ts, n, thread, kinds)
    enters = whole.part(np.flatnonzero(entered), exits=False)
    exits = whole.part(np.flatnonzero(left), exits=True)
    strange = 0
    hooks = np.union1d(np.flatnonzero(np.bincount(enters.hook)), np.flatnonzero(np.bincount(exits.hook)))
    good = known[np.minimum(hooks, known.size - 1)] & (hooks < known.size)
    if not good.all():
        hooks = hooks[good]
        before = enters.size + exits.size
        enters = enters.take(np.flatnonzero(np.isin(enters.hook, hooks)))
        exits = exits.take(np.flatnonzero(np.isin(exits.hook, hooks)))
        strange = before - enters.size - exits.size
    return Entries(slots, enters, exits, hooks, times, strange)


@dataclass(frozen=True, slots=True)
class _Whole:
    slot_map: Bytes
    slots: Bytes
    heads: Ints
    ts: Ints
    n: Ints
    thread: NDArray[np.int32]
    kinds: Bytes

    def part(self, rows: Ints, *, exits: bool) -> Part:
        heads = self.heads.take(rows)
        taken = self.slots.view(_HEAD).take(heads)
        words, halves, single = taken.view(np.uint64).reshape(-1, 4), taken.view(np.uint32).reshape(-1, 8), taken.view(np.uint8).reshape(-1, SLOT_BYTES)
        unwound = self.kinds.take(rows) == Kind.UNWIND if exits else None
        # A hook id beyond any table (spoiled memory) becomes one that no session has.
        hook = np.minimum(halves[:, 4], np.uint32(1 << 20)).astype(np.int32)
        return Part(
            ts=self.ts.take(rows),
            n=self.n.take(rows),
            span=words[:, 1].astype(np.int64),
            hook=hook,
            flags=single[:, _FLAGS_AT].copy(),
            word=words[:, 3].copy(),
            thread=self.thread.take(rows),
            payload=heads + 1,
            spare=self.slot_map.take(heads) - np.uint8(1),
            unwound=unwound if unwound is not None and unwound.any() else None,
        )


def _joined(arrays: list[Any]) -> NDArray[Any]:
    return np.concatenate(arrays) if len(arrays) > 1 else np.asarray(arrays[0])


def _times_and_threads(batches: Sequence[Records], slots: Bytes, heads: Ints, started_ns: int) -> tuple[Ints, NDArray[np.int32]]:
    raw = slots.view(np.uint64)[:: SLOT_BYTES // 8][heads]
    ts = np.empty(heads.size, dtype=np.int64)
    numbers = [thread for batch in batches for thread, _ in batch.threads]
    ends = np.cumsum([count for batch in batches for _, count in batch.threads])
    rows = np.searchsorted(heads, ends)
    thread = np.repeat(np.array(numbers, dtype=np.int32), np.diff(rows, prepend=0))
    start = part = 0
    for batch in batches:
        part += len(batch.threads)
        end = int(rows[part - 1]) if part else 0
        ts[start:end] = to_session_ns(raw[start:end], batch.clock, started_ns)
        start = end
    return ts, thread


def arrival_ranks(ts: Ints) -> tuple[Ints, Ints]:
    """0, 1, 2 … in order of time, equal times in the order they came, and the times in that order.

    So numbers within a commit follow time over all threads.
    """
    places = np.arange(ts.size, dtype=np.int64)
    if bool((ts[1:] >= ts[:-1]).all()):
        return places, ts
    order = np.argsort(ts, kind="stable")  # merges the threads' sorted runs: near linear
    ranks = np.empty(ts.size, dtype=np.int64)
    ranks[order] = places
    return ranks, ts.take(order)
