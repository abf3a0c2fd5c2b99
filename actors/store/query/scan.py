"""Rows of all branches in order, read through narrow windows: the trace map says where the first N events after a point lie, and when
the filters leave too few of them there, the window grows eightfold. So a page costs about what it shows, however large the session."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from actors.store.query.branches import Branch, Where
from actors.store.trace_map import TraceMap, Window

GROWTH: Final = 8
SORTED_HERE_MAX: Final = 20_000
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
    """Rows in order. Everything that matches and has a number below `unseen` is among them, or comes before them; None: all of it."""

    rows: list[Row]
    unseen: int | None


class Scanner:
    """`density`: about which share of the events the filters leave; None when that is not known beforehand."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace_map: TraceMap, value_columns: int, density: float | None) -> None:
        self._run = connection.execute
        self._map = trace_map
        self._values = "".join(f", a{k}" for k in range(value_columns))
        self._density = UNKNOWN_DENSITY if density is None else max(density, 1e-6)

    def by_time(self, possible: Possible, limit: int, after: Key | None, ts_from: int | None) -> Found:
        """The first `limit` rows in order of (ts, n) behind `after`."""
        begin = max((bound for bound in (ts_from, after[0] if after else None) if bound is not None), default=None)

        def behind(branch: Branch) -> str:
            return f"{branch.ts} >= {after[0]} AND ({branch.ts} > {after[0]} OR {branch.n} > {after[1]})" if after else ""

        def window_of(count: int) -> Window:
            return self._map.by_time(begin, count)

        return self._grow(window_of, possible, limit, lambda branch: [branch.ts, branch.n], behind)

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

            # A window that grew may hold far more than it must show; the first one does not, and sorting few rows here is cheaper.
            sort_here = count * self._density <= SORTED_HERE_MAX
            rows = self.fetch(possible, None if sort_here else limit, keys, within)
            if len(rows) >= limit or window.whole:
                return Found(rows[:limit], self._unseen(rows[limit - 1 :], window))
            count *= GROWTH

    def _unseen(self, rest: list[Row], window: Window) -> int | None:
        """A number below which every match was in the rows before `rest` (which begins with the row that tells there are more)."""
        inside = min((row.n for row in rest), default=None)
        if window.ts_high is None:
            return inside
        outside = self._map.first_after(window.ts_high)
        return outside if inside is None else min(inside, outside)

    def fetch(self, possible: Possible, limit: int | None, keys: Callable[[Branch], list[str]], more: Callable[[Branch], Iterable[str]]) -> list[Row]:
        """By `keys`, the rows that also meet `more`: the first `limit` of each branch, or all of them."""
        found: list[tuple[Key, Branch, list[str], tuple[Any, ...]]] = []
        for branch, condition in possible:
            by = keys(branch)
            shown = ", ".join(f"{expression} AS key{index}" for index, expression in enumerate(by))
            values = self._values if branch.table == "raw_calls" else ""
            sql = f"SELECT {shown}, {branch.n} AS event_n, {branch.ts} AS event_ts, {_DETAILS[branch.table]}{values} FROM {branch.table}"
            sql += f" WHERE {' AND '.join([condition.text(), *more(branch)])}"
            if limit is not None:
                sql += f" ORDER BY {', '.join(f'key{index}' for index in range(len(by)))} LIMIT {limit}"
            answer = self._run(sql, condition.texts)
            names = [column[0] for column in answer.description or []]
            found += [(row[: len(by)], branch, names, row) for row in answer.fetchall()]
        found.sort(key=lambda one: one[0])
        return [_row(*one) for one in (found if limit is None else found[:limit])]

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


def _row(key: Key, branch: Branch, names: list[str], values: tuple[Any, ...]) -> Row:
    columns = dict(zip(names, values, strict=True))
    return Row(branch, columns["event_n"], columns["event_ts"], key, columns)


def _bounds(branch: Branch, window: Window) -> list[str]:
    bounds = [f"{branch.n} BETWEEN {window.n_low} AND {window.n_high}"]
    if window.ts_high is not None:
        bounds.append(f"{branch.ts} <= {window.ts_high}")
    return bounds
