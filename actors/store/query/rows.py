"""Rows of a branch as columns: from SQL, or for a stretch of arrival numbers from the blocks that were read before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.blocks import BlockName, Columns
from actors.store.counts import Snapshot
from actors.store.query.branches import EXIT, LATE, Branch, Test
from actors.store.reading import Reading
from actors.store.session_file import SessionFile

Mask = NDArray[np.bool_]
_DETAILS: Final = {
    "raw_calls": "hook, thread, flags, n AS call, exit_n, ts AS enter_ts, exit_ts, parent, ret",
    "raw_exits": "hook, thread, flags, call, enter_ts, ret",
    "output": "stream, start, text, approximate, parent, thread",
    "points": "type, pid, tid, thread_name, function, file, line, text, data, parent",
}
_OPERATORS: Final[dict[str, Callable[[Any, Any], Mask]]] = {
    ">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less, "=": np.equal, "IN": lambda values, wanted: np.isin(values, list(wanted)),
}  # fmt: skip
_NAMES: Final = {"n": "event_n", "ts": "event_ts"}


class Rows:
    """For one query, in the read transaction that `reading` is."""

    def __init__(self, file: SessionFile, reading: Reading, snapshot: Snapshot) -> None:
        self.run = reading.execute
        self.last_n = snapshot.last_n
        self._cache = file.blocks
        self._evicted = snapshot.evicted
        self._value_columns = file.value_columns
        self._values = "".join(f", a{k}" for k in range(file.value_columns))

    def select(self, branch: Branch, conditions: Iterable[str], texts: list[str], *, keys: Iterable[str] = (), end: str = "") -> Columns:
        """event_n, event_ts, the branch's details, and key0, key1, … for `keys`."""
        shown = "".join(f"{expression} AS key{index}, " for index, expression in enumerate(keys))
        values = self._values if branch.table == "raw_calls" else ""
        columns = f"{shown}{branch.n} AS event_n, {branch.ts} AS event_ts, {_DETAILS[branch.table]}{values}"
        found: Columns = self.run(f"SELECT {columns} FROM {branch.table} WHERE {' AND '.join(conditions)} {end}", texts).fetchnumpy()
        return found

    def numbered(self, branch: Branch, low: int, high: int) -> list[Columns]:
        """The rows whose number is in the blocks of `low` to `high`: at least those asked for. None of them is behind the snapshot."""
        shift = self._cache.shift
        blocks = range(max(low, 1) >> shift, (min(high, self.last_n) >> shift) + 1)
        found = {block: self._cache.get(self._name(branch, block)) for block in blocks}
        missing = [block for block, columns in found.items() if columns is None]
        if missing:
            found |= self._read(branch, missing[0], missing[-1])
        return [columns for columns in found.values() if columns is not None and columns["event_n"].size]

    def _name(self, branch: Branch, block: int) -> BlockName:
        high = min((block + 1 << self._cache.shift) - 1, self.last_n)
        return BlockName(branch.name, block, high, self._evicted, self._value_columns)

    def _read(self, branch: Branch, first: int, last: int) -> dict[int, Columns]:
        """In one statement; each block of it is kept."""
        shift = self._cache.shift
        bounds = f"{branch.n} BETWEEN {first << shift} AND {min((last + 1 << shift) - 1, self.last_n)}"
        columns = self.select(branch, [bounds], [])
        order = np.argsort(columns["event_n"], kind="stable")
        starts = np.searchsorted(columns["event_n"][order], np.arange(first, last + 2) << shift)
        found = {}
        for index, block in enumerate(range(first, last + 1)):
            chosen = order[starts[index] : starts[index + 1]]
            found[block] = {name: column[chosen] for name, column in columns.items()}
            self._cache.put(self._name(branch, block), found[block])
        return found


def meeting(branch: Branch, columns: Columns, tests: Iterable[Test]) -> Mask:
    """Which rows meet all tests; what is NULL meets none, as in SQL."""
    found = np.ones(columns["event_n"].size, dtype=np.bool_)
    for quantity, operator, wanted in tests:
        values = _quantity(branch, columns, quantity)
        found &= _OPERATORS[operator](np.ma.getdata(values), wanted)
        if (hidden := np.ma.getmask(values)) is not np.ma.nomask:
            found &= ~hidden
    return found


def _quantity(branch: Branch, columns: Columns, quantity: str) -> Any:
    match quantity:
        case "duration":
            return columns["event_ts"] - columns["enter_ts"]
        case "parent" if branch in (EXIT, LATE):
            return columns["call"]
        case _:
            return columns[_NAMES.get(quantity, quantity)]
