"""Rows of all branches in order, read through narrow windows: the trace map says where the first N events after a point lie, and when
the filters leave too few of them there, the window grows eightfold. So a page costs about what it shows, however large the session."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.blocks import Columns
from actors.store.query.branches import Branch, Where
from actors.store.query.rows import Rows, meeting
from actors.store.trace_map import TraceMap, Window

GROWTH: Final = 8
SORTED_HERE_MAX: Final = 10_000  # events of a window
NEAR: Final = 8192  # numbers between two stretches that cost less to read along than another statement
_FAR: Final = 1 << 62
SPAN_MAX: Final = 16_384  # numbers that are looked through in memory
UNKNOWN_DENSITY: Final = 1 / 16  # of filters that the counters cannot tell
_BY_TIME: Final = ("event_ts", "event_n")
_BY_ARRIVAL: Final = ("event_n",)

Key = tuple[int, ...]
Possible = list[tuple[Branch, Where]]


@dataclass(frozen=True, slots=True)
class Row:
    """An event of a page: its branch, its place in the page's order, and its columns by name."""

    branch: Branch
    n: int
    ts: int
    key: Key
    columns: dict[str, Any]

    def keyed(self, *first: int) -> Row:
        """The same with more in front of its key."""
        return Row(self.branch, self.n, self.ts, (*first, *self.key), self.columns)


