"""Which ended sessions go: those older than `retention.days`, then the oldest until all files together hold `retention.maxBytes`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from actors.store.catalog import LIVE
from strobe.model.session import SessionRecord

DAY_NS: Final = 86_400 * 10**9


def expired(records: Sequence[SessionRecord], sizes: Mapping[str, int], now_ns: int, days: float, bytes_max: int) -> list[str]:
    """Ids to delete, oldest first. Live sessions are never among them, whatever they hold."""
    ended = sorted((record for record in records if record.state not in LIVE), key=_ended_at)
    old = [record.session_id for record in ended if now_ns - _ended_at(record) > days * DAY_NS]
    left = sum(sizes.values()) - sum(sizes.get(name, 0) for name in old)
    for record in ended[len(old) :]:
        if left <= bytes_max:
            break
        if record.retained:
            old.append(record.session_id)
            left -= sizes.get(record.session_id, 0)
    return old


def _ended_at(record: SessionRecord) -> int:
    return record.ended_at or record.started_at
