"""debug_query: the one way to read a session's timeline."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field, WithJsonSchema

from actors.gateway.shown_values import ELEMENTS, VALUE_ROOM, function_names, named, part_of, share_of, shortened, with_names, with_thrown_types
from actors.gateway.tool import Arguments, Call, Result, Tool
from actors.gateway.tools.divergence import compare
from strobe.errors import Code, StrobeError
from strobe.model.query import FileFilter, Query, ReturnFilter, ThreadNameFilter
from strobe.protocol import store
from strobe.render.budget import json_tokens, reply_tokens
from strobe.render.events import line_tokens, query_text
from strobe.render.session import sampling_note

_DESCRIPTION: Final = "Timeline (calls, output, crashes) by filters or sql; eventId: all its values. Page: cursor. Poll: afterEventId=lastEventId."
_CURSOR_LIKE: Final = "eyJ0" * 32  # room for the cursor that a shorter page gets
_EVENT_TOKENS_LEAST: Final = 40  # no event in both forms is smaller, so a page never needs more of them
_VALUES_LEAST: Final = 16  # tokens for an event's values
_VALUES_LEFT_OUT: Final = "valuesLeftOut"  # the cause under which the collector counts them
_NOT_FILTERS: Final = ("session_id", "sql", "max_tokens")


class QueryArguments(Query, Arguments):
    session_id: str
    return_value: Annotated[ReturnFilter | None, WithJsonSchema({"type": "object", "description": "as argument"})] = None
    time_from: int | str | None = Field(default=None, description="or -5s")
    time_to: Annotated[int | str | None, WithJsonSchema({})] = None
    source_file: Annotated[FileFilter | None, WithJsonSchema({"type": "object", "description": "equals|contains"})] = None
    thread_name: Annotated[ThreadNameFilter | None, WithJsonSchema({"type": "object", "description": "contains"})] = None
    view: Literal["events", "callTree", "hotspots", "summary", "divergence"] = "events"  # type: ignore[assignment]  # the last one is not of one session
    against: str | None = Field(default=None, description="sessionId; divergence")
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
    comparison: dict[str, Any] | None = None
    value: Any = None
    columns: list[Any] | None = None
    rows: list[Any] | None = None


async def run(arguments: QueryArguments, call: Call) -> Result:
    if arguments.view == "divergence" or arguments.against is not None:
        _check_filters(arguments)
        found = await compare(arguments.model_fields_set, arguments, call)
        return QueryResult(events=found.rows, total_count=found.total, has_more=found.total > len(found.rows), comparison=found.summary, warnings=found.notes)
    if arguments.sql is not None:
        return await _sql(arguments, call)
    if arguments.event_id is not None or arguments.path is not None:
        return await _one_value(arguments, call)
    _check_filters(arguments)
    query = Query.model_construct(**{name: getattr(arguments, name) for name in Query.model_fields})
    if query.view != "events":
        return await _view(arguments, query, call)
    query = query.model_copy(update={"limit": max(1, min(query.limit, arguments.max_tokens // _EVENT_TOKENS_LEAST))})
    reply = await _ask(arguments, query, call, ends=True)
    result = await _result(reply, arguments.max_tokens, call)
    fitting = _fitting(result, arguments.max_tokens)
    if max(1, fitting) < len(reply.events):
        result = _ended_after(result, max(1, fitting), reply.ends)
    return result if fitting or not reply.events else _with_less(result, arguments.max_tokens)


def _ended_after(result: QueryResult, count: int, ends: list[store.PageEnd] | None) -> QueryResult:
    """The page as if no more than its first `count` events had been asked for. Where it goes on, the store has said for each event."""
    if ends is None:
        raise TypeError("the store left out the ends of the page that it was asked for")
    cursor, last_event_id = ends[count - 1]
    return result.model_copy(update={"events": (result.events or [])[:count], "has_more": True, "cursor": cursor, "last_event_id": last_event_id})


async def _view(arguments: QueryArguments, query: Query, call: Call) -> Result:
    """What does not fit is asked for again with a lower limit: a tree of fewer calls is another tree, not the beginning of the larger one."""
    _check_view(query)
    while True:
        reply = await _ask(arguments, query, call)
        result = await _result(reply, arguments.max_tokens, call)
        shown = _fitting(result, arguments.max_tokens)
        if shown >= len(reply.events) or query.view == "summary" or len(reply.events) == 1:
            break
        query = query.model_copy(update={"limit": max(1, shown)})
    left = {"events": len(reply.events) - shown} if query.view == "summary" and shown < len(reply.events) else {}
    events = (result.events or [])[:shown] if left else result.events
    return result.model_copy(update={"events": events, "left_out": left, "last_event_id": None})


def _check_view(query: Query) -> None:
    if query.cursor is not None and query.view == "summary":
        raise StrobeError(Code.VALIDATION_ERROR, "`cursor` does not go with view summary.", "It has one page: leave cursor out.", value="cursor")
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


async def _result(reply: store.QueryReply, limit: int, call: Call) -> QueryResult:
    names = await function_names(reply.function_addresses, reply.modules, call)
    shown = await with_thrown_types([with_names(_lean(event), names) for event in reply.events], call)
    events, cut = shortened(shown, share_of(limit, len(reply.events)))
    return QueryResult(
        events=events,
        total_count=reply.total_count,
        has_more=reply.has_more,
        cursor=reply.cursor,
        last_event_id=reply.last_event_id,
        settled_until_ns=reply.settled_until_ns,
        pids=list(reply.pids) if reply.pids and len(reply.pids) > 1 else None,
        events_dropped={cause: number for cause, number in reply.events_dropped.items() if number and cause != _VALUES_LEFT_OUT},
        crash=reply.crash,
        warnings=[*reply.warnings, *_without_values(reply), *sampling_note(reply.sampled), *([cut] if cut else [])],
    )


def _without_values(reply: store.QueryReply) -> list[str]:
    number = reply.events_dropped.get(_VALUES_LEFT_OUT)
    if not number:
        return []
    what = f"{number:,} events of this session have <not captured> for what arguments point to: the target called faster than its calls could be stored."
    return [f"{what} Trace fewer functions, or set a lower serializationDepth."]


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


async def _one_value(arguments: QueryArguments, call: Call) -> Result:
    """An event with all its values, or the one at a path."""
    others = arguments.model_fields_set - {*_NOT_FILTERS, "event_id", "path", "limit"}
    if others or arguments.event_id is None:
        field = "path" if arguments.event_id is None else str(Query.model_fields[sorted(others)[0]].alias)
        what = "`path` needs `eventId`." if arguments.event_id is None else f"`{field}` does not go with `eventId`."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give eventId and, for one of its values, path; maxTokens and limit bound it.", value=field)
    limit = arguments.limit if "limit" in arguments.model_fields_set else ELEMENTS
    ask = store.ReadValue(session_id=arguments.session_id, event_id=arguments.event_id, path=arguments.path, limit=limit)
    reply = await call.ask("store", ask, store.ValueReply, deadline_s=12)
    names = await function_names(reply.function_addresses, reply.modules, call)
    if arguments.path is None:
        shown_event = await with_thrown_types([with_names(_lean(reply.event), names)], call)
        events, cut = shortened(shown_event, share_of(arguments.max_tokens, 1))
        result = QueryResult(events=events, total_count=1, has_more=False, warnings=[*reply.warnings, *([cut] if cut else [])])
        return result if _fitting(result, arguments.max_tokens) else _with_less(result, arguments.max_tokens)
    part = part_of(named(reply.value, names), arguments.path, reply.next_path, (arguments.max_tokens - VALUE_ROOM) // 2)
    shown = {"path": arguments.path, "type": reply.type_name or "", "value": part.value}
    more = [f"More: path={part.next_path}"] if part.next_path else []
    return QueryResult(value=shown, has_more=part.cut, warnings=[*reply.warnings, *more, *part.notes])


def _with_less(result: QueryResult, limit: int) -> QueryResult:
    """One event alone is larger than the reply may be: its values are cut further, at last its text is left out."""
    share = share_of(limit, 1)
    while share > _VALUES_LEAST:
        share //= 2
        events, cut = shortened(result.events or [], share)
        if cut is None:
            break
        notes = result.warnings if any(note.startswith(cut[:20]) for note in result.warnings) else [*result.warnings, cut]
        less = result.model_copy(update={"events": events, "warnings": notes})
        if _fitting(less, limit):
            return less
        result = less
    return result if all("text" not in event for event in result.events or []) else _without_texts(result, limit)


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
