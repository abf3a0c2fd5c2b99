"""debug_session: what is there, how it is, and its end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

from mcp.types import ToolAnnotations

from actors.gateway.crash_shown import crash_shown, crash_steps
from actors.gateway.sessions import is_live, record_of
from actors.gateway.stuck_shown import stuck_shown, unwatched
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import Code, StrobeError
from strobe.model.base import Noun
from strobe.model.query import Query
from strobe.model.session import SessionRecord, SessionState
from strobe.protocol import session, store, supervisor
from strobe.render.session import session_text

_DESCRIPTION: Final = "See how a session is doing (status), list all sessions, stop one (the program runs on unless kill), or delete a kept one."
_GONE: Final = (Code.ACTOR_UNAVAILABLE, Code.TIMEOUT, Code.SESSION_NOT_FOUND)  # the last: its launch was cut off before it had a target


class SessionArguments(Arguments):
    action: Literal["status", "list", "stop", "delete"]
    session_id: str | None = None
    retain: bool = False
    kill: bool = False
    diagnose: bool = False


class ListedSession(Noun):
    session_id: str
    binary_path: str
    pid: int | None = None
    started_at: str
    ended_at: str | None = None
    status: str


class SessionResult(Result):
    session_id: str | None = None
    status: str | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    event_count: int | None = None
    patterns: list[str] | None = None
    hooked_functions: int | None = None
    output_bytes: dict[str, int] | None = None
    losses: dict[str, int] | None = None
    sampling: list[dict[str, Any]] | None = None
    capabilities: dict[str, Any] | None = None
    processes: list[dict[str, Any]] | None = None
    crash: dict[str, Any] | None = None
    stuck: dict[str, Any] | None = None
    next_steps: list[str] | None = None
    success: bool | None = None
    events_collected: int | None = None
    sessions: list[ListedSession] | None = None


async def run(arguments: SessionArguments, call: Call) -> Result:
    if arguments.action == "list":
        return await _list(call)
    if arguments.session_id is None:
        what = f"`sessionId` is missing; {arguments.action} needs it."
        raise StrobeError(Code.VALIDATION_ERROR, what, 'debug_session {"action": "list"} shows the ids.', value="sessionId")
    record = await record_of(call, arguments.session_id)
    if arguments.action == "status":
        return await _status(record, arguments, call)
    if arguments.action == "stop":
        return await _stop(record, arguments, call)
    return await _delete(record, call)


async def _list(call: Call) -> Result:
    reply = await call.ask("store", store.ListSessions(), store.SessionsReply)
    newest_first = sorted(reply.sessions, key=lambda record: (not is_live(record), -record.started_at))
    return SessionResult(sessions=[_listed(record) for record in newest_first])


def _listed(record: SessionRecord) -> ListedSession:
    ended = _iso(record.ended_at) if record.ended_at else None
    return ListedSession(
        session_id=record.session_id,
        binary_path=record.binary_path,
        pid=record.pid,
        started_at=_iso(record.started_at),
        ended_at=ended,
        status=str(record.state),
    )


def _iso(epoch_ns: int) -> str:
    return datetime.fromtimestamp(epoch_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _status(record: SessionRecord, arguments: SessionArguments, call: Call) -> Result:
    """The session's own answer where it has one; the catalog's otherwise. A session that does not answer never blocks this."""
    live = await _live_status(record, call)
    call.warnings.extend(live.warnings if live else record.detail.get("notFollowed", []))
    counted = await call.ask("store", store.RunQuery(session_id=record.session_id, query=Query(limit=1)), store.QueryReply)  # has what an end told before
    data = await _crash_data(record, counted.crash, live, call)
    capabilities = live.capabilities.model_dump(by_alias=True, exclude_none=True) if live else record.detail.get("capabilities")
    return SessionResult(
        session_id=record.session_id,
        status=live.status if live else str(record.state),
        pid=live.pid if live else record.pid,
        exit_code=live.exit_code if live else record.exit_code,
        signal=live.signal if live else record.signal,
        event_count=counted.total_count,
        patterns=live.patterns if live else [],
        hooked_functions=live.hooked_functions if live else 0,
        output_bytes=live.output_bytes if live else None,
        losses={**counted.events_dropped, **(live.losses if live else {})},
        sampling=[one.model_dump(by_alias=True) for one in (live.sampling if live else counted.sampled)] or None,
        capabilities=capabilities,
        processes=(live.processes if live else record.detail.get("processes")) or None,
        crash=crash_shown(counted.crash, data, arguments.max_tokens),
        stuck=await stuck_shown(record, live, arguments.diagnose, call),
        next_steps=crash_steps(record.session_id, counted.crash) or None,
    )


async def _crash_data(record: SessionRecord, summary: dict[str, Any] | None, live: session.StatusReply | None, call: Call) -> dict[str, Any]:
    """The stored event's, or the session's own while it is under way; empty: there was no crash."""
    if summary is None:
        return live.crash or {} if live else {}
    reply = await call.ask("store", store.ReadValue(session_id=record.session_id, event_id=summary["id"]), store.ValueReply)
    found: dict[str, Any] = reply.event.get("data") or {}
    return found


async def _live_status(record: SessionRecord, call: Call) -> session.StatusReply | None:
    try:
        return await call.ask(f"session:{record.session_id}", session.SessionStatus(), session.StatusReply, deadline_s=3)
    except StrobeError as error:
        if error.code not in _GONE and is_live(record):
            raise
        if is_live(record):  # else it has done its work: only where children of the target live on it is still there
            call.warnings.append(f"This is what the catalog knows: {error.what}")
        return None


async def _stop(record: SessionRecord, arguments: SessionArguments, call: Call) -> Result:
    """Ends the session in the store in any case: a dead or stuck session process must not keep it alive."""
    stopped = await _stop_target(record, arguments.kill, call)
    state = _final_state(record, stopped)
    end = store.EndSession(session_id=record.session_id, state=state, retain=arguments.retain)
    ended = await call.ask("store", end, store.EndSession.EndReply, deadline_s=8)
    await unwatched(record, call)
    await _close(record, call)
    if stopped and stopped.target_alive:
        call.warnings.append(f"Process {record.pid} runs on, untraced.")
    return SessionResult(
        session_id=record.session_id,
        success=True,
        status=state,
        exit_code=stopped.exit_code if stopped else record.exit_code,
        signal=stopped.signal if stopped else record.signal,
        events_collected=ended.events_collected,
    )


def _final_state(record: SessionRecord, stopped: session.StopReply | None) -> str:
    """How the target ended, if it ended by itself; else `stopped`."""
    if record.state in (SessionState.EXITED, SessionState.CRASHED, SessionState.LOST):
        return str(record.state)
    return stopped.status if stopped and stopped.status in (SessionState.EXITED, SessionState.CRASHED) else str(SessionState.STOPPED)


async def _stop_target(record: SessionRecord, kill: bool, call: Call) -> session.StopReply | None:
    try:
        return await call.ask(f"session:{record.session_id}", session.Stop(kill=kill), session.StopReply, deadline_s=9)
    except StrobeError as error:
        if error.code is Code.TIMEOUT and is_live(record):  # it may still be at it: what it works on must stay
            what = f"{record.session_id} is busy and has not stopped yet."
            raise StrobeError(Code.TIMEOUT, what, "Call stop again in a few seconds; a process that hangs is replaced.", value=record.session_id) from error
        if error.code not in _GONE and is_live(record):
            raise
        if is_live(record):  # else it has done its work: only where children of the target live on it is still there
            call.warnings.append(f"The session was ended without its process: {error.what}")
        return None


async def _close(record: SessionRecord, call: Call) -> None:
    try:
        await call.ask("supervisor", supervisor.CloseSession(session_id=record.session_id), supervisor.CloseSession.REPLY, deadline_s=4)
    except StrobeError as error:
        call.warnings.append(f"The session's processes may still be ending: {error.what}")


async def _delete(record: SessionRecord, call: Call) -> Result:
    if is_live(record):
        raise StrobeError(
            Code.VALIDATION_ERROR,
            f"{record.session_id} is {record.state}; only an ended session can be deleted.",
            f'Stop it first: debug_session {{"action": "stop", "sessionId": "{record.session_id}"}} (without retain that deletes its data too).',
            value=record.session_id,
        )
    await call.ask("store", store.DeleteSession(session_id=record.session_id), store.DeleteSession.REPLY)
    await _close(record, call)
    return SessionResult(session_id=record.session_id, success=True, status="deleted")


TOOL: Final = Tool(
    name="debug_session",
    description=_DESCRIPTION,
    arguments=SessionArguments,
    result=SessionResult,
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    run=run,
    text=session_text,
    cuttable=("sessions", "patterns", "nextSteps"),
)