@dataclass(frozen=True, slots=True)
class Found:
    """Rows in order. All that matches and has a number below `unseen` is among them but the last, or comes before them; None: all of it."""

    rows: list[Row]
    unseen: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where rows may lie, ends included; `after`: behind this (ts, n)."""

    n_low: int
    n_high: int
    ts_high: int | None = None
    after: Key | None = None

    def sql(self, branch: Branch) -> list[str]:
        """The bound of the time stands alone, so that whole row groups can be skipped by it."""
        found = [f"{branch.n} BETWEEN {self.n_low} AND {self.n_high}"]
        if self.ts_high is not None:
            found.append(f"{branch.ts} <= {self.ts_high}")
        if self.after is not None:
            ts, n = self.after
            found.append(f"{branch.ts} >= {ts} AND ({branch.ts} > {ts} OR {branch.n} > {n})")
        return found

    def mask(self, columns: Columns) -> NDArray[np.bool_]:
        n, ts = columns["event_n"], columns["event_ts"]
        found: NDArray[np.bool_] = (n >= self.n_low) & (n <= self.n_high)
        if self.ts_high is not None:
            found &= ts <= self.ts_high
        if self.after is not None:
            found &= (ts > self.after[0]) | ((ts == self.after[0]) & (n > self.after[1]))
        return found


class Scanner:
    """`density`: about which share of the events the filters leave; None when that is not known beforehand."""

    def __init__(self, rows: Rows, trace_map: TraceMap, density: float | None = None) -> None:
        self._rows = rows
        self._map = trace_map
        self.density = density
        self._all: list[_Part] | None = None

    def few(self, possible: Possible, most: int) -> int | None:
        """How many rows match, if at most `most` of each branch do: they are kept then, and pages by time and arrival are made of them."""
        parts = []
        for branch, condition in possible:
            columns = self._rows.select(branch, [condition.text()], condition.texts, end=f"LIMIT {most + 1}")
            parts.append(_Part.of(branch, columns, None))
            if parts[-1].size > most:
                return None
        self._all = parts
        return sum(part.size for part in parts)

    def by_time(self, possible: Possible, limit: int, after: Key | None, ts_from: int | None, ts_to: int | None) -> Found:
        """The first `limit` rows in order of (ts, n) behind `after`; none of them lies outside `ts_from` and `ts_to`."""
        begin = max((bound for bound in (ts_from, after[0] if after else None) if bound is not None), default=None)

        def window_of(count: int) -> Window:
            window = self._map.by_time(begin, count)
            past_end = window.ts_high is not None and ts_to is not None and window.ts_high >= ts_to
            return replace(window, ts_high=None, whole=True) if past_end else window

        return self._grow(window_of, possible, limit, _BY_TIME, Bounds(1, self._rows.last_n, None, after))

    def at_once(self, possible: Possible, limit: int, after: Key | None) -> Found:
        """The same without windows: for filters that say themselves where the rows lie."""
        bounds = Bounds(1, self._rows.last_n, None, after)
        return self._of_all(limit, _BY_TIME, bounds) or self.fetch(possible, limit, _time_keys, bounds.sql)

    def by_arrival(self, possible: Possible, limit: int, after_n: int) -> Found:
        """The first `limit` rows in order of n behind `after_n`."""

        def window_of(count: int) -> Window:
            return self._map.by_arrival(after_n, count)

        return self._grow(window_of, possible, limit, _BY_ARRIVAL, Bounds(after_n + 1, self._rows.last_n))

    def _grow(self, window_of: Callable[[int], Window], possible: Possible, limit: int, order: tuple[str, ...], bounds: Bounds) -> Found:
        if (found := self._of_all(limit, order, bounds)) is not None:
            return found
        count = math.ceil((limit + 1) / max(UNKNOWN_DENSITY if self.density is None else self.density, 1e-6))
        while True:
            window = window_of(count)
            inside = replace(bounds, n_low=max(bounds.n_low, window.n_low), n_high=min(bounds.n_high, window.n_high), ts_high=window.ts_high)
            rows = self._within(possible, limit, order, inside, window)
            if len(rows.rows) >= limit or window.whole:
                outside = None if window.ts_high is None else self._map.first_after(window.ts_high)
                return Found(rows.rows, min((n for n in (rows.unseen, outside) if n is not None), default=None))
            count *= GROWTH

    def _of_all(self, limit: int, order: tuple[str, ...], bounds: Bounds) -> Found | None:
        """From the rows that `few` kept."""
        return None if self._all is None else _merged([part.where(bounds.mask(part.columns)) for part in self._all], order, limit)

    def _within(self, possible: Possible, limit: int, order: tuple[str, ...], bounds: Bounds, window: Window) -> Found:
        """The first `limit` rows of a window: from memory where it is narrow; sorted here where they are few, which in SQL costs more."""
        ranges = window.ranges or ((bounds.n_low, bounds.n_high),)
        if sum(min(high, bounds.n_high) - low for low, high in ranges) <= SPAN_MAX and all(condition.tests is not None for _, condition in possible):
            self._read_near(possible, ranges)
            return _merged([part for low, high in ranges for part in self._remembered(possible, replace(bounds, n_low=low, n_high=high))], order, limit)
        if window.events > SORTED_HERE_MAX:
            return self.fetch(possible, limit, _time_keys if order == _BY_TIME else _arrival_keys, bounds.sql)
        found = [(branch, self._rows.select(branch, [condition.text(), *bounds.sql(branch)], condition.texts)) for branch, condition in possible]
        return _merged([_Part.of(branch, columns, None) for branch, columns in found], order, limit)

    def _read_near(self, possible: Possible, ranges: Sequence[tuple[int, int]]) -> None:
        """Sees to it that ranges which lie near each other are read by one statement, not by one each."""
        if len(ranges) < 2 or any(condition.tests is None for _, condition in possible) or sum(high - low for low, high in ranges) > SPAN_MAX:
            return
        low, high = ranges[0]
        for following_low, following_high in (*ranges[1:], (_FAR, _FAR)):
            if following_low - high > NEAR or high - low > 2 * SPAN_MAX:
                for branch, _ in possible:
                    self._rows.numbered(branch, low, high)
                low = following_low
            high = following_high

    def _remembered(self, possible: Possible, bounds: Bounds) -> list[_Part]:
        return [
            _Part.of(branch, columns, bounds.mask(columns) & meeting(branch, columns, condition.tests or ()))
            for branch, condition in possible
            for columns in self._rows.numbered(branch, bounds.n_low, bounds.n_high)
        ]

    def fetch(self, possible: Possible, limit: int, keys: Callable[[Branch], list[str]], more: Callable[[Branch], Iterable[str]]) -> Found:
        """The first `limit` rows by `keys` of those that also meet `more`, sorted in SQL."""
        parts: list[_Part] = []
        for branch, condition in possible:
            by = keys(branch)
            end = f"ORDER BY {', '.join(f'key{index}' for index in range(len(by)))} LIMIT {limit}"
            parts.append(_Part.of(branch, self._rows.select(branch, [condition.text(), *more(branch)], condition.texts, keys=by, end=end), None))
            order = tuple(f"key{index}" for index in range(len(by)))
        if not parts:
            return Found([], None)
        found = _merged(parts, order, limit)
        return Found(found.rows, self._map.first_after(found.rows[-1].ts - 1)) if found.rows else found

    def count_between(self, possible: Possible, ts_from: int | None, ts_to: int | None) -> int | None:
        """How many events lie between two times, both included, when nothing else is asked; None: they must be counted in SQL.

        Blocks of the map that lie inside are counted by it, those at the bounds by their rows.
        """
        inside, edges = self._map.between(ts_from, ts_to)
        self._read_near(possible, edges)
        counts = [self.count_numbered(possible, low, high) for low, high in edges] if sum(high - low for low, high in edges) <= SPAN_MAX else [None]
        known = [count for count in counts if count is not None]
        return inside + sum(known) if len(known) == len(counts) else None

    def count_numbered(self, possible: Possible, low: int, high: int) -> int | None:
        """How many rows with such numbers match; None: they must be counted in SQL."""
        if high - low > SPAN_MAX:
            return None
        if any(condition.tests is None for _, condition in possible):
            return None
        return sum(part.size for part in self._remembered(possible, Bounds(low, high)))

    def key_at(self, possible: Possible, place: int, ts_from: int | None) -> Key | None:
        """The (ts, n) of the row at `place` (from 0) in order of time; None when there are fewer."""
        count = math.ceil((place + 1) / max(UNKNOWN_DENSITY if self.density is None else self.density, 1e-6))
        while possible:
            window = self._map.by_time(ts_from, count)
            parts, texts = [], []
            for branch, condition in possible:
                where = " AND ".join([condition.text(), *Bounds(window.n_low, window.n_high, window.ts_high).sql(branch)])
                parts.append(f"SELECT {branch.ts} AS ts, {branch.n} AS n FROM {branch.table} WHERE {where}")
                texts += condition.texts
            found = self._rows.run(f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY ts, n LIMIT 1 OFFSET {place}", texts).fetchall()
            if found or window.whole:
                return tuple(found[0]) if found else None
            count *= GROWTH
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a branch: those of `columns` at `places`."""

    branch: Branch
    columns: Columns
    places: NDArray[np.int64]

    @classmethod
    def of(cls, branch: Branch, columns: Columns, mask: NDArray[np.bool_] | None) -> _Part:
        return cls(branch, columns, np.arange(columns["event_n"].size) if mask is None else np.flatnonzero(mask))

    def where(self, mask: NDArray[np.bool_]) -> _Part:
        return _Part(self.branch, self.columns, np.flatnonzero(mask))

    @property
    def size(self) -> int:
        return int(self.places.size)


