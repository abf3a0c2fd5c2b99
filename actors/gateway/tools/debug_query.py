"""debug_query: the one way to read a session's timeline."""

from __future__ import annotations

from typing import Annotated, Any, Final

from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field, WithJsonSchema

from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import Code, StrobeError
from strobe.model.query import Query, ReturnFilter
from strobe.protocol import store
from strobe.render.budget import json_tokens, reply_tokens
from strobe.render.events import line_tokens, query_text

_DESCRIPTION: Final = "Timeline (calls, output, crashes) by filters or sql; eventId: all its values. Page: cursor. Poll: afterEventId=lastEventId."
_CURSOR_LIKE: Final = "eyJ0" * 32  # room for the cursor that a shorter page gets
_EVENT_TOKENS_LEAST: Final = 40  # no event in both forms is smaller, so a page never needs more of them
_NOT_FILTERS: Final = ("session_id", "sql", "max_tokens")


class QueryArguments(Query, Arguments):
    session_id: str
    return_value: Annotated[ReturnFilter | None, WithJsonSchema({"type": "object", "description": "as argument"})] = None
    time_from: int | str | None = Field(default=None, description="or -5s")
    event_id: str | None = None
    path: str | None = Field(default=None, description="order.items[20..40]")
    sql: str | None = None


class QueryResult(Result):
    events: list[Any] | None = None
    total_count: int | None = None
    has_more: bool
    cursor: str | None = None
    last_event_id: str | None = None
    settled_until_ns: int | None = None
    pids: list[Any] | None = None
    events_dropped: dict[str, int] | None = None
    crash: dict[str, Any] | None = None
    value: Any = None
    columns: list[Any] | None = None
    rows: list[Any] | None = None


async def run(arguments: QueryArguments, call: Call) -> Result:
    if arguments.sql is not None:
        return await _sql(arguments, call)
    _check_filters(arguments)
    query = Query.model_construct(**{name: getattr(arguments, name) for name in Query.model_fields})
    if query.view != "events":
        return await _view(arguments, query, call)
    query = query.model_copy(update={"limit": max(1, min(query.limit, arguments.max_tokens // _EVENT_TOKENS_LEAST))})
    reply = await _ask(arguments, query, call, ends=True)
    result = _result(reply)
    fitting = _fitting(result, arguments.max_tokens)
    if max(1, fitting) < len(reply.events):
        result = _ended_after(result, max(1, fitting), reply.ends)
    return result if fitting or not reply.events else _without_texts(result, arguments.max_tokens)


def _ended_after(result: QueryResult, count: int, ends: list[store.PageEnd] | None) -> QueryResult:
    """The page as if no more than its first `count` events had been asked for. Where it goes on, the store has said for each event."""
    if ends is None:
        raise TypeError("the store left out the ends of the page that it was asked for")
    cursor, last_event_id = ends[count - 1]
    return result.model_copy(update={"events": (result.events or [])[:count], "has_more": True, "cursor": cursor, "last_event_id": last_event_id})


async def _view(arguments: QueryArguments, query: Query, call: Call) -> Result:
    """Pages of a view follow by `offset`: its rows are worked out anew each time."""
    _check_view(query)
    reply = await _ask(arguments, query, call)
    result = _result(reply)
    shown = _fitting(result, arguments.max_tokens)
    more = shown < len(reply.events) or reply.has_more
    note = [f"More: offset={query.offset + shown}."] if more and query.view != "summary" else []
    left = {"events": len(reply.events) - shown} if shown < len(reply.events) else {}
    return result.model_copy(update={"events": (result.events or [])[:shown], "has_more": more, "warnings": note, "left_out": left})


def _check_view(query: Query) -> None:
    if query.cursor is not None:
        raise StrobeError(Code.VALIDATION_ERROR, f"`cursor` does not go with view {query.view}.", "Pages of a view follow by offset.", value="cursor")
    if query.view != "summary" and query.event_type not in (None, "function_enter", "function_exit"):
        what = f"View {query.view} is about calls; eventType {query.event_type} has none."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Leave eventType out, or use view events.", value="eventType")


async def _ask(arguments: QueryArguments, query: Query, call: Call, *, ends: bool = False) -> store.QueryReply:
    return await call.ask("store", store.RunQuery(session_id=arguments.session_id, query=query, ends=ends), store.QueryReply, deadline_s=12)


def _check_filters(arguments: QueryArguments) -> None:
    """A filter object without a condition would silently match everything."""
    for name in ("function", "source_file", "return_value", "argument", "thread_name"):
        condition: BaseModel | None = getattr(arguments, name)
        if condition is None or condition.model_fields_set - {"name"}:
            continue
        field = Query.model_fields[name].alias
        allowed = ", ".join(str(info.alias) for key, info in type(condition).model_fields.items() if key != "name")
        raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` has no condition.", f"Give it one of: {allowed}.", value=field)


def _result(reply: store.QueryReply) -> QueryResult:
    return QueryResult(
        events=[_lean(event) for event in reply.events],
        total_count=reply.total_count,
        has_more=reply.has_more,
        cursor=reply.cursor,
        last_event_id=reply.last_event_id,
        settled_until_ns=reply.settled_until_ns,
        pids=list(reply.pids) if reply.pids and len(reply.pids) > 1 else None,
        events_dropped={cause: number for cause, number in reply.events_dropped.items() if number},
        crash=reply.crash,
    )


def _lean(event: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that say nothing (a null return value does say something)."""
    return {key: value for key, value in event.items() if value is not None or key == "returnValue"}


def _fitting(result: QueryResult, limit: int) -> int:
    """How many of the page's first events stay within `limit` tokens (0: not even one). Each event is measured once."""
    events = result.events or []
    wire = {**result.to_wire(), "events": [], "cursor": result.cursor or _CURSOR_LIKE}
    left = limit - reply_tokens(wire, query_text({**wire, "events": events[:1]}))
    for number, (event, in_text) in enumerate(zip(events, line_tokens(events), strict=True)):
        left -= json_tokens(event) + in_text + 1  # and what separates it from the next one
        if left < 0:
            return number
    return len(events)


def _without_texts(result: QueryResult, limit: int) -> QueryResult:
    """One event alone is larger than the reply may be: it is shown without its text, whose size is told."""
    events = [{**event, "textLeftOut": len(event["text"])} if isinstance(event.get("text"), str) else event for event in result.events or []]
    events = [{key: value for key, value in event.items() if key != "text" or "textLeftOut" not in event} for event in events]
    note = f"The text of this event is longer than maxTokens={limit} allows; ask for it with a larger maxTokens."
    return result.model_copy(update={"events": events, "warnings": [*result.warnings, note]})


async def _sql(arguments: QueryArguments, call: Call) -> Result:
    others = arguments.model_fields_set - {*_NOT_FILTERS, "limit"}
    if others:
        field = str(Query.model_fields[sorted(others)[0]].alias)
        raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` does not go with `sql`.", "Put the condition into the SQL text, or leave `sql` out.", value=field)
    ask = store.RunSql(session_id=arguments.session_id, sql=arguments.sql or "", limit=arguments.limit)
    reply = await call.ask("store", ask, store.SqlReply, deadline_s=13)
    return QueryResult(columns=list(reply.columns), rows=list(reply.rows), has_more=reply.truncated)


TOOL: Final = Tool(
    name="debug_query",
    description=_DESCRIPTION,
    arguments=QueryArguments,
    result=QueryResult,
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    run=run,
    text=query_text,
    cuttable=("rows",),
)
