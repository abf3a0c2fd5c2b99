"""What several tools ask about a session."""

from __future__ import annotations

from actors.gateway.tool import Call
from strobe.model.session import SessionRecord, SessionState
from strobe.protocol import store

_LIVE = (SessionState.RUNNING, SessionState.PAUSED)


async def record_of(call: Call, session_id: str) -> SessionRecord:
    """The catalog's row. Raises SESSION_NOT_FOUND."""
    reply = await call.ask("store", store.ListSessions(session_id=session_id), store.SessionsReply)
    return reply.sessions[0]


def is_live(record: SessionRecord) -> bool:
    return record.state in _LIVE


def of_core(record: SessionRecord) -> bool:
    """A core dump, whose memory can be read although nothing runs."""
    return "coreFile" in record.detail


def ended_words(record: SessionRecord) -> str:
    """`exited with code 3` · `crashed by signal 11` · `stopped`."""
    if record.signal:
        return f"{record.state} by signal {record.signal}"
    return f"{record.state} with code {record.exit_code}" if record.exit_code is not None else str(record.state)
