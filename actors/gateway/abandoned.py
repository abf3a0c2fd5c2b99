"""Sessions that nobody looks after any more (SPEC §3): ended target, client gone, no call for 30 minutes. They are stopped and retained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from strobe.model.session import SessionRecord, SessionState

ABANDONED_S: Final = 30 * 60.0
LOOK_EVERY_S: Final = 60.0
_WAITING: Final = (SessionState.EXITED, SessionState.CRASHED, SessionState.LOST, SessionState.PAUSED)


def abandoned(records: Iterable[SessionRecord], connected: Collection[str], called: Mapping[str, float], since: float, now: float) -> list[SessionRecord]:
    """Those to end. `called`: session id → time of the last call about it; `since`: when this gateway began to count. Times in s, one clock."""
    return [
        record
        for record in records
        if record.state in _WAITING
        and not record.retained
        and record.client_id not in connected
        and now - max(called.get(record.session_id, since), since) > ABANDONED_S
    ]
