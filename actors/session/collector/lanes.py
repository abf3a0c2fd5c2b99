"""From chunks to slices: what is published and not yet sent, which chunks are done with, and what dead threads left behind.

A chunk's slots go through three positions: `written` (reserved by its thread), `sent` (in a batch), `read` (committed by the store; in
shared memory, so that it survives this process). Nothing here is done per record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from actors.session.collector.owners import thread_alive
from strobe.lanes.layout import CHUNK_SLOTS, SLOT_BYTES, ChunkState, Kind
from strobe.lanes.pool import Pool
from strobe.lanes.reader import KIND_OFFSET, entries, published

_STATE: Final = 0
_SERIAL: Final = 1
_PID: Final = 2
_TID: Final = 3
_THREAD: Final = 4
_ORDER: Final = 5
_WRITTEN: Final = 6
_READ: Final = 7
REPAIR_AFTER: Final = 8  # looks in a row at which `chunks_free` was off by the same number
GAP_WAIT_NS: Final = 500_000_000  # so long the newer chunks of a thread wait for a gap in an older one


@dataclass(frozen=True, slots=True)
class Slice:
    """Slots [start, end) of a chunk, all published."""

    index: int
    serial: int
    start: int
    end: int
    thread: int
    pid: int
    tid: int
    comm: str


@dataclass(frozen=True, slots=True)
class Advance:
    """`read` of this chunk becomes `end` once the batch that carries it is committed."""

    index: int
    serial: int
    end: int


class Lanes:
    """The pool as its reader sees it. `look` first, then `take` as often as there is something."""

    def __init__(self, pool: Pool, committed: Mapping[int, tuple[int, int]]) -> None:
        """`committed` is {chunk: (serial, slots)} of the last batch that the store has: it may be ahead of `read`."""
        self._pool = pool
        count = pool.chunk_count
        self._committed = dict(committed)
        self._serial = np.zeros(count, dtype=np.uint32)  # of the use that the positions below belong to
        self._sent = np.zeros(count, dtype=np.uint32)
        self._final = np.full(count, CHUNK_SLOTS, dtype=np.uint32)  # where a closed chunk is done with
        self._quiet_since = np.zeros(count, dtype=np.int64)
        self._seen = np.zeros((count, 2), dtype=np.uint32)  # state and written at the last look
        self._names: dict[int, str] = {}
        self._heads: NDArray[np.uint32] = pool.heads.copy()
        self._limit = self._sent.copy()
        self._looked = False
        self._free_off = (0, 0)  # by how much `chunks_free` is off, and at how many looks in a row
        self.unfinished = 0  # entries that dead threads had begun and never published
        self._skipped: list[Advance] = []  # slots passed over without a slice: they ride on the next batch

    def look(self, now_ns: int) -> int:
        """Takes a new look at all chunks; answers how many slots wait."""
        if (count := self._pool.chunk_count) > self._sent.size:
            self._widen(count)
        heads = self._pool.all_heads[: self._sent.size].copy()
        if self._looked and heads.tobytes() == self._heads.tobytes():  # nothing has moved: the usual case of an idle target
            return self._waiting()
        self._heads, self._looked = heads, True
        used = heads[:, _STATE] != ChunkState.FREE
        fresh = used & (heads[:, _SERIAL] != self._serial)
        for index in np.flatnonzero(fresh).tolist():
            self._begin(index)
        written = np.minimum(heads[:, _WRITTEN], CHUNK_SLOTS)
        self._limit = np.where(used, np.maximum(written, self._sent), self._sent)
        seen = heads[:, (_STATE, _WRITTEN)]
        self._quiet_since[(seen != self._seen).any(axis=1)] = now_ns
        self._seen = seen
        # A closed chunk without a slot written is one whose freeing was cut short.
        done = (heads[:, _STATE] == ChunkState.CLOSED) & ((heads[:, _READ] >= self._final) | (heads[:, _WRITTEN] == 0))
        for index in np.flatnonzero(done).tolist():
            self._free(index)
        return self._waiting()

    @property
    def short(self) -> bool:
        return 2 * int(self._pool.header["chunks_free"]) < self._pool.chunk_count

    def grow_when_short(self) -> None:
        """More chunks before the last ones are needed."""
        if self.short:
            self._pool.grow()

    def _widen(self, count: int) -> None:
        """The pool has grown."""
        more = count - self._sent.size
        self._serial, self._sent, self._limit = (np.pad(rows, (0, more)) for rows in (self._serial, self._sent, self._limit))
        self._final = np.pad(self._final, (0, more), constant_values=CHUNK_SLOTS)
        self._quiet_since = np.pad(self._quiet_since, (0, more))
        self._seen = np.pad(self._seen, ((0, more), (0, 0)))
        self._heads = np.pad(self._heads, ((0, more), (0, 0)))

    def _waiting(self) -> int:
        return int((self._limit - self._sent).sum(dtype=np.int64))

    def take(self, slots_max: int, now_ns: int) -> Iterator[Slice]:
        """Slices of what was published at the last look, each thread's in its order, until they hold `slots_max` slots."""
        heads = self._heads
        work = np.flatnonzero(self._limit > self._sent)
        order = np.lexsort((heads[work, _ORDER], heads[work, _THREAD]))
        blocked = -1
        for index in work[order].tolist():
            thread = int(heads[index, _THREAD])
            if thread == blocked:
                continue
            if self._pool.all_heads[index, _SERIAL] != self._serial[index]:
                continue  # claimed anew while the look was taken
            start, limit = int(self._sent[index]), int(self._limit[index])
            end = self._published_end(index, start, min(limit, start + slots_max))
            if end > start:
                self._sent[index] = end
                yield self._slice(index, start, end)
                slots_max -= end - start
                if slots_max <= 0:
                    return
            if end < limit and now_ns - int(self._quiet_since[index]) < GAP_WAIT_NS:
                blocked = thread

    def marks(self, part: Slice) -> NDArray[np.void]:
        """The output marks among a slice's entries."""
        slot_map, slots = self.views(part)
        # Payload bytes may look like a mark: only the first slot of an entry counts.
        found = np.flatnonzero((slots[KIND_OFFSET::SLOT_BYTES] == Kind.OUTPUT_MARK) & (slot_map != 0))
        return entries(slots, found)

    def views(self, part: Slice) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Map and slots of a slice, in shared memory."""
        return self._pool.maps[part.index][part.start : part.end], self._pool.slots[part.index][part.start * SLOT_BYTES : part.end * SLOT_BYTES]

    def position(self) -> dict[int, tuple[int, int]]:
        """{chunk: (serial, slots sent)} of all chunks whose `read` does not say it already."""
        ahead = np.flatnonzero((self._sent != self._pool.all_heads[: self._sent.size, _READ]) & (self._serial != 0))
        return {index: (int(self._serial[index]), int(self._sent[index])) for index in ahead.tolist()}

    def advance(self, advances: Sequence[Advance]) -> None:
        """The store has committed these."""
        for item in advances:
            if self._pool.all_heads[item.index, _SERIAL] == item.serial:
                self._pool.all_heads[item.index, _READ] = item.end

    def take_skipped(self) -> list[Advance]:
        """What was passed over since the last batch."""
        skipped, self._skipped = self._skipped, []
        return skipped

    def snapshot(self) -> dict[int, tuple[int, int]]:
        """{chunk: (serial, written)} as of the last look, of what is not sent yet: a goal for `reached`."""
        return {index: (int(self._serial[index]), int(self._limit[index])) for index in np.flatnonzero(self._limit > self._sent).tolist()}

    def reached(self, goal: Mapping[int, tuple[int, int]]) -> bool:
        """Everything that stood in `goal` is sent."""
        return all(self._serial[index] != serial or self._sent[index] >= written for index, (serial, written) in goal.items())

    def bury(self, now_ns: int, quiet_ns: int) -> None:
        """Closes the chunks of threads that the last look saw, that are dead now and were quiet for `quiet_ns`.

        What they never published is passed over. A thread that the look saw and that is dead cannot have come by another chunk since.
        """
        heads = self._heads
        # While both are 0 a new owner has not written its name yet.
        owned = (heads[:, _STATE] != ChunkState.FREE) & (heads[:, _PID] != 0) & (heads[:, _TID] != 0)
        alive: dict[tuple[int, int], bool] = {}
        for index in np.flatnonzero(owned & (self._sent < self._final) & (now_ns - self._quiet_since >= quiet_ns)).tolist():
            owner = int(heads[index, _PID]), int(heads[index, _TID])
            if owner not in alive:
                alive[owner] = thread_alive(*owner)
            if not alive[owner]:
                self._close(index)

    def repair_free(self) -> None:
        """Mends `chunks_free` after a writer was killed between counting a chunk and claiming it.

        A writer that is merely stopped there looks the same; then the counter is off by one until the next repair, which does no harm:
        it is a hint, and only the claim itself decides.
        """
        off = int(np.count_nonzero(self._heads[:, _STATE] == ChunkState.FREE)) - int(self._pool.header["chunks_free"])
        times = self._free_off[1] + 1 if off == self._free_off[0] else 1
        if off and times >= REPAIR_AFTER:
            self._pool.add_free(off)
            off = times = 0
        self._free_off = (off, times)

    def _begin(self, index: int) -> None:
        """A chunk that was claimed since, or is looked at for the first time.

        Not before something is written in it: until its new owner has prepared it, it bears the serial of its former use, and what is known
        of that must not be taken for this one's. `written` is read first: with the same serial after it, it belongs to that serial's use.
        """
        head = self._pool.all_heads[index]
        written, serial = int(head[_WRITTEN]), int(head[_SERIAL])
        if not written or not serial:
            return
        sent = int(head[_READ])
        known = self._committed.pop(index, None)
        if known is not None and known[0] == serial:
            sent = max(sent, known[1])
            head[_READ] = sent
        self._serial[index], self._sent[index], self._final[index] = serial, sent, CHUNK_SLOTS
        self._names.pop(index, None)

    def _published_end(self, index: int, start: int, limit: int) -> int:
        """May lie beyond `limit`, by the end of an entry that begins before it."""
        window = self._pool.maps[index][start:limit]
        if window.size and int(window.sum(dtype=np.int64)) == limit - start:
            # Entries do not overlap: if the last one ends in the window and all sizes add up to its length, there is no gap in it.
            tail = window[-255:]
            last = int(np.flatnonzero(tail)[-1])
            if last + int(tail[last]) == tail.size:
                return limit
        return published(self._pool.maps[index], start, limit)[1]

    def _slice(self, index: int, start: int, end: int) -> Slice:
        head = self._pool.all_heads[index]  # as it is now: what is published was written after all of it
        name = self._names.get(index)
        if name is None:
            name = self._names[index] = bytes(self._pool.chunks[index]["comm"]).split(b"\0")[0].decode(errors="replace")
        return Slice(index, int(self._serial[index]), start, end, int(head[_THREAD]), int(head[_PID]), int(head[_TID]), name)

    def _close(self, index: int) -> None:
        """The owner is dead, so nothing in this chunk moves any more."""
        head = self._pool.all_heads[index]
        limit = min(int(head[_WRITTEN]), CHUNK_SLOTS)
        start = int(self._sent[index])
        if self._published_end(index, start, limit) < limit:
            self._skip_gap(index, start, limit)
        self._final[index] = limit
        if head[_STATE] == ChunkState.OWNED:
            head[_STATE] = ChunkState.CLOSED

    def _skip_gap(self, index: int, start: int, limit: int) -> None:
        """Passes over one gap when it is next to be sent; the slices before and after it go their usual way."""
        slot_map = self._pool.maps[index]
        end = published(slot_map, start, limit)[1]
        if end > start:
            return  # first what is published before the gap
        after = np.flatnonzero(slot_map[start:limit])
        to = start + int(after[0]) if after.size else limit
        self.unfinished += 1
        self._sent[index] = to
        self._skipped.append(Advance(index, int(self._serial[index]), to))

    def _free(self, index: int) -> None:
        """For the next writer. Ordered so that a process killed between two steps leaves a chunk that is merely freed again."""
        head = self._pool.all_heads[index]
        head[_WRITTEN] = 0
        self._pool.maps[index] = 0
        head[_READ] = head[_PID] = head[_TID] = 0
        self._sent[index] = self._limit[index] = 0
        self._final[index] = CHUNK_SLOTS
        self._heads[index] = 0  # whoever owns it next is not who this look saw
        self._pool.add_free(1)
        head[_STATE] = ChunkState.FREE
        if index < int(self._pool.header["claim_hint"]):
            self._pool.header["claim_hint"] = index
