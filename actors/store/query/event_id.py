"""Event ids: `{session}-{n}`, n the arrival number."""

from __future__ import annotations

from strobe.errors import Code, StrobeError


def event_id(session_id: str, n: int) -> str:
    return f"{session_id}-{n}"


def parse_event_id(session_id: str, text: str, field: str) -> int:
    """n; VALIDATION_ERROR naming `field` when the id is none of this session."""
    session, _, number = text.rpartition("-")
    if session != session_id or not number.isdecimal():
        what = f"{field} {text!r} is not an event id of session {session_id}."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give an id as debug_query returned it for this session.", value=text)
    return int(number)
