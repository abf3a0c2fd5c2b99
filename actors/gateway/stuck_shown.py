"""What the stuck-detector says of a running session. It watches from the first status on that asks about it."""

from __future__ import annotations

from typing import Any, Final

from actors.gateway.tool import Call
from strobe.errors import Code, StrobeError
from strobe.model.session import SessionRecord
from strobe.model.stuck import STUCK_KINDS, ThreadStack, Verdict
from strobe.protocol import session
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply, Suspicions, SuspicionsReply, Unwatch, Watch
from strobe.render.stuck import frames_in_words

STACKS_SHOWN: Final = 12
RUNNING: Final = ("running", "paused")
DIAGNOSE_S: Final = 12.0
ASK_S: Final = 2.0


async def stuck_shown(record: SessionRecord, live: session.StatusReply | None, diagnose: bool, call: Call) -> dict[str, Any] | None:
    """A suspicion, where there is one; with `diagnose` a verdict of any kind, with graph and stacks. What cannot be had becomes a warning."""
    if live is None or live.status not in RUNNING or live.pid is None:
        return None
    try:
        await call.ask("stuck_detector", Watch(key=record.session_id, pid=live.pid), Watch.REPLY, deadline_s=ASK_S)
        if diagnose:
            reply = await call.ask("stuck_detector", Diagnose(pid=live.pid), DiagnoseReply, deadline_s=DIAGNOSE_S)
            return _shown(reply.verdict, reply.stacks) | ({"notes": reply.notes} if reply.notes else {}) if reply.verdict else None
        found = await call.ask("stuck_detector", Suspicions(key=record.session_id), SuspicionsReply, deadline_s=ASK_S)
    except StrobeError as error:
        if error.code is not Code.PROCESS_EXITED:
            call.warnings.append(f"Whether it is stuck is not known: {error.what}")
        return None
    if found.current is None or found.current.verdict.kind not in STUCK_KINDS:
        return None
    return _shown(found.current.verdict, []) | {"sinceMs": found.current.since_ms}


async def unwatched(record: SessionRecord, call: Call) -> None:
    """A detector that does not answer forgets the tree by itself once it is gone."""
    try:
        await call.ask("stuck_detector", Unwatch(key=record.session_id), Unwatch.REPLY, deadline_s=ASK_S)
    except StrobeError as error:
        call.warnings.append(f"The stuck-detector may go on watching it: {error.what}")


def _shown(verdict: Verdict, stacks: list[ThreadStack]) -> dict[str, Any]:
    shown: dict[str, Any] = verdict.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    if stacks:
        shown["threads"] = [_thread(stack) for stack in stacks[:STACKS_SHOWN]]
    return shown


def _thread(stack: ThreadStack) -> dict[str, Any]:
    return {"name": stack.name, "tid": stack.tid, "pid": stack.pid, "stack": frames_in_words(stack)} | ({"note": stack.note} if stack.note else {})
