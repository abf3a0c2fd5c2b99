"""The views of debug_query that are not events: what the chosen calls cost (hotspots), who called whom (callTree), what there is (summary).

hotspots  one row a function: function, sourceFile, line, calls, totalNs, selfNs, meanNs, maxNs; dearest first. Of one that was sampled, where all
          calls are chosen: calls counts those that were not recorded too, recorded only the others, of which alone the times are
callTree  one row a call, in order of its start, below its caller: id, depth, function, sourceFile, line, threadId, timestampNs, durationNs;
          verbose: arguments, returnValue or unwound and exception too
summary   one row an event type, then one a function: eventType or function, count, firstNs, lastNs
The filters choose events as in a page (one WHERE, branches.py); for hotspots and callTree they choose calls, whose time is their enter's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from actors.store.counts import Snapshot
from actors.store.query.branches import ALL, CALL, ENTER, EXIT, LATE, OUTPUT, POINT, Branch, number_list, where
from actors.store.query.captured import CallOf, CallValues
from actors.store.query.event_id import event_id
from actors.store.query.rows import Rows
from actors.store.query.scan import Row, Scanner
from actors.store.query.selection import Selection
from actors.store.query.typed_values import TypedValues
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND
from actors.store.session_file import SessionFile
from strobe.model.probe import Hook
from strobe.model.query import Query

_STREAMS: Final = {1: "stdout", 2: "stderr"}
_FUNCTIONS_OF_SUMMARY: Final = 10
Shown = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    rows: list[Shown]
    total: int
    has_more: bool


class ViewReader:
    """Reads for one query, in the read transaction that `reading` is."""

    def __init__(self, session_id: str, file: SessionFile, reading: Reading, selection: Selection, snapshot: Snapshot, typed: TypedValues) -> None:
        self._session_id = session_id
        self._file = file
        self._reading = reading
        self._selection = selection
        self._snapshot = snapshot
        self._values = CallValues(file, reading, typed)

    def read(self, query: Query) -> View:
        match query.view:
            case "hotspots":
                rows = self._hotspots()
            case "summary":
                rows = self._summary()
                return View(rows, sum(row["count"] for row in rows if "eventType" in row), False)
            case _:
                return self._call_tree(query.limit, query.offset, verbose=query.verbose)
        page = rows[query.offset : query.offset + query.limit]
        return View(page, len(rows), query.offset + len(page) < len(rows))

    def _rows(self, sql: str, texts: Iterable[str]) -> list[tuple[Any, ...]]:
        return self._reading.execute(sql, list(texts)).fetchall()

    def _place(self, hook: int) -> Shown:
        known = self._file.hooks.get(hook)
        if known is None:
            return {"function": f"hook {hook}"}
        place = known.place
        return {name: value for name, value in (("function", place.function), ("sourceFile", place.file), ("line", place.line)) if value is not None}

    # Hotspots

    def _hotspots(self) -> list[Shown]:
        chosen = where(CALL, self._selection)
        if not chosen.possible:
            return []
        source = _with_late(chosen.text())
        inner: dict[int, int] = {}
        totals: dict[int, list[int]] = {}
        grouped = self._rows(f"SELECT hook, caller, count(*), coalesce(sum(d), 0)::BIGINT, max(d), count(d) FROM ({source}) GROUP BY ALL", chosen.texts * 2)
        for hook, _, calls, total, longest, ended in grouped:
            one = totals.setdefault(hook, [0, 0, 0, 0])
            one[:] = one[0] + calls, one[1] + total, max(one[2], longest or 0), one[3] + ended
        if self._selection.every_call:
            for _, caller, _, total, _, _ in grouped:
                inner[caller] = inner.get(caller, 0) + total
        else:
            inner = self._inside(chosen.text(), chosen.texts)
        return self._by_function(totals, inner)

    def _inside(self, chosen: str, texts: list[str]) -> dict[int, int]:
        """How long the calls made by the chosen ones took, by the caller's hook."""
        children = _with_late(f"n <= {self._snapshot.last_n}")
        parents = f"SELECT n AS parent_n, hook AS parent_hook FROM raw_calls WHERE {chosen}"
        sql = f"SELECT parent_hook, coalesce(sum(d), 0)::BIGINT FROM ({children}) JOIN ({parents}) ON parent = parent_n GROUP BY parent_hook"
        return dict(self._rows(sql, texts))

    def _by_function(self, totals: dict[int, list[int]], inner: dict[int, int]) -> list[Shown]:
        """A function may have several hooks: templates, later plans."""
        rows: dict[str, Shown] = {}
        for hook, (calls, total, longest, ended) in totals.items():
            place = self._place(hook)
            row = rows.setdefault(place["function"], {**place, "calls": 0, "totalNs": 0, "selfNs": 0, "maxNs": 0, "ended": 0})
            row["calls"] += calls
            row["totalNs"] += total
            row["selfNs"] += total - inner.get(hook, 0)
            row["maxNs"] = max(row["maxNs"], longest)
            row["ended"] += ended
            if self._selection.every_call and (left_out := self._file.left_out.get(hook)):
                row["leftOut"] = row.get("leftOut", 0) + left_out
        for row in rows.values():
            ended, left_out = row.pop("ended"), row.pop("leftOut", 0)
            if left_out:
                row |= {"calls": row["calls"] + left_out, "recorded": row["calls"]}
            row["selfNs"] = max(row["selfNs"], 0)
            if ended:
                row["meanNs"] = row["totalNs"] // ended
        return sorted(rows.values(), key=lambda row: (-row["totalNs"] * row["calls"] / row.get("recorded", row["calls"]), -row["calls"], row["function"]))

    # Call tree

    def _call_tree(self, limit: int, offset: int, *, verbose: bool) -> View:
        chosen = where(CALL, self._selection)
        if not chosen.possible:
            return View([], 0, False)
        total = int(self._rows(f"SELECT count(*) FROM raw_calls WHERE {chosen.text()}", chosen.texts)[0][0])
        scanner = Scanner(Rows(self._file, self._reading, self._snapshot), self._snapshot.map)
        possible = [(CALL, chosen)]
        after = scanner.key_at(possible, offset - 1, self._selection.time_from) if offset else None
        if offset and after is None:
            return View([], total, False)
        found = scanner.by_time(possible, limit, after, self._selection.time_from, self._selection.time_to).rows
        ends = self._ends(found)
        if verbose:
            self._values.prepare([_call_of(row, ends.get(row.n)) for row in found])
        return View(self._nested(found, ends, verbose=verbose), total, offset + len(found) < total)

    def _ends(self, rows: list[Row]) -> dict[int, Shown]:
        """Number, time, flags and result of the exits: those in the rows, and those that came in a later commit."""
        ends = {row.n: {name: row.columns[name] for name in ("exit_n", "exit_ts", "flags", "ret")} for row in rows if row.columns["exit_ts"] is not None}
        waiting = [row.n for row in rows if row.n not in ends]
        if waiting:
            late = self._rows(f"SELECT call, n, ts, flags, ret FROM raw_exits WHERE {number_list('call', waiting)}", [])
            ends |= {call: {"exit_n": n, "exit_ts": ts, "flags": flags, "ret": ret} for call, n, ts, flags, ret in late}
        return ends

    def _nested(self, rows: list[Row], ends: dict[int, Shown], *, verbose: bool) -> list[Shown]:
        """Each call followed by those it made; `depth` counts the callers shown."""
        numbers = {row.n for row in rows}
        children: dict[int, list[Row]] = {}
        for row in rows:
            parent = row.columns["parent"]
            children.setdefault(parent if parent in numbers else 0, []).append(row)
        found: list[Shown] = []
        waiting = [(row, 0) for row in reversed(children.get(0, []))]
        while waiting:
            row, depth = waiting.pop()
            found.append(self._node(row, depth, ends.get(row.n), verbose=verbose))
            waiting += [(child, depth + 1) for child in reversed(children.get(row.n, []))]
        return found

    def _node(self, row: Row, depth: int, end: Shown | None, *, verbose: bool) -> Shown:
        thread = self._file.threads.get(row.columns["thread"])
        shown = {"id": event_id(self._session_id, row.n), "depth": depth, **self._place(row.columns["hook"]), "timestampNs": row.ts}
        if thread is not None:
            shown["threadId"] = thread.tid
        if end is not None:
            shown["durationNs"] = end["exit_ts"] - row.ts
        hook = self._file.hooks.get(row.columns["hook"])
        return shown if hook is None or not verbose else shown | self._of_call(_call_of(row, end), hook)

    def _of_call(self, call: CallOf, hook: Hook) -> Shown:
        """What it was given, and what it returned or threw."""
        found: Shown = {"arguments": self._values.arguments(call, hook)}
        result = result_of(hook.plan)
        if call.left is None:
            return found
        if call.columns["flags"] & UNWOUND:
            exception = self._values.exception(call)
            return found | {"unwound": True} | ({"exception": exception} if exception else {})
        return found if result is None else {**found, "returnValue": self._values.result(call, hook, result)}

    # Summary

    def _summary(self) -> list[Shown]:
        types: dict[str, list[int]] = {}
        functions: dict[str, list[int]] = {}
        for branch in ALL:
            for name, function, numbers in self._counted(branch):
                _add(types, name, numbers)
                if name == "function_enter" and function is not None:
                    _add(functions, function, numbers)
        found = [_span("eventType", name, numbers) for name, numbers in sorted(types.items(), key=lambda one: one[1][1])]
        most = sorted(functions.items(), key=lambda one: (-one[1][0], one[0]))[:_FUNCTIONS_OF_SUMMARY]
        return found + [_span("function", name, numbers) for name, numbers in most]

    def _counted(self, branch: Branch) -> list[tuple[str, str | None, list[int]]]:
        """(event type, function, [count, first, last]) of what a branch holds."""
        chosen = where(branch, self._selection)
        if not chosen.possible:
            return []
        by = {OUTPUT: "stream", POINT: "type"}.get(branch, "hook")
        rows = self._rows(f"SELECT {by}, count(*), min({branch.ts}), max({branch.ts}) FROM {branch.table} WHERE {chosen.text()} GROUP BY 1", chosen.texts)
        if branch is POINT:
            return [(kind, None, numbers) for kind, *numbers in rows]
        if branch is OUTPUT:
            return [(_STREAMS[stream], None, numbers) for stream, *numbers in rows]
        name = "function_enter" if branch is ENTER else "function_exit"
        assert branch in (ENTER, EXIT, LATE)
        return [(name, self._place(hook)["function"], numbers) for hook, *numbers in rows]


