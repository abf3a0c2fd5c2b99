"""`sessions`, `query`, `sql`, `tail`: what was recorded."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from strobe.client import Client
from strobe.ctl.output import AsJson, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.model.query import Query
from strobe.model.session import SessionState
from strobe.protocol.store import ListSessions, QueryReply, RunQuery, RunSql, SessionsReply, SqlReply
from strobe.render.events import event_lines, query_text
from strobe.runtime.envelope import field_error

QUERY_S: Final = 30.0
TAIL_EVERY_S: Final = 0.2
LIVE: Final = frozenset({SessionState.RUNNING, SessionState.PAUSED})

SessionId = Annotated[str, typer.Argument(help="Session id, see `strobe-ctl sessions`.")]


@command
async def sessions(as_json: AsJson = False) -> None:
    """Every session of this home, of all clients."""
    async with Client() as client:
        reply: SessionsReply = await client.ask("store", ListSessions())
    if as_json:
        show_json([record.model_dump(by_alias=True, mode="json") for record in reply.sessions])
        return
    rows = [(s.session_id, s.state, s.pid, _when(s.started_at), _ended(s.exit_code, s.signal), s.binary_path) for s in reply.sessions]
    show_table(("session", "state", "pid", "started", "exit", "binary"), rows, empty="No sessions.")


def _when(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _ended(exit_code: int | None, signal: int | None) -> str:
    if signal is not None:
        return f"signal {signal}"
    return "" if exit_code is None else str(exit_code)


@command
async def query(
    session: SessionId,
    event_type: Annotated[str | None, typer.Option("--type", help="function_enter, function_exit, stdout, stderr, crash …")] = None,
    function: Annotated[str | None, typer.Option(help="Name contains this.")] = None,
    matches: Annotated[str | None, typer.Option(help="Name matches this regular expression.")] = None,
    order: Annotated[str, typer.Option(help="time, thread or duration.")] = "time",
    limit: Annotated[int, typer.Option(help="1 to 500.")] = 50,
    after: Annotated[str | None, typer.Option(help="Only events that arrived after this id.")] = None,
    cursor: Annotated[str | None, typer.Option(help="Next page, from the last reply.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="All fields (with --json).")] = False,
    filters: Annotated[str | None, typer.Option("--filter", help="debug_query's fields as a JSON object, beside these options.")] = None,
    as_json: AsJson = False,
) -> None:
    """Events of a session, as debug_query finds them."""
    names = {key: value for key, value in (("contains", function), ("matches", matches)) if value is not None}
    asked = {
        "eventType": event_type, "function": names or None, "orderBy": order, "limit": limit, "afterEventId": after, "cursor": cursor, "verbose": verbose,
        **_object(filters),
    }  # fmt: skip
    async with Client() as client:
        reply: QueryReply = await client.ask("store", RunQuery(session_id=session, query=_query(asked)), deadline_s=QUERY_S)
    structured = reply.model_dump(by_alias=True)
    show_json(structured) if as_json else print(query_text(structured))


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"--filter is not JSON: {error}.", 'Example: --filter \'{"minDurationNs": 1000}\'.', value=text) from error
    if not isinstance(found, dict):
        raise StrobeError(Code.VALIDATION_ERROR, "--filter is no JSON object.", 'Example: --filter \'{"minDurationNs": 1000}\'.', value=text)
    return found


def _query(asked: dict[str, Any]) -> Query:
    try:
        return Query.model_validate({key: value for key, value in asked.items() if value is not None})
    except ValidationError as error:
        raise field_error("query", error) from error


@command
async def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT over the documented views.")],
    session: Annotated[str | None, typer.Option(help="Session id; without it the catalog is asked.")] = None,
    limit: Annotated[int, typer.Option(help="Rows at most.")] = 500,
    as_json: AsJson = False,
) -> None:
    """One read-only SQL statement."""
    async with Client() as client:
        reply: SqlReply = await client.ask("store", RunSql(session_id=session, sql=statement, limit=limit), deadline_s=QUERY_S)
    if as_json:
        show_json(reply.model_dump(by_alias=True))
        return
    show_table(reply.columns, reply.rows, empty="No rows.")
    if reply.truncated:
        print(f"More than {limit} rows; raise --limit.")


@command
async def tail(
    session: SessionId,
    event_type: Annotated[str | None, typer.Option("--type", help="Only events of this type.")] = None,
    lines: Annotated[int, typer.Option(help="Events to begin with, 1 to 500.")] = 20,
    follow: Annotated[bool, typer.Option(help="Go on until the session has ended.")] = True,
    as_json: AsJson = False,
) -> None:
    """A session's newest events, then each new one as it arrives (JSON: one event a line)."""
    async with Client() as client:
        total = await _page(client, session, {"eventType": event_type, "limit": 1})
        start = max(0, total.total_count - lines)
        page = await _page(client, session, {"eventType": event_type, "limit": lines, "offset": start})
        _print_events(page.events, as_json)
        last = total.last_event_id if page.last_event_id is None else page.last_event_id
        while follow:
            live = await _is_live(client, session)
            page = await _page(client, session, {"eventType": event_type, "limit": 500, "afterEventId": last})
            _print_events(page.events, as_json)
            last = page.last_event_id or last
            if not page.events:
                if not live:
                    return
                await asyncio.sleep(TAIL_EVERY_S)


async def _page(client: Client, session: str, asked: dict[str, Any]) -> QueryReply:
    reply: QueryReply = await client.ask("store", RunQuery(session_id=session, query=_query(asked)), deadline_s=QUERY_S)
    return reply


async def _is_live(client: Client, session: str) -> bool:
    reply: SessionsReply = await client.ask("store", ListSessions(session_id=session))
    return reply.sessions[0].state in LIVE


def _print_events(events: list[dict[str, Any]], as_json: bool) -> None:
    lines = [json.dumps(event, ensure_ascii=False) for event in events] if as_json else event_lines(events)
    for line in lines:
        print(line, flush=True)
