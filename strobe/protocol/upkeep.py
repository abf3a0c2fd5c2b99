"""What the store answers operators (strobe-ctl): what to delete, what is busy, a session's file as a copy."""

from __future__ import annotations

from typing import ClassVar, Literal

from strobe.model.base import Noun
from strobe.protocol.base import Ask, Reply


class PurgedSession(Noun):
    session_id: str
    state: str
    ended_at: int  # ns since the epoch
    bytes: int


class KeptSession(Noun):
    session_id: str
    reason: str


class PurgeReply(Reply):
    """`purged`: oldest first; with `dry_run` what would be. `kept`: sessions that were named and stay."""

    purged: list[PurgedSession]
    kept: list[KeptSession]
    freed_bytes: int
    left_bytes: int


class Purge(Ask):
    """Deletes ended sessions: those named, or all that are old enough and (with `retained`) were retained. Never one that runs."""

    TYPE: ClassVar = "store.purge"
    REPLY: ClassVar[type[Reply]] = PurgeReply
    session_ids: list[str] = []
    older_than_s: float | None = None
    retained: bool = False
    dry_run: bool = False


class FunctionCalls(Noun):
    function: str
    calls: int  # recorded since the store opened the session's file; never falls


class BusySession(Noun):
    """`events`: all that ever arrived, those evicted since included. `calls`: functions called most, most first."""

    session_id: str
    state: str
    pid: int | None
    events: int
    bytes: int
    dropped: int
    calls: list[FunctionCalls]


class ActivityReply(Reply):
    sessions: list[BusySession]


class Activity(Ask):
    """Sessions that run, or whose file is open."""

    TYPE: ClassVar = "store.activity"
    REPLY: ClassVar[type[Reply]] = ActivityReply


class CopyReply(Reply):
    path: str
    bytes: int
    events: int


class CopySession(Ask):
    """One moment of a session, recording or not, as a file of its own: `path`, which must not exist; 0600.

    duckdb: the whole file as the store has it. parquet: one row an event (the columns of `events_v`), in time order.
    """

    TYPE: ClassVar = "store.copy_session"
    REPLY: ClassVar[type[Reply]] = CopyReply
    session_id: str
    form: Literal["duckdb", "parquet"]
    path: str