def _call_of(row: Row, end: Shown | None) -> CallOf:
    return CallOf(row.n, None, row.columns) if end is None else CallOf(row.n, end["exit_n"], {**row.columns, "flags": end["flags"], "ret": end["ret"]})


def _with_late(chosen: str) -> str:
    """The chosen calls as (hook, caller, parent, d), d their duration wherever their exit is stored; `chosen` occurs twice."""
    return (
        f"SELECT hook, caller, parent, exit_ts - ts AS d FROM raw_calls WHERE exit_n IS NOT NULL AND {chosen} UNION ALL "
        "SELECT c.hook, c.caller, c.parent, x.ts - c.ts FROM "
        f"(SELECT n, ts, hook, caller, parent FROM raw_calls WHERE exit_n IS NULL AND {chosen}) c LEFT JOIN raw_exits x ON x.call = c.n"
    )


def _add(sums: dict[str, list[int]], name: str, numbers: list[int]) -> None:
    count, first, last = numbers
    before = sums.get(name, [0, first, last])
    sums[name] = [before[0] + count, min(before[1], first), max(before[2], last)]


def _span(kind: str, name: str, numbers: list[int]) -> Shown:
    return {kind: name, "count": numbers[0], "firstNs": numbers[1], "lastNs": numbers[2]}
