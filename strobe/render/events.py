"""Events as text: one line each, in the order asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strobe.render.budget import estimate_tokens, texts_tokens
from strobe.render.divergence import comparison_lines
from strobe.render.table import align
from strobe.render.values import argument_list, count, duration, moment, place, plain, returned, watched
from strobe.render.views import view_lines

_GAPS: Final = 8  # tokens of the spaces between columns and parts, and of the line's end
_SHORT = {"function_enter": "enter", "function_exit": "exit", "variable_snapshot": "value"}


def query_text(reply: Mapping[str, Any]) -> str:
    """debug_query's structured reply (events, rows or one value) as text."""
    if "value" in reply:
        one = reply["value"]
        return "\n".join([f"{one['path']}: {one['type']} = {plain(one['value'], one['type'])}", *left_out_lines(reply), *reply.get("warnings", [])])
    if "comparison" in reply:
        return "\n".join([*comparison_lines(reply["events"], reply["comparison"]), *left_out_lines(reply), *reply.get("warnings", [])])
    lines = sql_lines(reply) if "columns" in reply else lines_of(reply["events"])
    return "\n".join([*lines, *_crash_lines(reply), *_footer(reply)])


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """One line an event or row of a view (whose hotspots have a heading too)."""
    return event_lines(rows) if rows and "timestampNs" in rows[0] and "depth" not in rows[0] else view_lines(rows)


def line_tokens(rows: list[dict[str, Any]]) -> list[int]:
    """Of each row's line in lines_of(rows), rather too many than too few; a view's heading counts to its first row."""
    if not rows or "timestampNs" not in rows[0] or "depth" in rows[0]:
        lines = view_lines(rows)
        costs = [estimate_tokens(line) + 1 for line in lines]
        heading = len(lines) - len(rows)
        return [sum(costs[: heading + 1]), *costs[heading + 1 :]] if rows else []
    several = _several_processes(rows)
    return [texts_tokens([short_id(e["id"]), moment(e["timestampNs"]), e["eventType"], *_what(e, several)]) + _GAPS for e in rows]


def _several_processes(events: list[dict[str, Any]]) -> bool:
    return len({e.get("pid") for e in events if "pid" in e}) > 1


def event_lines(events: list[dict[str, Any]]) -> list[str]:
    several = _several_processes(events)
    rows = [[short_id(e["id"]), moment(e["timestampNs"]), _SHORT.get(e["eventType"], e["eventType"]), "  ".join(_what(e, several))] for e in events]
    return align(rows, right=(0, 1))


def short_id(event_id: str) -> str:
    """The number at the end of `{session}-{n}`: the same session stands in front of every one."""
    return str(event_id).rpartition("-")[2]


def _what(event: Mapping[str, Any], several_processes: bool) -> list[str]:
    """The last column's parts."""
    if "textLeftOut" in event:
        parts = [f"({event['textLeftOut']:,} characters left out)"]
    elif event["eventType"] in ("function_enter", "function_exit"):
        parts = _call(event)
    else:
        parts = [plain(event["text"])] if event.get("text") is not None else []
        parts += [place(event.get("sourceFile"), event.get("line"))]
    parts = [part for part in parts if part]
    if several_processes and "pid" in event:
        return [f"[{event['pid']}] {parts[0] if parts else ''}", *parts[1:]]
    return parts


def _call(event: Mapping[str, Any]) -> list[str]:
    parts = [f"{event.get('function') or '?'}{argument_list(event.get('arguments'))}"]
    if event["eventType"] == "function_exit":
        parts.append(returned(event))
    parts.append(watched(event))
    if event.get("durationNs") is not None:
        parts.append(f"took {duration(event['durationNs'])}")
    parts.append(place(event.get("sourceFile"), event.get("line")))
    if event.get("sampled"):
        parts.append(f"(sampled {event.get('sampleRate')})")
    return parts


def sql_lines(reply: Mapping[str, Any]) -> list[str]:
    rows = [["" if cell is None else cell if isinstance(cell, str) else plain(cell) for cell in row] for row in reply["rows"]]
    return align([list(reply["columns"]), *rows])


def crash_line(crash: Mapping[str, Any]) -> str:
    """A crash summary's own line, or `SIGSEGV at 0x0 in push (ring.c:21)` from whatever of it is known."""
    if crash.get("text"):
        return str(crash["text"])
    line = str(crash.get("signal") or "crash")
    if crash.get("address") is not None:
        line += f" at {crash['address']}"
    if crash.get("function"):
        line += f" in {crash['function']}"
    where = place(crash.get("sourceFile") or crash.get("file"), crash.get("line"))
    return f"{line} ({where})" if where else line


def _crash_lines(reply: Mapping[str, Any]) -> list[str]:
    return [f"crash: {crash_line(reply['crash'])}"] if reply.get("crash") else []


def _footer(reply: Mapping[str, Any]) -> list[str]:
    if "columns" in reply:
        lines = ["More rows match; narrow the query or raise limit."] if reply.get("hasMore") else []
        return [*lines, *left_out_lines(reply), *reply.get("warnings", [])]
    shown, total = len(reply["events"]), reply["totalCount"]
    noun = "event" if not shown or "eventType" in reply["events"][0] else "call" if "depth" in reply["events"][0] else "function"
    lines = [f"{shown:,} of {count(total, noun)}." if shown < total else f"{count(total, noun)}."]
    if "count" in (reply["events"] or [{}])[0]:
        lines = [f"{count(total, 'event')} in all."]
    if reply["events"] and "id" in reply["events"][0]:
        session = str(reply["events"][0]["id"]).rpartition("-")[0]
        lines[0] += f" Event N has the id {session}-N." if session else ""
    if reply.get("cursor"):
        lines.append(f"More: cursor={reply['cursor']}")
    dropped = {cause: number for cause, number in (reply.get("eventsDropped") or {}).items() if number}
    if dropped:
        lines.append("Lost: " + ", ".join(f"{number:,} {cause}" for cause, number in sorted(dropped.items())))
    return [*lines, *left_out_lines(reply), *reply.get("warnings", [])]


def left_out_lines(reply: Mapping[str, Any]) -> list[str]:
    return [f"Left out: {number:,} of {field}; raise maxTokens to see them." for field, number in reply.get("leftOut", {}).items()]
