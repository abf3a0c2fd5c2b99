"""Records to rows, vectorised: from the published slots of a commit's batches to columns of `calls` and `exits`.

One pass over all batches of a commit. Nothing here is per record in Python; the only loops are over batches, slices of chunks, and
kinds of value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.clock import to_session_ns
from actors.store.columns import Column
from actors.store.hook_table import HookTable
from actors.store.open_calls import OPEN_DTYPE, OpenCalls, RecentCalls, find
from actors.store.schema import UNWOUND, VALUE_COLUMNS
from actors.store.strings import StringTable
from actors.store.values import ValueReader
from strobe.lanes.layout import SLOT_BYTES, Kind

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
WORDS: Final = SLOT_BYTES // 8


@dataclass(frozen=True, slots=True)
class Records:
    """One `records` batch as received: map and slot bytes, the stored thread of each slice with its number of slots, clock points."""

    slot_map: NDArray[np.uint8]
    slots: NDArray[np.uint8]
    threads: list[tuple[int, int]]
    clock: list[int] | None


@dataclass(slots=True)
class Decoded:
    """Rows ready to be stored, columns by name. `used` arrival numbers were taken; `strange` records had no known hook."""

    calls: dict[str, Column] = field(default_factory=dict)
    exits: dict[str, Column] = field(default_factory=dict)
    more_values: dict[str, Column] = field(default_factory=dict)
    used: int = 0
    strange: int = 0
    newest: int | None = None


@dataclass(slots=True)
class Entries:
    """Heads of a commit's entries, field by field, in the order they came; `n` follows time within the commit."""

    heads: Ints
    ts: Ints
    span: Ints
    hook: Ints
    kind: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    word: NDArray[np.uint64]
    thread: NDArray[np.int32]
    n: Ints
    rooms: Ints

    def at(self, rows: Ints) -> Entries:
        return Entries(*(getattr(self, name)[rows] for name in self.__slots__))


