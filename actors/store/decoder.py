"""Records to rows, vectorised: from the published slots of a commit's batches to columns of `raw_calls` and `raw_exits`.

One pass over all batches of a commit. Nothing here is per record in Python; the only loops are over batches, slices of chunks, and
kinds of value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.store.columns import Column
from actors.store.entries import Entries, Part, Records, read_entries
from actors.store.hook_table import HookTable
from actors.store.open_calls import OPEN_DTYPE, OpenCalls, RecentCalls, SpanIndex, find
from actors.store.payloads import Payloads, gather_payloads
from actors.store.schema import UNWOUND, VALUE_COLUMNS
from actors.store.strings import StringTable
from actors.store.values import ValueReader

Ints = NDArray[np.int64]
Columns = dict[str, Column]


@dataclass(slots=True)
class Decoded:
    """Rows ready to be stored, columns by name. One arrival number for each of `times`, in their order; `strange` records had no known hook.

    `moved`: (numbers, times) of exits that were set to their enter's time, because the clock's rounding had put them before it.
    """

    calls: Columns = field(default_factory=dict)
    exits: Columns = field(default_factory=dict)
    more_values: Columns = field(default_factory=dict)
    payloads: Payloads | None = None
    times: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    moved: list[tuple[Ints, Ints]] = field(default_factory=list)
    strange: int = 0

    @property
    def newest(self) -> int:
        return int(self.times[-1]) if self.times.size else 0


class Decoder:
    """Keeps what lasts from commit to commit: hooks, texts, open calls."""

    def __init__(self, hooks: HookTable, strings: StringTable, open_calls: OpenCalls, started_ns: int) -> None:
        self.hooks = hooks
        self.strings = strings
        self.open_calls = open_calls
        self.recent = RecentCalls()
        self.started_ns = started_ns

    def call_of(self, span: int) -> tuple[int | None, int | None]:
        """(n, thread) of a call that is open, or was entered within the last few commits."""
        if not span:
            return None, None
        place, hit = find(self.open_calls.calls["span"], np.array([span], dtype=np.int64))
        if hit[0]:
            return int(self.open_calls.calls["n"][place[0]]), int(self.open_calls.calls["thread"][place[0]])
        return self.recent.find(span)

    def decode(self, batches: Sequence[Records], first_n: int) -> Decoded:
        entries = read_entries(batches, self.hooks.known, first_n, self.started_ns)
        done = Decoded(times=entries.times, strange=entries.strange)
        enters, exits = entries.enters, entries.exits
        if not enters.size and not exits.size:
            return done
        index = SpanIndex(enters.span)
        values = ValueReader(entries.slots, self.strings)
        row, hit = index.find(exits.span)
        parent, caller = self._parents(enters, index)
        closed_by = np.full(enters.size, -1, dtype=np.int64)
        if bool(hit.all()):
            closed_by[row] = np.arange(exits.size)
            left = np.zeros(0, dtype=np.int64)
        else:
            closed_by[row[hit]] = np.flatnonzero(hit)
            left = self._late_exits(exits.take(np.flatnonzero(~hit)), values, entries, done)
        if enters.size:
            done.calls = self._calls(enters, exits, closed_by, parent, caller, values, entries, done)
        done.payloads = self._payloads(entries)
        self.open_calls.change(left, _opened(enters, caller, np.flatnonzero(closed_by < 0)))
        self.recent.add(index, enters.n, enters.thread)
        return done

    def _payloads(self, entries: Entries) -> Payloads | None:
        """Of hooks with deep values, and of calls that an exception left (those say which one it was)."""
        parts: list[tuple[Part, Ints]] = []
        if self.hooks.keeps_any:
            for part, keeps in ((entries.enters, self.hooks.keeps_enters), (entries.exits, self.hooks.keeps_exits)):
                if keeps[entries.hooks].any():
                    parts.append((part, np.flatnonzero(keeps.take(part.hook))))
        exits = entries.exits
        if exits.unwound is not None:
            kept = self.hooks.keeps_exits.take(exits.hook) if self.hooks.keeps_any else np.False_
            parts.append((exits, np.flatnonzero(exits.unwound & ~kept)))
        return gather_payloads(entries.slots, parts) if parts else None

    def _parents(self, enters: Part, index: SpanIndex) -> tuple[Ints, NDArray[np.int32]]:
        """(n of the calling traced function's enter, its hook) for each enter; 0 where there is none."""
        wanted = enters.word.view(np.int64)
        row, hit = index.find(wanted)
        parent, caller = enters.n.take(row) * hit, enters.hook.take(row) * hit
        others = np.flatnonzero(~hit & (wanted != 0))
        if others.size:
            opened = self.open_calls.calls
            place, hit = find(opened["span"], wanted[others])
            rows = others[hit]
            parent[rows] = opened["n"][place[hit]]
            caller[rows] = opened["hook"][place[hit]]
        return parent, caller

    def _calls(
        self, enters: Part, exits: Part, closed_by: Ints, parent: Ints, caller: NDArray[np.int32], values: ValueReader, entries: Entries, done: Decoded
    ) -> Columns:
        columns = {
            "n": Column(enters.n), "ts": Column(enters.ts), "hook": Column(enters.hook), "caller": Column(caller), "thread": Column(enters.thread),
            "flags": Column(enters.flags), "parent": Column(parent),
        }  # fmt: skip
        if exits.size:
            columns |= self._ends(enters, exits, closed_by, values, entries, done)
        for position, source in enumerate(self.hooks.arguments):
            column = values.column(source, enters, entries.hooks)
            if column is None:
                continue
            if position < VALUE_COLUMNS:
                columns[f"a{position}"] = column
            else:
                _add_more(done, enters.n, position, column)
        return columns

    def _ends(self, enters: Part, exits: Part, closed_by: Ints, values: ValueReader, entries: Entries, done: Decoded) -> Columns:
        """The exits' columns in the rows of their enters."""
        closed = closed_by >= 0
        valid = None if closed.all() else closed
        taken = exits.take(closed_by if valid is None else np.maximum(closed_by, 0))
        exit_ts = np.maximum(taken.ts, enters.ts)
        _note_moved(done, taken.n, taken.ts, exit_ts, valid)
        columns = {"exit_n": Column(taken.n, valid), "exit_ts": Column(exit_ts, valid)}
        returned = valid
        flags = taken.flags
        if taken.unwound is not None:
            flags = flags | taken.unwound * np.uint8(UNWOUND)
            returned = closed & ~taken.unwound
        if flags.any():
            columns["flags"] = Column(enters.flags | (flags if valid is None else flags * closed))
        result = values.column(self.hooks.results, taken, entries.hooks, returned)
        if result is not None:
            columns["ret"] = result
        return columns

    def _late_exits(self, exits: Part, values: ValueReader, entries: Entries, done: Decoded) -> Ints:
        """Rows for exits whose enter is of an earlier commit; answers which open calls they end."""
        opened = self.open_calls.calls
        place, hit = find(opened["span"], exits.span)
        valid = None if hit.all() else hit
        entered = opened[place] if opened.size else np.zeros(exits.size, dtype=OPEN_DTYPE)
        flags = exits.flags if exits.unwound is None else exits.flags | exits.unwound * np.uint8(UNWOUND)
        ts = np.where(hit, np.maximum(exits.ts, entered["ts"]), exits.ts)
        _note_moved(done, exits.n, exits.ts, ts, valid)
        done.exits = {
            "n": Column(exits.n),
            "call": Column(entered["n"], valid),
            "ts": Column(ts),
            "enter_ts": Column(entered["ts"], valid),
            "hook": Column(exits.hook),
            "caller": Column(entered["caller"] * hit),
            "thread": Column(exits.thread),
            "flags": Column(flags),
        }
        result = values.column(self.hooks.results, exits, entries.hooks, None if exits.unwound is None else ~exits.unwound)
        if result is not None:
            done.exits["ret"] = result
        return place[hit]


def _note_moved(done: Decoded, n: Ints, recorded: Ints, ts: Ints, valid: NDArray[np.bool_] | None) -> None:
    moved = np.flatnonzero((ts != recorded) if valid is None else (ts != recorded) & valid)
    if moved.size:
        done.moved.append((n[moved], ts[moved]))


def _opened(enters: Part, caller: NDArray[np.int32], rows: Ints) -> NDArray[np.void]:
    opened = np.zeros(rows.size, dtype=OPEN_DTYPE)
    for name, source in (("span", enters.span), ("n", enters.n), ("ts", enters.ts), ("hook", enters.hook), ("caller", caller), ("thread", enters.thread)):
        opened[name] = source.take(rows)
    return opened


def _add_more(done: Decoded, n: Ints, position: int, column: Column) -> None:
    rows = np.arange(n.size) if column.valid is None else np.flatnonzero(column.valid)
    fresh: dict[str, NDArray[Any]] = {"n": n[rows], "position": np.full(rows.size, position, dtype=np.int32), "bits": column.values[rows]}
    for name, values in fresh.items():
        before = done.more_values.get(name)
        done.more_values[name] = Column(values if before is None else np.concatenate([before.values, values]))
