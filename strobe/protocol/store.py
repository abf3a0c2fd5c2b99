"""What the store answers, and the kinds of batch it takes on the data stream.

A batch is header (msgpack) + raw frames. Common header: {session, epoch, seq, kind, resume}. Times in batches are raw; `clock` turns
them into ns. Kinds:
  records   {slices: [{thread, pid, tid, comm, slots}], clock: [tsc0, mono0, tsc1, mono1] or null, segments?}; frames: map bytes, slot bytes; with
            segments (as in `output`) also the bytes of output that the records held
  output    {segments: [{stream, offset, bytes, tsNs, approximate, span, by: [thread, pid, tid, comm] or null}]}; frame: the bytes. tsNs is
            CLOCK_MONOTONIC; `by`: the thread that wrote, where a mark tells
  hooks     {hooks: [model.probe.Hook as dict], types?: {key (Plan.types): packed Bundle of strobe.values.bundle}, modules?: {path: load bias}},
            before the first record that uses them. Types and modules may also come later, with hooks []; a module told again was mapped anew
  losses    {hooks: {id: dropped records}, kinds: {kind: n}, cause}: to be added to what was lost before
  sampling  {tsNs, periods: {hook: n}}: from that CLOCK_MONOTONIC time on about one of n calls is recorded, 0: all. Calls not recorded are losses of
            the cause `sampled`
  event     {events: [{type: crash|pause|…, tsNs, pid, tid, text, data}]}
  session   {fields of SessionRecord that changed}
  settled   {tsNs}: everything up to this CLOCK_MONOTONIC time has been sent
  end       {}: last batch of the session
"""

from __future__ import annotations

from typing import Any, ClassVar

from strobe.model.pending import PendingChange, PendingSet
from strobe.model.query import Query
from strobe.model.sampling import SampledFunction
from strobe.model.session import SessionRecord
from strobe.protocol.base import Ask, Done, Message, Reply


class CreateSessionReply(Reply):
    session_id: str


class CreateSession(Ask):
    """Allots the id and refuses a second live session of one client and binary, or of one `pid` that is attached to (SESSION_EXISTS), in one
    transaction."""

    TYPE: ClassVar = "store.create_session"
    REPLY: ClassVar[type[Reply]] = CreateSessionReply
    client_id: str
    binary_path: str
    command: list[str]
    cwd: str
    project_root: str
    pid: int | None = None  # of a process that runs already
    session_id: str | None = None  # of a test run, which has its id already
    started_at: int
    started_monotonic_ns: int
    events_max: int = 2_000_000


class SessionsReply(Reply):
    sessions: list[SessionRecord]


class ListSessions(Ask):
    TYPE: ClassVar = "store.list_sessions"
    REPLY: ClassVar[type[Reply]] = SessionsReply
    session_id: str | None = None  # one; SESSION_NOT_FOUND if there is none
    client_id: str | None = None


class EndSession(Ask):
    """After its last batch: stopped, and kept or deleted. Answers how many events it held."""

    TYPE: ClassVar = "store.end_session"
    session_id: str
    state: str
    retain: bool

    class EndReply(Reply):
        events_collected: int

    REPLY: ClassVar[type[Reply]] = EndReply


class DeleteSession(Ask):
    TYPE: ClassVar = "store.delete_session"
    REPLY: ClassVar[type[Reply]] = Done
    session_id: str


PageEnd = tuple[str, str | None]  # (cursor, lastEventId) of a page that ended at an event of this one: what is behind it is not seen


class QueryReply(Reply):
    """`function_addresses`: those of functions that values name as `<function at 0x…>`; `modules`: path → load bias, where there are any."""

    events: list[dict[str, Any]]  # wire fields of SPEC §4
    total_count: int
    has_more: bool
    cursor: str | None
    last_event_id: str | None
    settled_until_ns: int
    pids: list[int] | None
    events_dropped: dict[str, int]  # exact count by cause
    sampled: list[SampledFunction] = []
    crash: dict[str, Any] | None
    newest_ns: int
    ends: list[PageEnd] | None = None
    function_addresses: list[int] = []
    modules: dict[str, int] = {}
    warnings: list[str] = []


class RunQuery(Ask):
    """`ends`: the reply also says, for each event, what a page ending there would have said. For whoever may show less than it asked for."""

    TYPE: ClassVar = "store.query"
    REPLY: ClassVar[type[Reply]] = QueryReply
    session_id: str
    query: Query
    ends: bool = False


class ValueReply(Reply):
    """`event`: in the summary form; with all its values where no path was asked for. `next_path`: where a list that was cut goes on."""

    event: dict[str, Any]
    value: Any = None
    type_name: str | None = None
    next_path: str | None = None
    function_addresses: list[int] = []
    modules: dict[str, int] = {}
    warnings: list[str] = []


class ReadValue(Ask):
    """One event's values whole, or the one at `path` (as in ValueFilter, and `[20..40]` at its end for elements 20 to 39 of a list).

    `limit`: elements shown of each list.
    """

    TYPE: ClassVar = "store.read_value"
    REPLY: ClassVar[type[Reply]] = ValueReply
    session_id: str
    event_id: str
    path: str | None = None
    limit: int = 100


class SqlReply(Reply):
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool


class RunSql(Ask):
    """One SELECT over the documented views of one session (or of the catalog when session_id is None)."""

    TYPE: ClassVar = "store.sql"
    REPLY: ClassVar[type[Reply]] = SqlReply
    session_id: str | None
    sql: str
    limit: int = 500
    timeout_ms: int = 10_000


class PendingReply(Reply):
    waiting: PendingSet


class Pending(Ask):
    """What waits for a client's next launch: one difference; `take` empties it. Answers the set as it was (take) or is now."""

    TYPE: ClassVar = "store.pending"
    REPLY: ClassVar[type[Reply]] = PendingReply
    client_id: str
    change: PendingChange = PendingChange()
    take: bool = False


class StoreStatusReply(Reply):
    sessions: int
    bytes: int
    events: int
    ingested_events: int
    ingest_lag_ms: float
    queries: int


class StoreStatus(Ask):
    TYPE: ClassVar = "store.status"
    REPLY: ClassVar[type[Reply]] = StoreStatusReply


class Drain(Ask):
    """Checkpoint everything; last ask before shutdown."""

    TYPE: ClassVar = "store.drain"
    REPLY: ClassVar[type[Reply]] = Done


class SessionChanged(Message):
    """Notice by the store: a session's catalog row changed."""

    TYPE: ClassVar = "notice.session_changed"
    record: SessionRecord
