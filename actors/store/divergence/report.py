"""Divergences as the rows of a reply.

{kind, function?, sourceFile?, line?, threadName, differs [{path, here, there}], here, there}: `function` is the one whose call differs; of kind children
its caller's, none at a thread's beginning. A side: {sessionId, threadId, pid, next (what it did there: enters | returns | throws | ended), function?,
sourceFile?, line?, id?, timestampNs?, arguments?, returnValue?, exception?, callers [{function, sourceFile?, line?, id}], crash?}.
kind: arguments | returnValue | exception | children | ended (one side's thread did no more) | thread (only one side has it: no partner to compare with).
"""

from __future__ import annotations

from typing import Any, Final

from actors.store.divergence.compare import Divergence, Step
from actors.store.divergence.deep import Side
from actors.store.divergence.same import Difference
from actors.store.divergence.threads import TracedThread
from actors.store.query.captured import CallOf
from actors.store.query.event_id import event_id
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND
from strobe.model.probe import Hook

CALLERS_MAX: Final = 8
Shown = dict[str, Any]


def row_of(found: Divergence, ours: Side, theirs: Side) -> Shown:
    here = _side(ours, found.pair[0], found.ours, None if found.last is None else found.last[0])
    there = _side(theirs, found.pair[1], found.theirs, None if found.last is None else found.last[1])
    whose = _whose(found, here, there)
    place: Shown = {name: whose[name] for name in ("function", "sourceFile", "line") if name in whose}
    return {"kind": found.kind, **place, "threadName": found.pair[0].name, "differs": [_difference(one) for one in found.differs], "here": here, "there": there}


def alone(thread: TracedThread, side: Side, *, ours: bool) -> Shown:
    """A thread that the other session has none for."""
    shown = {"sessionId": side.session_id, "threadId": thread.tid, "pid": thread.pid, "timestampNs": thread.first_ts, "calls": thread.calls}
    return {"kind": "thread", "threadName": thread.name, "differs": [], "here" if ours else "there": shown}


def _difference(one: Difference) -> Shown:
    path, here, there = one
    return {"path": path, "here": here, "there": there}


def _whose(found: Divergence, here: Shown, there: Shown) -> Shown:
    """The call at fault: itself, or of children and endings the one they are missing in."""
    if found.kind in ("arguments", "returnValue", "exception"):
        return here
    known = here if found.ours is not None else there
    if known.get("next") == "enters":
        callers: list[Shown] = known["callers"]
        return callers[0] if callers else {}
    return known


def _side(side: Side, thread: TracedThread, step: Step | None, last: Step | None) -> Shown:
    shown: Shown = {"sessionId": side.session_id, "threadId": thread.tid, "pid": thread.pid}
    crash = side.reading.execute(f"SELECT text FROM points WHERE type = 'crash' AND tid = {thread.tid} ORDER BY ts, n LIMIT 1").fetchall()
    if crash:
        shown["crash"] = crash[0][0]
    if step is None:  # it was in the call that it entered last, or in that from where the last one was called
        shown["next"] = "ended"
        if last is None:
            return {**shown, "callers": []}
        opened = _callers(side, last.call)
        return {**shown, "callers": opened[1:] if last.left else opened}
    hook, columns = _call(side, step)
    place = _place(hook)
    shown |= {"next": "enters", "id": event_id(side.session_id, step.n), "timestampNs": step.ts, **place}
    call = CallOf(step.call, step.n if step.left else None, columns)
    values = side.values()
    values.prepare([call])
    shown["arguments"] = values.arguments(call, hook)
    if step.left and columns["flags"] & UNWOUND:
        shown |= {"next": "throws", "exception": values.exception(call)}
    elif step.left:
        result = result_of(hook.plan)
        shown |= {"next": "returns", **({} if result is None else {"returnValue": values.result(call, hook, result)})}
    shown["callers"] = _callers(side, step.call)[1:]
    return {name: value for name, value in shown.items() if value is not None or name == "returnValue"}


def _call(side: Side, step: Step) -> tuple[Hook, dict[str, Any]]:
    values = "".join(f", a{k}" for k in range(side.file.value_columns))
    answer = side.reading.execute(f"SELECT hook, flags, ret{values} FROM raw_calls WHERE n = {step.call}")
    names = [column[0] for column in answer.description or []]
    rows = answer.fetchall()
    columns: dict[str, Any] = dict(zip(names, rows[0], strict=True)) if rows else {"flags": 0, "ret": None}
    if step.left and (late := side.reading.execute(f"SELECT hook, flags, ret FROM raw_exits WHERE call = {step.call}").fetchall()):
        columns |= {"hook": late[0][0], "flags": late[0][1], "ret": late[0][2]}
    return side.file.hooks[columns["hook"]], columns


def _callers(side: Side, call: int) -> list[Shown]:
    """The call itself first."""
    found: list[Shown] = []
    while call and len(found) <= CALLERS_MAX:
        rows = side.reading.execute(f"SELECT hook, parent FROM raw_calls WHERE n = {call}").fetchall()
        if not rows:
            break
        hook = side.file.hooks.get(rows[0][0])
        found.append({**(_place(hook) if hook else {"function": f"hook {rows[0][0]}"}), "id": event_id(side.session_id, call)})
        call = rows[0][1] or 0
    return found


def _place(hook: Hook) -> Shown:
    place = hook.place
    return {name: value for name, value in (("function", place.function), ("sourceFile", place.file), ("line", place.line)) if value is not None}
