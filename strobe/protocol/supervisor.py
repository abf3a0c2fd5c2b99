"""What the supervisor answers, and the notices it publishes."""

from __future__ import annotations

from typing import ClassVar

from strobe.model.base import Noun
from strobe.protocol.base import Ask, Done, Message, Reply


class ActorStatus(Noun):
    name: str
    role: str
    pid: int | None
    generation: int
    state: str  # starting, ready, unhealthy, backoff, failed, stopped
    uptime_s: float
    restarts: int
    last_error: str | None = None


class StatusReply(Reply):
    pid: int
    version: str
    home: str
    uptime_s: float
    idle_s: float
    clients: int
    actors: list[ActorStatus]


class Status(Ask):
    TYPE: ClassVar = "supervisor.status"
    REPLY: ClassVar[type[Reply]] = StatusReply


class OpenSessionReply(Reply):
    session: str  # actor name: session:<id>
    spawner: str  # actor name: spawner:<id>


class OpenSession(Ask):
    """Gives a session its two processes, from the warm pair if there is one; both are ready when this is answered. Without `injects` it gets no
    spawner, and no spare is started for a while: what it starts is to have the processors for itself."""

    TYPE: ClassVar = "supervisor.open_session"
    REPLY: ClassVar[type[Reply]] = OpenSessionReply
    session_id: str
    injects: bool = True


class CloseSession(Ask):
    """Ends both processes of a session. The session has drained before; nothing is lost by it."""

    TYPE: ClassVar = "supervisor.close_session"
    REPLY: ClassVar[type[Reply]] = Done
    session_id: str


class RestartActor(Ask):
    TYPE: ClassVar = "supervisor.restart_actor"
    REPLY: ClassVar[type[Reply]] = Done
    name: str


class Shutdown(Ask):
    TYPE: ClassVar = "supervisor.shutdown"
    REPLY: ClassVar[type[Reply]] = Done
    reason: str


class SessionEnded(Message):
    """Notice by a session: target gone, everything acknowledged, it may be closed."""

    TYPE: ClassVar = "supervisor.session_ended"
    session_id: str


class ClientCount(Message):
    """Notice by the gateway, for the idle clock."""

    TYPE: ClassVar = "supervisor.client_count"
    clients: int
    calls_in_flight: int


class ActorGone(Message):
    """Notice to subscribers (gateway, store): an actor died. `session_id` when it was a session's or a spawner's."""

    TYPE: ClassVar = "notice.actor_gone"
    name: str
    session_id: str | None = None
    how: str
    gave_up: bool = False  # it will not be restarted
