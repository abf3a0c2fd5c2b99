"""One page of events: rows, exact total, where it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from actors.store.query.branches import ALL, POINT, Branch, Where, where
from actors.store.query.order import Order
from actors.store.query.selection import OUTPUT_TYPES, Selection
from actors.store.session_file import SessionFile

_DETAILS = {
    "raw_calls": "hook, thread, flags, n AS call, exit_n, ts AS enter_ts, exit_ts, parent, ret",
    "raw_exits": "hook, thread, flags, call, enter_ts, ret",
    "output": "stream, start, text, approximate, parent, thread",
    "points": "type, pid, tid, thread_name, function, file, line, text, data, parent",
}


@dataclass(frozen=True, slots=True)
class Row:
    """An event of a page: its branch, its order key, and its columns by name (with `n` and `ts` its own)."""

    branch: Branch
    n: int
    ts: int
    key: tuple[int, ...]
    columns: dict[str, Any]


class PageReader:
    """Reads for one query, in the read transaction that `connection` is in."""

    def __init__(self, file: SessionFile, connection: duckdb.DuckDBPyConnection, selection: Selection, order: Order) -> None:
        self._file = file
        self._run = connection.execute
        self._selection = selection
        self._order = order
        held = file.counts.branches()
        wheres = [(branch, where(branch, selection)) for branch in ALL if branch.name in held]
        self._possible = [(branch, found) for branch, found in wheres if found.possible]
        self._names = {branch.name for branch, _ in self._possible}

    def rows(self, limit: int, offset: int, after: tuple[int, ...] | None) -> list[Row]:
        """The first `limit` after skipping `offset`, in order, behind the key `after`."""
        keys = self._keys(limit + offset, after)
        chosen = keys[offset : offset + limit]
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for branch, _ in self._possible:
            numbers = [key[-1] for name, key in chosen if name == branch.name]
            times = [key[-2] for name, key in chosen if name == branch.name and len(key) > 1]
            if numbers:
                found |= {(branch.name, row["event_n"]): row for row in self._details(branch, numbers, times)}
        by_name = {branch.name: branch for branch in ALL}
        return [Row(by_name[name], key[-1], found[name, key[-1]]["event_ts"], key, found[name, key[-1]]) for name, key in chosen]

    def _keys(self, limit: int, after: tuple[int, ...] | None) -> list[tuple[str, tuple[int, ...]]]:
        """(branch, order key) of the first `limit` rows; each branch finds its own first ones, by which whole row groups are skipped."""
        merged: list[tuple[tuple[int, ...], str]] = []
        for branch, found in self._possible:
            keys = self._order.keys(branch)
            condition = found.text() if after is None else f"{found.text()} AND {self._order.after(branch, after)}"
            names = ", ".join(f"{expression} AS k{index}" for index, expression in enumerate(keys))
            by = ", ".join(f"k{index}" for index in range(len(keys)))
            sql = f"SELECT {names} FROM {branch.table} WHERE {condition} ORDER BY {by} LIMIT {limit}"
            merged += [(tuple(row), branch.name) for row in self._run(sql, found.texts).fetchall()]
        merged.sort()
        return [(name, key) for key, name in merged[:limit]]

    def _details(self, branch: Branch, numbers: list[int], times: list[int]) -> list[dict[str, Any]]:
        values = "".join(f", a{k}" for k in range(self._file.value_columns)) if branch.table == "raw_calls" else ""
        near = f"{branch.n} BETWEEN {min(numbers)} AND {max(numbers)}"
        if times:
            near += f" AND {branch.ts} BETWEEN {min(times)} AND {max(times)}"
        wanted = ", ".join(map(str, numbers))
        columns = f"{branch.n} AS event_n, {branch.ts} AS event_ts, {_DETAILS[branch.table]}{values}"
        answer = self._run(f"SELECT {columns} FROM {branch.table} WHERE {near} AND {branch.n} IN ({wanted})")
        names = [column[0] for column in answer.description or []]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def total(self) -> int:
        """Exact: from the counters where the filters allow, else by the same WHERE as the rows."""
        if not self._selection.countable:
            return sum(self._count(branch, found) for branch, found in self._possible)
        points = sum(self._count(branch, found) for branch, found in self._possible if branch is POINT)  # few, and filtered by text
        return points + self._file.counts.total(self._wanted)[0]

    def _wanted(self, key: tuple[str, int, int]) -> bool:
        name, first, thread = key
        selection = self._selection
        if name not in self._names or (selection.threads is not None and thread not in selection.threads):
            return False
        if name == "output":
            return selection.event_type is None or OUTPUT_TYPES[selection.event_type] == first
        return selection.hooks is None or first in selection.hooks

    def _count(self, branch: Branch, found: Where) -> int:
        return int(self._run(f"SELECT count(*) FROM {branch.table} WHERE {found.text()}", found.texts).fetchall()[0][0])

    def first_unseen(self, key: tuple[int, ...]) -> int | None:
        """The lowest arrival number behind the key: what a poller has not been shown yet begins there."""
        found = []
        for branch, condition in self._possible:
            sql = f"SELECT {branch.n} AS unseen FROM {branch.table} WHERE {condition.text()} AND {self._order.after(branch, key)} ORDER BY unseen LIMIT 1"
            found += [row[0] for row in self._run(sql, condition.texts).fetchall()]
        return min(found, default=None)


