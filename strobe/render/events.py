"""Events as text: one line each, in the order asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strobe.render.table import align
from strobe.render.values import argument_list, count, duration, moment, place, plain
from strobe.render.views import view_lines

_SHORT = {"function_enter": "enter", "function_exit": "exit", "variable_snapshot": "value"}


def query_text(reply: Mapping[str, Any]) -> str:
    """debug_query's structured reply (events or rows) as text."""
    lines = sql_lines(reply) if "columns" in reply else lines_of(reply["events"])
    return "\n".join([*lines, *_crash_lines(reply), *_footer(reply)])


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """One line an event or row of a view (whose hotspots have a heading too)."""
    return event_lines(rows) if rows and "timestampNs" in rows[0] and "depth" not in rows[0] else view_lines(rows)


def event_lines(events: list[dict[str, Any]]) -> list[str]:
    several = len({e.get("pid") for e in events if "pid" in e}) > 1
    rows = [[short_id(e["id"]), moment(e["timestampNs"]), _SHORT.get(e["eventType"], e["eventType"]), _what(e, several)] for e in events]
    return align(rows, right=(0, 1))


def short_id(event_id: str) -> str:
    """The number at the end of `{session}-{n}`: the same session stands in front of every one."""
    return str(event_id).rpartition("-")[2]


def _what(event: Mapping[str, Any], several_processes: bool) -> str:
    who = f"[{event['pid']}] " if several_processes and "pid" in event else ""
    if "textLeftOut" in event:
        return f"{who}({event['textLeftOut']:,} characters left out)"
    if event["eventType"] in ("function_enter", "function_exit"):
        return who + _call(event)
    parts = [plain(event["text"])] if event.get("text") is not None else []
    parts += [place(event.get("sourceFile"), event.get("line"))]
    return who + "  ".join(part for part in parts if part)


def _call(event: Mapping[str, Any]) -> str:
    parts = [f"{event.get('function') or '?'}{argument_list(event.get('arguments'))}"]
    if event["eventType"] == "function_exit" and "returnValue" in event:
        parts.append(f"= {plain(event['returnValue'])}")
    if event.get("durationNs") is not None:
        parts.append(f"took {duration(event['durationNs'])}")
    parts.append(place(event.get("sourceFile"), event.get("line")))
    if event.get("sampled"):
        parts.append(f"(sampled {event.get('sampleRate')})")
    return "  ".join(part for part in parts if part)


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
