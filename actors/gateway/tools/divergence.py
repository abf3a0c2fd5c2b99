"""debug_query's view divergence: where the calls of two sessions first differ."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Protocol

from actors.gateway.shown_values import function_names, share_of, shortened, with_names, with_thrown_types
from actors.gateway.tool import Call
from strobe.errors import Code, StrobeError
from strobe.model.query import FileFilter, Query, TextFilter, ThreadNameFilter
from strobe.protocol.compare import CompareReply, CompareSessions, OfSide
from strobe.render.budget import json_tokens
from strobe.render.divergence import divergence_lines
from strobe.render.shorten import shorten

COMPARE_S: Final = 13.0
ROWS: Final = 5
_FILTERS: Final = frozenset(("session_id", "against", "view", "function", "source_file", "thread_name", "limit", "max_tokens"))
_ROOM: Final = 120  # tokens of a reply besides its rows
_SIDES: Final = ("here", "there")


class Asked(Protocol):
    """Of debug_query's arguments, those that this view has."""

    session_id: str
    against: str | None
    view: Any
    function: TextFilter | None
    source_file: FileFilter | None
    thread_name: ThreadNameFilter | None
    limit: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Comparison:
    rows: list[dict[str, Any]]
    total: int
    summary: dict[str, Any]
    notes: list[str]


async def compare(given: Collection[str], asked: Asked, call: Call) -> Comparison:
    """Errors: VALIDATION_ERROR, SESSION_NOT_FOUND."""
    _check(given, asked)
    limit = asked.limit if "limit" in given else ROWS
    ask = CompareSessions(
        session_id=asked.session_id, against=asked.against or "", limit=limit,
        function=asked.function, source_file=asked.source_file, thread_name=asked.thread_name,
    )  # fmt: skip
    reply = await call.ask("store", ask, CompareReply, deadline_s=COMPARE_S)
    rows, cut = await _shown(reply, asked.max_tokens, call)
    fitting = _fitting(rows, asked.max_tokens)
    more = [f"{reply.total - fitting:,} more threads differ: raise limit and maxTokens."] if reply.total > fitting else []
    notes = [*reply.notes, *more, *([cut] if cut else [])]
    return Comparison(rows[:fitting], reply.total, {"verdict": reply.verdict, **reply.compared}, notes)


def _check(given: Collection[str], asked: Asked) -> None:
    if asked.view != "divergence":
        raise StrobeError(Code.VALIDATION_ERROR, f"`against` does not go with view {asked.view}.", "Use view divergence, or leave it out.", value="against")
    if asked.against is None:
        what = "View divergence needs `against`: the session to compare with."
        raise StrobeError(Code.VALIDATION_ERROR, what, 'debug_session {"action": "list"} shows the ids.', value="against")
    others = sorted(set(given) - _FILTERS)
    if others:
        field = str(Query.model_fields[others[0]].alias) if others[0] in Query.model_fields else others[0]
        next_step = "It compares whole threads; function, sourceFile and threadName narrow it, limit bounds the threads shown."
        raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` does not go with view divergence.", next_step, value=field)


async def _shown(reply: CompareReply, max_tokens: int, call: Call) -> tuple[list[dict[str, Any]], str | None]:
    """The rows with names of functions, and values of which no side takes more than its share of the room."""
    names = {side: await _names(of, call) for side, of in zip(_SIDES, (reply.ours, reply.theirs), strict=True)}
    share = share_of(max_tokens, 2 * len(reply.divergences)) // 2
    rows: list[dict[str, Any]] = []
    said: str | None = None
    for row in reply.divergences:
        shown = dict(row)
        for side in _SIDES:
            if side in row:
                [one] = await with_thrown_types([with_names(row[side], names[side])], call)
                if "id" in one:
                    [one], cut = shortened([one], share)
                    said = said or cut
                shown[side] = one
        rows.append({**shown, "differs": [{name: shorten(value, share)[0] for name, value in one.items()} for one in row["differs"]]})
    return rows, said


async def _names(of: OfSide, call: Call) -> dict[int, str]:
    return await function_names(of.function_addresses, of.modules, call)


def _fitting(rows: list[dict[str, Any]], max_tokens: int) -> int:
    """At least one: the first is what was asked for."""
    left = max_tokens - _ROOM
    for number, row in enumerate(rows):
        left -= json_tokens(row) + sum(json_tokens(line) for line in divergence_lines(row))
        if left < 0:
            return max(1, number)
    return len(rows)
