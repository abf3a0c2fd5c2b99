"""A Query answered from one session's file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import duckdb

from actors.store.counts import Snapshot
from actors.store.query.cursor import Cursor, query_hash, read_cursor
from actors.store.query.deep_scan import SCAN_S, DeepScan
from actors.store.query.event_id import event_id
from actors.store.query.order import Order, order_of
from actors.store.query.page import PageReader
from actors.store.query.page_end import last_seen
from actors.store.query.present import Presenter
from actors.store.query.scan import Found
from actors.store.query.selection import Selection, resolve
from actors.store.query.typed_values import TypedValues, biases_of
from actors.store.query.views import ViewReader
from actors.store.reading import Reading
from actors.store.session_file import SAMPLED, SessionFile
from strobe.model.query import Query
from strobe.protocol.store import PageEnd, QueryReply

RETRIES: Final = 5


def run_query(session_id: str, file: SessionFile, query: Query, connection: duckdb.DuckDBPyConnection | None, *, all_ends: bool = False) -> QueryReply:
    """`connection` is a reader of `file`, used by this alone, or None (see Reading); `all_ends` as in RunQuery.

    Raises VALIDATION_ERROR; duckdb.InterruptException; NeedsStatementError.
    """
    order = order_of(query)
    cursor = read_cursor(session_id, query, order.key_length if query.view == "events" else 1)
    for _ in range(RETRIES):
        snapshot = file.counts.snapshot()
        reading = Reading(connection)
        try:
            reply = _answer(session_id, file, query, reading, order, cursor, snapshot, all_ends)
        finally:
            reading.end()
        if file.counts.snapshot().evicted == snapshot.evicted:
            break  # else events went between counting and reading: once more, so that both are of one moment
    return reply


def _answer(
    session_id: str, file: SessionFile, query: Query, reading: Reading, order: Order, cursor: Cursor | None, snapshot: Snapshot,
    all_ends: bool,
) -> QueryReply:  # fmt: skip
    if cursor is not None:
        snapshot = replace(snapshot, last_n=cursor.last_n, settled_ns=cursor.settled_ns, newest_ns=cursor.newest_ns)
    typed = TypedValues(file, reading)
    selection = resolve(session_id, query, list(file.hooks.values()), list(file.threads.values()), snapshot, reading, typed)
    compared = DeepScan(file, reading, typed, of_calls=query.view != "events").resolve(selection)
    selection = compared.selection
    if compared.left:
        snapshot = replace(snapshot, last_n=selection.last_n, settled_ns=0)
        typed.warnings.append(_partial(compared.left))
    if query.view != "events":
        offset = cursor.key[0] if cursor else query.offset
        return _view(session_id, file, query.model_copy(update={"offset": offset}), reading, selection, snapshot, typed)
    pages = PageReader(file, reading, selection, order, snapshot, cursor.total if cursor else None)
    # A cursor stands behind what offset skipped on the first page; a repeated offset must not skip again.
    found = pages.rows(query.limit + 1, 0 if cursor else query.offset, cursor.key if cursor else None)
    has_more, rows = len(found.rows) > query.limit, found.rows[: query.limit]
    ends = _ends(session_id, query, order, Found(rows, found.unseen if has_more else None), snapshot, pages.total)
    events = Presenter(session_id, file, reading, typed, verbose=query.verbose).events(rows)
    last = (ends[-1][0] if has_more else None, ends[-1][1]) if ends else (None, _id_or_before(session_id, query, snapshot.last_n))
    return QueryReply(
        events=events,
        total_count=pages.total,
        has_more=has_more or compared.left > 0,
        cursor=last[0],
        last_event_id=last[1],
        ends=ends if all_ends else None,
        **_of_values(file, typed),
        **_facts(session_id, file, reading, snapshot),
    )


def _of_values(file: SessionFile, typed: TypedValues) -> dict[str, Any]:
    """What whoever shows the values needs besides."""
    functions = sorted(typed.functions)
    return {"function_addresses": functions, "modules": biases_of(file) if functions else {}, "warnings": typed.warnings}


def _partial(left: int) -> str:
    return (
        f"Values inside of {left:,} calls were not compared: {SCAN_S:g} s were up. totalCount and events are of those before. "
        "Ask again (it goes on where it stopped), or narrow by function, timeFrom, timeTo, threadId or pid."
    )


def _view(session_id: str, file: SessionFile, query: Query, reading: Reading, selection: Selection, snapshot: Snapshot, typed: TypedValues) -> QueryReply:
    """A cursor says how many rows came before."""
    found = ViewReader(session_id, file, reading, selection, snapshot, typed).read(query)
    behind = (query.offset + len(found.rows),)
    cursor = Cursor(query_hash(session_id, query), snapshot.last_n, snapshot.settled_ns, snapshot.newest_ns, found.total, behind)
    facts = {**_of_values(file, typed), **_facts(session_id, file, reading, snapshot)}
    return QueryReply(
        events=found.rows, total_count=found.total, has_more=found.has_more, cursor=cursor.pack() if found.has_more else None, last_event_id=None, **facts
    )


def _facts(session_id: str, file: SessionFile, reading: Reading, snapshot: Snapshot) -> dict[str, Any]:
    """What every reply tells about the session."""
    return {
        "settled_until_ns": snapshot.settled_ns,
        "pids": _pids(file),
        "events_dropped": {cause: lost for cause, lost in file.losses.items() if cause != SAMPLED},
        "sampled": file.sampled(),
        "crash": crash_summary(session_id, reading) if file.counts.holds("point:crash") else None,
        "newest_ns": snapshot.newest_ns,
    }


def _ends(session_id: str, query: Query, order: Order, page: Found, snapshot: Snapshot, total: int) -> list[PageEnd]:
    """Cursor and lastEventId of a page that ends at each of the rows."""
    cursor = Cursor(query_hash(session_id, query), snapshot.last_n, snapshot.settled_ns, snapshot.newest_ns, total, ())
    seen = last_seen(order.name, page, snapshot.last_n)
    return [(packed, _id_or_before(session_id, query, n)) for packed, n in zip(cursor.pack_at(row.key for row in page.rows), seen, strict=True)]


def _id_or_before(session_id: str, query: Query, n: int) -> str | None:
    return event_id(session_id, n) if n else query.after_event_id


def _pids(file: SessionFile) -> list[int] | None:
    found = {thread.pid for thread in list(file.threads.values())} | file.point_pids
    return sorted(found) if len(found) > 1 else None


def crash_summary(session_id: str, reading: Reading) -> dict[str, Any] | None:
    """The first crash, the target's own before one of its children's: what, where, and its event's id."""
    columns = "n, ts, pid, tid, text, function, file, line, data"
    own_first = "contains(data, '\"child\": true')"
    found = reading.execute(f"SELECT {columns} FROM points WHERE type = 'crash' ORDER BY {own_first}, ts, n LIMIT 1").fetchall()
    if not found:
        return None
    n, ts, pid, tid, text, function, file, line, data = found[0]
    facts = json.loads(data)
    shown = {
        "id": event_id(session_id, n), "timestampNs": ts, "pid": pid, "threadId": tid, "text": text, "signal": facts.get("signal"), "code": facts.get("code"),
        "exitCode": facts.get("exitCode"), "cause": facts.get("cause"), "address": facts.get("faultAddress"), "function": function, "sourceFile": file,
        "line": line,
    }  # fmt: skip
    return {key: value for key, value in shown.items() if value is not None}
