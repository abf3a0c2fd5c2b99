"""debug_query's views other than `events`: whole-session answers from the store's documented SQL views `calls` and `events_v`.

hotspots  one row a function: calls, totalNs, selfNs, meanNs, maxNs; dearest first
callTree  one row a call, children below their caller: depth, durationNs
summary   one row an event type, then one a function: count, firstNs, lastNs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from actors.gateway.tool import Call
from strobe.errors import Code, StrobeError
from strobe.model.query import FileFilter, Query, TextFilter, parse_relative_ns
from strobe.protocol import store

Row = dict[str, Any]
_UNSUPPORTED: Final = ("return_value", "argument", "after_event_id", "cursor")
_FUNCTIONS_OF_SUMMARY: Final = 10


async def view_rows(session_id: str, query: Query, call: Call) -> tuple[list[Row], int]:
    """(rows, how many there are in all). Raises VALIDATION_ERROR for filters that a view cannot have."""
    for name in _UNSUPPORTED:
        if getattr(query, name) is not None:
            field = str(Query.model_fields[name].alias)
            raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` does not go with view {query.view}.", "Leave it out, or use view events.", value=field)
    newest_ns = await _newest_ns(session_id, query, call)

    async def run(sql: str) -> list[list[Any]]:
        ask = store.RunSql(session_id=session_id, sql=sql, limit=query.limit + query.offset + 1)
        return (await call.ask("store", ask, store.SqlReply, deadline_s=12)).rows

    if query.view == "summary":
        return await _summary(query, newest_ns, run)
    if query.event_type not in (None, "function_enter", "function_exit"):
        what = f"View {query.view} is about calls; eventType {query.event_type} has none."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Leave eventType out, or use view events.", value="eventType")
    return await (_hotspots if query.view == "hotspots" else _call_tree)(session_id, query, newest_ns, run)


Run = Callable[[str], Any]


async def _newest_ns(session_id: str, query: Query, call: Call) -> int:
    if not isinstance(query.time_from, str) and not isinstance(query.time_to, str):
        return 0
    reply = await call.ask("store", store.RunQuery(session_id=session_id, query=Query(limit=1)), store.QueryReply)
    return reply.newest_ns


async def _hotspots(session_id: str, query: Query, newest_ns: int, run: Run) -> tuple[list[Row], int]:
    del session_id
    rows = await run(
        f"""WITH chosen AS (SELECT * FROM calls WHERE {_conditions(query, newest_ns, calls=True)}),
            inner_time AS (SELECT parent_n, sum(duration_ns) AS ns FROM calls WHERE parent_n IS NOT NULL GROUP BY parent_n)
            SELECT function, any_value(file), any_value(line), count(*), sum(duration_ns)::BIGINT AS total,
                   sum(duration_ns - coalesce(inner_time.ns, 0))::BIGINT, avg(duration_ns)::BIGINT, max(duration_ns), count(*) OVER ()
            FROM chosen LEFT JOIN inner_time ON inner_time.parent_n = chosen.n
            GROUP BY function ORDER BY total DESC NULLS LAST, count(*) DESC, function LIMIT {query.limit} OFFSET {query.offset}"""
    )
    names = ("function", "sourceFile", "line", "calls", "totalNs", "selfNs", "meanNs", "maxNs")
    return [_named(names, row) for row in rows], rows[0][-1] if rows else 0


async def _call_tree(session_id: str, query: Query, newest_ns: int, run: Run) -> tuple[list[Row], int]:
    rows = await run(
        f"""SELECT n, parent_n, function, file, line, thread_id, ts, duration_ns, count(*) OVER () FROM calls
            WHERE {_conditions(query, newest_ns, calls=True)} ORDER BY ts, n LIMIT {query.limit} OFFSET {query.offset}"""
    )
    names = ("n", "parent", "function", "sourceFile", "line", "threadId", "timestampNs", "durationNs")
    return nested(session_id, [dict(zip(names, row, strict=False)) for row in rows]), rows[0][-1] if rows else 0


def nested(session_id: str, calls: Iterable[Row]) -> list[Row]:
    """Calls in order of their start, each followed by those it made; `depth` counts the callers shown."""
    by_number = {call["n"]: call for call in calls}
    children: dict[int | None, list[Row]] = {}
    for call in by_number.values():
        children.setdefault(call["parent"] if call["parent"] in by_number else None, []).append(call)
    found: list[Row] = []
    waiting = [(call, 0) for call in reversed(children.get(None, []))]
    while waiting:
        call, depth = waiting.pop()
        shown = {"id": f"{session_id}-{call['n']}", "depth": depth, **{name: value for name, value in call.items() if name not in ("n", "parent")}}
        found.append({name: value for name, value in shown.items() if value is not None})
        waiting += [(child, depth + 1) for child in reversed(children.get(call["n"], []))]
    return found


async def _summary(query: Query, newest_ns: int, run: Run) -> tuple[list[Row], int]:
    where = _conditions(query, newest_ns, calls=False)
    types = await run(f"SELECT event_type, count(*), min(ts), max(ts) FROM events_v WHERE {where} GROUP BY event_type ORDER BY min(ts)")
    functions = await run(
        f"""SELECT function, count(*), min(ts), max(ts) FROM events_v WHERE event_type = 'function_enter' AND {where}
            GROUP BY function ORDER BY count(*) DESC, function LIMIT {_FUNCTIONS_OF_SUMMARY}"""
    )
    rows = [_named(("eventType", "count", "firstNs", "lastNs"), row) for row in types]
    rows += [_named(("function", "count", "firstNs", "lastNs"), row) for row in functions]
    return rows, sum(row[1] for row in types)


def _named(names: tuple[str, ...], row: list[Any]) -> Row:
    return {name: value for name, value in zip(names, row, strict=False) if value is not None}


def _conditions(query: Query, newest_ns: int, *, calls: bool) -> str:
    """The filters as a WHERE over `calls` (times are the enter's) or `events_v`."""
    found = [*_text("function", query.function), *_text("file", query.source_file)]
    if query.thread_id is not None:
        found.append(f"thread_id = {query.thread_id}")
    if query.pid is not None:
        found.append(f"pid = {query.pid}")
    if query.thread_name is not None:
        mine = f"contains(name, {_literal(query.thread_name.contains)})"
        found.append(f"thread_id IN (SELECT tid FROM threads WHERE {mine})")
    for bound, sign in ((query.time_from, ">="), (query.time_to, "<=")):
        if bound is not None:
            found.append(f"ts {sign} {newest_ns - parse_relative_ns(bound) if isinstance(bound, str) else bound}")
    if query.min_duration_ns is not None:
        found.append(f"duration_ns >= {query.min_duration_ns}")
    if query.parent_event_id is not None:
        found.append(f"parent_n = {_number(query.parent_event_id)}")
    if query.event_type is not None and not calls:
        found.append(f"event_type = {_literal(query.event_type)}")
    return " AND ".join(found) or "true"


def _number(event_id: str) -> int:
    number = event_id.rpartition("-")[2]
    if not number.isdecimal():
        raise StrobeError(Code.VALIDATION_ERROR, f"parentEventId {event_id!r} is not an event id.", "Give an id as debug_query returned it.", value=event_id)
    return int(number)


def _text(column: str, wanted: TextFilter | FileFilter | None) -> list[str]:
    if wanted is None:
        return []
    found = [f"{column} = {_literal(wanted.equals)}"] if wanted.equals is not None else []
    found += [f"contains({column}, {_literal(wanted.contains)})"] if wanted.contains is not None else []
    if isinstance(wanted, TextFilter) and wanted.matches is not None:
        found.append(f"regexp_matches({column}, {_literal(wanted.matches)})")
    return found


def _literal(text: str) -> str:
    """An SQL string. Backslashes are themselves in standard SQL; only the quote is doubled."""
    return "'" + text.replace("'", "''") + "'"