def _merged(parts: list[_Part], by: tuple[str, ...], limit: int) -> Found:
    """The first `limit` rows of all parts by the columns `by`, the last of which is the number.

    `unseen`: the lowest number among the others and the last of them (which says there are more).
    """
    parts = [part for part in parts if part.size]
    if not parts:
        return Found([], None)
    keys = [np.concatenate([part.columns[name][part.places] for part in parts]) for name in by]
    sizes = [part.size for part in parts]
    owners, places = np.repeat(np.arange(len(parts)), sizes), np.concatenate([part.places for part in parts])
    order = np.lexsort(keys[::-1])
    rest, order = order[limit - 1 :], order[:limit]
    rows: list[Row | None] = [None] * order.size
    chosen_owners = owners[order]
    for owner in np.unique(chosen_owners).tolist():
        part = parts[owner]
        mine = np.flatnonzero(chosen_owners == owner)
        taken = places[order[mine]]
        columns = [column[taken].tolist() for column in part.columns.values()]
        key_columns = [part.columns[name][taken].tolist() for name in by]
        for place, values, key in zip(mine.tolist(), zip(*columns, strict=True), zip(*key_columns, strict=True), strict=True):
            named = dict(zip(part.columns, values, strict=True))
            rows[place] = Row(part.branch, named["event_n"], named["event_ts"], key, named)
    return Found([row for row in rows if row is not None], int(keys[-1][rest].min()) if rest.size else None)


def _time_keys(branch: Branch) -> list[str]:
    return [branch.ts, branch.n]


def _arrival_keys(branch: Branch) -> list[str]:
    return [branch.n]
