"""One page of events: rows in the order asked for, exact total, where polling goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from actors.store.counts import Key as CountKey
from actors.store.counts import Snapshot
from actors.store.query.branches import ALL, LATE, OUTPUT, POINT, Branch, Where, number_list, where
from actors.store.query.order import NO_THREAD, Order
from actors.store.query.rows import Rows
from actors.store.query.scan import Found, Key, Possible, Row, Scanner
from actors.store.query.selection import OUTPUT_TYPES, Selection
from actors.store.reading import Reading
from actors.store.session_file import SessionFile
from strobe.errors import Code, StrobeError

OFFSET_MAX: Final = 100_000  # in orders other than time, where what is skipped must be read
_SHORT_OFFSET: Final = 500
_FALL: Final = 16
SPARSE: Final = 1 / 20
FEW: Final = 1000  # matching rows of a branch that are fetched at once


class PageReader:
    """Reads for one query, in the read transaction that `reading` is."""

    def __init__(self, file: SessionFile, reading: Reading, selection: Selection, order: Order, snapshot: Snapshot, total: int | None) -> None:
        """`total`: how many match, where a cursor says it; else they are counted."""
        self._file = file
        self._run = reading.execute
        self._selection = selection
        self._order = order
        held = file.counts.branches()
        wheres = [(branch, where(branch, selection)) for branch in ALL if branch.name in held]
        self._possible: Possible = [(branch, found) for branch, found in wheres if found.possible]
        self._names = {branch.name for branch, _ in self._possible}
        self._longest = snapshot.map.longest
        self._nothing_evicted = snapshot.evicted == 0
        self._scanner = Scanner(Rows(file, reading, snapshot), snapshot.map)
        self.total = self._count_all() if total is None else total
        self._matching = file.counts.total(self._wanted)[0] if selection.evenly_spread else self.total  # bounds of time aside
        self._scanner.density = self._density()

    def _density(self) -> float:
        """About which share of the events the filters leave, bounds of time aside where that is known."""
        return self._matching / max(self._file.counts.total()[0], 1)

    def _few_match(self) -> bool:
        """So few among so many that they are sooner had at once than looked for window by window."""
        by_time = self._order.name in ("time", "arrival") and self._selection.evenly_spread
        return by_time and 0 < self._matching <= FEW and self._density() < SPARSE

    # Rows

    def rows(self, limit: int, offset: int, after: Key | None) -> Found:
        """The first `limit` after skipping `offset`, behind the key `after`."""
        if self._few_match():
            self._scanner.few(self._possible, FEW)
        if self._order.name == "time" and offset > _SHORT_OFFSET:
            after = self._scanner.key_at(self._possible, offset - 1, self._selection.time_from)
            if after is None:
                return Found([], None)
            offset = 0
        if offset > OFFSET_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"offset {offset:,} is too far for this order.", "Page with cursor, or order by time.", value=offset)
        found = self._ordered(limit + offset, after)
        return Found(found.rows[offset:], found.unseen)

    def _ordered(self, limit: int, after: Key | None) -> Found:
        match self._order.name:
            case "arrival":
                return self._scanner.by_arrival(self._possible, limit, after[0] if after else self._selection.after or 0)
            case "time" if self._selection.parent is not None:
                return self._scanner.at_once(self._possible, limit, after)
            case "time":
                return self._scanner.by_time(self._possible, limit, after, self._selection.time_from, self._selection.time_to)
            case "duration":
                return Found(self._by_duration(limit, after), None)
            case _:
                return Found(self._by_thread(limit, after), None)

    def _by_duration(self, limit: int, after: Key | None) -> list[Row]:
        """Longest first; then those that have no duration, by time."""
        rows: list[Row] = []
        if after is None or after[0] <= 0:
            rows = self._durations(limit, after)
        if len(rows) < limit:
            behind = after[1:] if after and after[0] > 0 else None
            lasting = [(branch, _without_duration(branch, found)) for branch, found in self._possible if branch.duration is None or branch is LATE]
            rest = self._scanner.by_time(lasting, limit - len(rows), behind, self._selection.time_from, self._selection.time_to)
            rows += [row.keyed(1) for row in rest.rows]
        return rows

    def _durations(self, limit: int, after: Key | None) -> list[Row]:
        possible = [(branch, found) for branch, found in self._possible if branch.duration is not None]
        behind = self._order.after_duration(after) if after else None
        for least in self._thresholds(limit, -after[0] if after else None):

            def more(branch: Branch, least: int = least) -> list[str]:
                return [f"{branch.duration} >= {least}", *([behind(branch)] if behind else [])]

            rows = self._scanner.fetch(possible, limit, self._order.keys, more).rows
            if len(rows) >= limit or least == 0:
                return rows
        return []

    def _thresholds(self, limit: int, longest: int | None) -> Iterator[int]:
        """Durations above which `limit` calls may be found, falling to 0: most pages of the longest calls need the first only."""
        end = self._longest.size if longest is None else int(self._longest.searchsorted(longest, side="right"))
        least = int(self._longest[end - limit]) if end >= limit else 0
        while least > 0:
            yield least
            least //= _FALL
        yield 0

    def _by_thread(self, limit: int, after: Key | None) -> list[Row]:
        """Thread after thread by its number, each in order of time; events of no known thread last."""
        rows: list[Row] = []
        for tid in self._tids():
            if after is not None and tid < after[0]:
                continue
            behind = after[1:] if after is not None and tid == after[0] else None
            possible = [(branch, found) for branch, found in ((branch, self._of_thread(branch, found, tid)) for branch, found in self._possible) if found]
            found = self._scanner.by_time(possible, limit - len(rows), behind, self._selection.time_from, self._selection.time_to)
            rows += [row.keyed(tid) for row in found.rows]
            if len(rows) >= limit:
                break
        return rows

    def _tids(self) -> list[int]:
        """Of the threads that can have matching events."""
        known = {thread.tid for thread in self._file.threads.values() if self._selection.threads is None or thread.id in self._selection.threads}
        points = self._run("SELECT DISTINCT tid FROM points WHERE tid IS NOT NULL").fetchall() if "point" in self._names else []
        return sorted({*known, *(row[0] for row in points), NO_THREAD})

    def _of_thread(self, branch: Branch, found: Where, tid: int) -> Where | None:
        """The branch's condition for one thread; None when it has nothing of it."""
        if branch is POINT:
            return found.also("tid IS NULL" if tid == NO_THREAD else f"tid = {tid}")
        ids = [thread.id for thread in self._file.threads.values() if thread.tid == tid]
        if tid == NO_THREAD:
            return found.also("thread IS NULL") if branch is OUTPUT else None
        return found.also(number_list("thread", ids)) if ids else None

    # Numbers

    def _count_all(self) -> int:
        """Exact: from the counters where the filters allow, else by the same WHERE as the rows."""
        if not self._selection.countable:
            counted = self._counted_otherwise()
            return sum(self._count(branch, found) for branch, found in self._possible) if counted is None else counted
        points = sum(self._count(branch, found) for branch, found in self._possible if branch is POINT)  # few, and filtered by text
        return points + self._file.counts.total(self._wanted)[0]

    def _counted_otherwise(self) -> int | None:
        """Where a count in SQL can be saved: after a late event few remain, times alone the trace map knows, and few rows can be had at once."""
        selection = self._selection
        if selection.after is not None:
            counted = self._scanner.count_numbered(self._possible, selection.after + 1, selection.last_n)
            if counted is not None:
                return counted
        if selection.times_alone and self._nothing_evicted:
            return self._scanner.count_between(self._possible, selection.time_from, selection.time_to)
        if selection.evenly_spread or self._order.name not in ("time", "arrival"):
            return None
        return self._scanner.few(self._possible, FEW)

    def _wanted(self, key: CountKey) -> bool:
        name, first, thread = key
        selection = self._selection
        if name not in self._names or (selection.threads is not None and thread not in selection.threads):
            return False
        if name == "output":
            return selection.event_type is None or OUTPUT_TYPES[selection.event_type] == first
        return selection.hooks is None or first in selection.hooks

    def _count(self, branch: Branch, found: Where) -> int:
        return int(self._run(f"SELECT count(*) FROM {branch.table} WHERE {found.text()}", found.texts).fetchall()[0][0])


def _without_duration(branch: Branch, found: Where) -> Where:
    return found.also(f"{branch.duration} IS NULL") if branch is LATE else found
