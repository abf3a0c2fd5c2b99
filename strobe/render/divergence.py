"""Where two sessions first differ, as text: what differs, what each side did, and from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from strobe.render.shorten import shorten
from strobe.render.values import argument_list, count, moment, place, plain, returned

VALUE_TOKENS: Final = 60
CALLERS_SHOWN: Final = 3
_VERDICTS: Final = {
    "same": "Nothing differs",
    "unfinished": "Nothing differs as far as it was compared",
    "differs": "They differ",
    "notComparable": "They cannot be compared",
}


def comparison_lines(rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> list[str]:
    """All of a reply: the verdict first."""
    compared = ""
    if "calls" in summary:
        calls, threads, functions = (count(summary[name], name[:-1]) for name in ("calls", "threads", "functions"))
        compared = f" ({calls} of {functions} in {threads} compared)"
    return [f"{_VERDICTS[summary['verdict']]}{compared}.", *(line for row in rows for line in divergence_lines(row))]


def divergence_lines(row: Mapping[str, Any]) -> list[str]:
    if row["kind"] == "thread":
        side = "here" if "here" in row else "there"
        return [f"Only {side}: thread {row['threadName']} ({row[side]['threadId']}), {count(row[side]['calls'], 'call')}."]
    lines = [headline(row)]
    lines += [f"  {one['path']}: {_value(one['here'])} here, {_value(one['there'])} there" for one in row["differs"]]
    return [*lines, *(line for side in ("here", "there") for line in _side_lines(side, row[side]))]


def headline(row: Mapping[str, Any]) -> str:
    """`total returned something else (ledger.c:31), thread main`."""
    function = row.get("function")
    where = place(row.get("sourceFile"), row.get("line"))
    said = {
        "arguments": f"{function} got other arguments",
        "returnValue": f"{function} returned something else",
        "exception": f"{function} was left in another way",
        "children": f"{function} called something else" if function else "Another function was called",
        "ended": f"The calls end in {function} on one side" if function else "The calls end on one side",
        "thread": "A thread is on one side only",
    }[row["kind"]]
    return f"{said}{f' ({where})' if where else ''}, thread {row['threadName']}"


def _value(value: Any) -> str:
    return plain(shorten(value, VALUE_TOKENS)[0])


def _side_lines(name: str, side: Mapping[str, Any]) -> list[str]:
    lines = [f"  {name} ({side['sessionId']}): {_did(side)}"]
    if side.get("crash"):
        lines.append(f"    crash: {side['crash']}")
    callers = [f"{one['function']} ({place(one.get('sourceFile'), one.get('line')) or '?'})" for one in side.get("callers", [])[:CALLERS_SHOWN]]
    return [*lines, f"    in {' < '.join(callers)}"] if callers else lines


def _did(side: Mapping[str, Any]) -> str:
    if side["next"] == "ended":
        return "nothing more"
    call = f"{side['function']}{argument_list(side.get('arguments'))}"
    left = returned({**side, "unwound": side["next"] == "throws"}) or "returns"
    text = f"calls {call}" if side["next"] == "enters" else f"{call} {left}"
    where = place(side.get("sourceFile"), side.get("line"))
    return f"{text}{f'  {where}' if where else ''}  {moment(side['timestampNs'])} #{str(side['id']).rpartition('-')[2]}"