class Decoder:
    """Keeps what lasts from commit to commit: hooks, texts, open calls."""

    def __init__(self, hooks: HookTable, strings: StringTable, open_calls: OpenCalls, started_ns: int) -> None:
        self.hooks = hooks
        self.strings = strings
        self.open_calls = open_calls
        self.recent = RecentCalls()
        self.started_ns = started_ns

    def call_of(self, span: int | None) -> tuple[int | None, int | None]:
        """(n, thread) of a call that is open, or was entered within the last few commits."""
        if not span:
            return None, None
        place, hit = find(self.open_calls.calls["span"], np.array([span], dtype=np.int64))
        if hit[0]:
            return int(self.open_calls.calls["n"][place[0]]), int(self.open_calls.calls["thread"][place[0]])
        return self.recent.find(span)

    def decode(self, batches: list[Records], first_n: int) -> Decoded:
        slot_map = np.concatenate([batch.slot_map for batch in batches]) if len(batches) > 1 else batches[0].slot_map
        slots = np.concatenate([batch.slots for batch in batches]) if len(batches) > 1 else batches[0].slots
        entries = self._entries(batches, slot_map, slots, first_n)
        done = Decoded(used=entries.heads.size)
        if not entries.heads.size:
            return done
        known = self.hooks.known[np.minimum(entries.hook, self.hooks.known.size - 1)]
        enters = np.flatnonzero((entries.kind == Kind.ENTER) & known)
        exits = np.flatnonzero(((entries.kind == Kind.EXIT) | (entries.kind == Kind.UNWIND)) & known)
        done.strange = int((entries.kind <= Kind.UNWIND).sum()) - enters.size - exits.size
        if enters.size or exits.size:
            values = ValueReader(slots, self.strings)
            self._pair(entries.at(enters), entries.at(exits), values, done)
        return done

    def _entries(self, batches: list[Records], slot_map: NDArray[np.uint8], slots: NDArray[np.uint8], first_n: int) -> Entries:
        heads = np.flatnonzero(slot_map)
        # The map is the truth about sizes, but both come from memory the target can write to: what reaches past the end is not read.
        counts = slot_map[heads].astype(np.int64)
        if heads.size and heads[-1] + counts[-1] > slot_map.size:
            heads, counts = heads[:-1], counts[:-1]
        words = slots.view(np.uint64).reshape(-1, WORDS)[heads]
        ts = np.empty(heads.size, dtype=np.int64)
        thread = np.empty(heads.size, dtype=np.int32)
        slot = row = 0
        for batch in batches:
            start = row
            for stored_thread, slot_count in batch.threads:
                slot += slot_count
                end = int(np.searchsorted(heads, slot))
                thread[row:end] = stored_thread
                row = end
            ts[start:row] = to_session_ns(words[start:row, 0], batch.clock, self.started_ns)
        packed = words[:, 2]
        return Entries(
            heads=heads,
            ts=ts,
            span=words[:, 1].astype(np.int64),
            hook=(packed & np.uint64(0xFFFFFFFF)).astype(np.int64),
            kind=(packed >> np.uint64(32)).astype(np.uint8),
            flags=(packed >> np.uint64(40)).astype(np.uint8),
            word=words[:, 3].copy(),
            thread=thread,
            n=first_n + arrival_ranks(ts),
            rooms=(counts - 1) * SLOT_BYTES,
        )

    def _pair(self, enters: Entries, exits: Entries, values: ValueReader, done: Decoded) -> None:
        """Finds each exit's enter and each enter's parent, in this commit or among the open calls."""
        order = np.argsort(enters.span, kind="stable")
        spans = enters.span[order]
        self.recent.add(spans, enters.n[order], enters.thread[order])
        place, hit = find(spans, exits.span)
        exit_of = np.full(enters.heads.size, -1, dtype=np.int64)
        exit_of[order[place[hit]]] = np.flatnonzero(hit)
        parent, caller = self._parents(enters, order, spans)
        self._calls(enters, exits, exit_of, parent, caller, values, done)
        late = np.flatnonzero(~hit)
        left = self._late_exits(exits.at(late), values, done)
        still_open = np.flatnonzero(exit_of < 0)
        opened = np.zeros(still_open.size, dtype=OPEN_DTYPE)
        for name, source in (("span", enters.span), ("n", enters.n), ("ts", enters.ts), ("hook", enters.hook), ("caller", caller), ("thread", enters.thread)):
            opened[name] = source[still_open]
        self.open_calls.change(left, opened)
        done.newest = max((int(part.ts.max()) for part in (enters, exits) if part.ts.size), default=None)

    def _parents(self, enters: Entries, order: Ints, spans: Ints) -> tuple[Ints, Ints]:
        """(n of the calling traced function's enter, its hook) for each enter; 0 where there is none."""
        wanted = enters.word.view(np.int64)
        place, hit = find(spans, wanted)
        source = order[place] if order.size else place
        parent = np.where(hit, enters.n[source], 0)
        caller = np.where(hit, enters.hook[source], 0)
        others = np.flatnonzero(~hit & (wanted != 0))
        if others.size:
            known = self.open_calls.calls
            place, hit = find(known["span"], wanted[others])
            rows = others[hit]
            parent[rows] = known["n"][place[hit]]
            caller[rows] = known["hook"][place[hit]]
        return parent, caller

    def _calls(self, enters: Entries, exits: Entries, exit_of: Ints, parent: Ints, caller: Ints, values: ValueReader, done: Decoded) -> None:
        if not enters.heads.size:
            return
        closed = exit_of >= 0
        valid = None if closed.all() else closed
        flags = enters.flags
        results: Column | None
        if exits.heads.size:
            taken = exits.at(np.where(closed, exit_of, 0))
            unwound = (taken.kind == Kind.UNWIND) & closed
            flags = flags | np.where(closed, taken.flags, 0).astype(np.uint8) | np.where(unwound, UNWOUND, 0).astype(np.uint8)
            exit_ts = np.maximum(taken.ts, enters.ts)  # a call cannot end before it began, whatever the clock's rounding says
            done.calls |= {"exit_n": Column(taken.n, valid), "exit_ts": Column(exit_ts, valid)}
            results = values.column(self.hooks.results, enters.hook, taken.heads, taken.word, taken.rooms, closed & ~unwound)
            if results is not None:
                done.calls["ret"] = results
        done.calls |= {
            "n": Column(enters.n),
            "ts": Column(enters.ts),
            "hook": Column(enters.hook.astype(np.int32)),
            "caller": Column(caller.astype(np.int32)),
            "thread": Column(enters.thread),
            "flags": Column(flags),
            "parent": Column(parent),
        }
        for position, source in enumerate(self.hooks.arguments):
            column = values.column(source, enters.hook, enters.heads, enters.word, enters.rooms)
            if column is None:
                continue
            if position < VALUE_COLUMNS:
                done.calls[f"a{position}"] = column
            else:
                _add_more(done, enters.n, position, column)

    def _late_exits(self, exits: Entries, values: ValueReader, done: Decoded) -> Ints:
        """Rows for exits whose enter is of an earlier commit; answers which open calls they end."""
        if not exits.heads.size:
            return np.zeros(0, dtype=np.int64)
        known = self.open_calls.calls
        place, hit = find(known["span"], exits.span)
        valid = None if hit.all() else hit
        entered = known[place] if known.size else np.zeros(exits.heads.size, dtype=OPEN_DTYPE)
        unwound = exits.kind == Kind.UNWIND
        done.exits = {
            "n": Column(exits.n),
            "call": Column(entered["n"].copy(), valid),
            "ts": Column(np.where(hit, np.maximum(exits.ts, entered["ts"]), exits.ts)),
            "enter_ts": Column(entered["ts"].copy(), valid),
            "hook": Column(exits.hook.astype(np.int32)),
            "caller": Column(np.where(hit, entered["caller"], 0).astype(np.int32)),
            "thread": Column(exits.thread),
            "flags": Column(exits.flags | np.where(unwound, UNWOUND, 0).astype(np.uint8)),
        }
        results = values.column(self.hooks.results, exits.hook, exits.heads, exits.word, exits.rooms, ~unwound)
        if results is not None:
            done.exits["ret"] = results
        return place[hit]


def arrival_ranks(ts: Ints) -> Ints:
    """0, 1, 2 … in order of time, equal times in the order they came: so numbers within a commit follow time over all threads."""
    size = ts.size
    if size < 2 or bool((ts[1:] >= ts[:-1]).all()):
        return np.arange(size, dtype=np.int64)
    ranks = np.empty(size, dtype=np.int64)
    ranks[np.argsort(ts, kind="stable")] = np.arange(size, dtype=np.int64)  # merges the threads' sorted runs: near linear
    return ranks


def _add_more(done: Decoded, n: Ints, position: int, column: Column) -> None:
    rows = np.arange(n.size) if column.valid is None else np.flatnonzero(column.valid)
    fresh: dict[str, NDArray[Any]] = {"n": n[rows], "position": np.full(rows.size, position, dtype=np.int32), "bits": column.values[rows]}
    for name, values in fresh.items():
        before = done.more_values.get(name)
        done.more_values[name] = Column(values if before is None else np.concatenate([before.values, values]))
