"""Which ended sessions go, by themselves: those older than `retention.days`, then the oldest until all files together hold
`retention.maxBytes`; or because an operator said so. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from actors.store.catalog import LIVE
from strobe.errors import Code, StrobeError
from strobe.model.session import SessionRecord
from strobe.protocol.upkeep import KeptSession, Purge

DAY_NS: Final = 86_400 * 10**9


def expired(records: Sequence[SessionRecord], sizes: Mapping[str, int], now_ns: int, days: float, bytes_max: int) -> list[str]:
    """Ids to delete, oldest first. Live sessions are never among them, whatever they hold."""
    ended = sorted((record for record in records if record.state not in LIVE), key=ended_at)
    old = [record.session_id for record in ended if now_ns - ended_at(record) > days * DAY_NS]
    left = sum(sizes.values()) - sum(sizes.get(name, 0) for name in old)
    for record in ended[len(old) :]:
        if left <= bytes_max:
            break
        if record.retained:
            old.append(record.session_id)
            left -= sizes.get(record.session_id, 0)
    return old


def chosen(ask: Purge, records: Sequence[SessionRecord], now_ns: int) -> tuple[list[SessionRecord], list[KeptSession]]:
    """(what goes, oldest first; what was named and stays, with the reason).

    Raises SESSION_NOT_FOUND for a name that is none, VALIDATION_ERROR where nothing is chosen or names and conditions are mixed.
    """
    by_condition = ask.older_than_s is not None or ask.retained
    if bool(ask.session_ids) == by_condition:
        what = "Sessions are chosen by id or by --older-than and --retained, not by both." if by_condition else "Nothing says which sessions are to go."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Name sessions, or give --older-than 3d, --retained or both; --dry-run shows what would go.")
    known = {record.session_id: record for record in records}
    for name in ask.session_ids:
        if name not in known:
            what = f"There is no session {name[:200]!r}; nothing was deleted."
            raise StrobeError(Code.SESSION_NOT_FOUND, what, "`strobe-ctl sessions` lists them.", value=name[:200])
    named = [known[name] for name in dict.fromkeys(ask.session_ids)] if ask.session_ids else [one for one in records if _meets(one, ask, now_ns)]
    running = "it is running; `debug_session stop` ends it, without retain its data goes too"
    kept = [KeptSession(session_id=one.session_id, reason=running) for one in named if one.state in LIVE]
    return sorted((one for one in named if one.state not in LIVE), key=ended_at), kept


def _meets(record: SessionRecord, ask: Purge, now_ns: int) -> bool:
    old = ask.older_than_s is None or now_ns - ended_at(record) > ask.older_than_s * 1e9
    return record.state not in LIVE and old and (record.retained or not ask.retained)


def ended_at(record: SessionRecord) -> int:
    return record.ended_at or record.started_at
