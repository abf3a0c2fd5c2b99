"""Rows of all branches in order, read through narrow windows: the trace map says where the first N events after a point lie, and when
the filters leave too few of them there, the window grows eightfold. So a page costs about what it shows, however large the session."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from actors.store.query.branches import Branch, Where
from actors.store.trace_map import TraceMap, Window

GROWTH: Final = 8
SORTED_HERE_MAX: Final = 10_000  # events of a window
UNKNOWN_DENSITY: Final = 1 / 16  # of filters that the counters cannot tell
_DETAILS: Final = {
    "raw_calls": "hook, thread, flags, n AS call, exit_n, ts AS enter_ts, exit_ts, parent, ret",
    "raw_exits": "hook, thread, flags, call, enter_ts, ret",
    "output": "stream, start, text, approximate, parent, thread",
    "points": "type, pid, tid, thread_name, function, file, line, text, data, parent",
}

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


class Scanner:
    """`density`: about which share of the events the filters leave; None when that is not known beforehand."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace_map: TraceMap, value_columns: int, density: float | None) -> None:
        self._run = connection.execute
        self._map = trace_map
        self._values = "".join(f", a{k}" for k in range(value_columns))
        self._density = UNKNOWN_DENSITY if density is None else max(density, 1e-6)

    def by_time(self, possible: Possible, limit: int, after: Key | None, ts_from: int | None, ts_to: int | None) -> Found:
        """The first `limit` rows in order of (ts, n) behind `after`; none of them lies outside `ts_from` and `ts_to`."""
        begin = max((bound for bound in (ts_from, after[0] if after else None) if bound is not None), default=None)

        def window_of(count: int) -> Window:
            window = self._map.by_time(begin, count)
            past_end = window.ts_high is not None and ts_to is not None and window.ts_high >= ts_to
            return replace(window, ts_high=None, whole=True) if past_end else window

        return self._grow(window_of, possible, limit, _time_keys, lambda branch: _behind(branch, after))

    def at_once(self, possible: Possible, limit: int, after: Key | None) -> Found:
        """The same without windows: for filters that say themselves where the rows lie."""
        return self.fetch(possible, limit, _time_keys, lambda branch: filter(None, [_behind(branch, after)]))

    def by_arrival(self, possible: Possible, limit: int, after_n: int) -> Found:
        """The first `limit` rows in order of n behind `after_n`."""

        def window_of(count: int) -> Window:
            return self._map.by_arrival(after_n, count)

        return self._grow(window_of, possible, limit, lambda branch: [branch.n], lambda branch: f"{branch.n} > {after_n}")

    def _grow(
        self, window_of: Callable[[int], Window], possible: Possible, limit: int, keys: Callable[[Branch], list[str]], more: Callable[[Branch], str]
    ) -> Found:
        count = math.ceil((limit + 1) / self._density)
        while True:
            window = window_of(count)

            def within(branch: Branch, window: Window = window) -> list[str]:
                return [*_bounds(branch, window), *filter(None, [more(branch)])]

            rows = self.fetch(possible, limit, keys, within, sort_here=window.events <= SORTED_HERE_MAX)
            if len(rows.rows) >= limit or window.whole:
                outside = None if window.ts_high is None else self._map.first_after(window.ts_high)
                return Found(rows.rows, min((n for n in (rows.unseen, outside) if n is not None), default=None))
            count *= GROWTH

    def fetch(
        self, possible: Possible, limit: int, keys: Callable[[Branch], list[str]], more: Callable[[Branch], Iterable[str]], *, sort_here: bool = False
    ) -> Found:
        """The first `limit` rows by `keys` of those that also meet `more`. `sort_here`: they are few, and sorting them in SQL costs more."""
        parts: list[_Part] = []
        for branch, condition in possible:
            by = keys(branch)
            shown = ", ".join(f"{expression} AS key{index}" for index, expression in enumerate(by))
            values = self._values if branch.table == "raw_calls" else ""
            sql = f"SELECT {shown}, {branch.n} AS event_n, {branch.ts} AS event_ts, {_DETAILS[branch.table]}{values} FROM {branch.table}"
            sql += f" WHERE {' AND '.join([condition.text(), *more(branch)])}"
            if not sort_here:
                sql += f" ORDER BY {', '.join(f'key{index}' for index in range(len(by)))} LIMIT {limit}"
            columns = self._run(sql, condition.texts).fetchnumpy()
            parts.append(_Part(branch, [columns.pop(f"key{index}") for index in range(len(by))], columns))
        found = _merged(parts, limit)
        return found if sort_here or not found.rows else Found(found.rows, self._map.first_after(found.rows[-1].ts - 1))

    def key_at(self, possible: Possible, place: int, ts_from: int | None) -> Key | None:
        """The (ts, n) of the row at `place` (from 0) in order of time; None when there are fewer."""
        count = math.ceil((place + 1) / self._density)
        while possible:
            window = self._map.by_time(ts_from, count)
            parts, texts = [], []
            for branch, condition in possible:
                where = " AND ".join([condition.text(), *_bounds(branch, window)])
                parts.append(f"SELECT {branch.ts} AS ts, {branch.n} AS n FROM {branch.table} WHERE {where}")
                texts += condition.texts
            found = self._run(f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY ts, n LIMIT 1 OFFSET {place}", texts).fetchall()
            if found or window.whole:
                return tuple(found[0]) if found else None
            count *= GROWTH
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    branch: Branch
    keys: list[NDArray[np.int64]]
    columns: dict[str, Any]


def _merged(parts: list[_Part], limit: int) -> Found:
    """The first `limit` rows of all parts; `unseen`: the lowest number among the others and the last of them (which says there are more)."""
    parts = [part for part in parts if part.keys[0].size]
    if not parts:
        return Found([], None)
    keys = [np.concatenate(column) for column in zip(*(part.keys for part in parts), strict=True)]
    sizes = [part.keys[0].size for part in parts]
    owners, places = np.repeat(np.arange(len(parts)), sizes), np.concatenate([np.arange(size) for size in sizes])
    order = np.lexsort(keys[::-1])
    rest, order = order[limit - 1 :], order[:limit]
    rows: list[Row | None] = [None] * order.size
    for owner, part in enumerate(parts):
        mine = np.flatnonzero(owners[order] == owner)
        taken = places[order[mine]]
        columns = [column[taken].tolist() for column in part.columns.values()]
        key_columns = [column[taken].tolist() for column in part.keys]
        for place, values, key in zip(mine.tolist(), zip(*columns, strict=True), zip(*key_columns, strict=True), strict=True):
            named = dict(zip(part.columns, values, strict=True))
            rows[place] = Row(part.branch, named["event_n"], named["event_ts"], key, named)
    return Found([row for row in rows if row is not None], int(keys[-1][rest].min()) if rest.size else None)


def _time_keys(branch: Branch) -> list[str]:
    return [branch.ts, branch.n]


def _behind(branch: Branch, key: Key | None) -> str:
    """Behind a key (ts, n); the bound of the time stands alone so that whole row groups can be skipped by it."""
    return f"{branch.ts} >= {key[0]} AND ({branch.ts} > {key[0]} OR {branch.n} > {key[1]})" if key else ""


def _bounds(branch: Branch, window: Window) -> list[str]:
    bounds = [f"{branch.n} BETWEEN {window.n_low} AND {window.n_high}"]
    if window.ts_high is not None:
        bounds.append(f"{branch.ts} <= {window.ts_high}")
    return bounds
