"""How an actor and the supervisor meet, and how a warm process is given its session."""

from __future__ import annotations

from typing import ClassVar

from strobe.model.base import Noun
from strobe.protocol.base import Ask, Done, Reply


class Hello(Noun):
    """Actor → supervisor, when it has connected (`ready` False), when `starting()` has returned (True), and to a successor."""

    name: str
    role: str
    pid: int
    generation: int
    version: str
    home: str
    ready: bool
    notices: list[str]  # types it wants to hear
    session_id: str | None = None


class Greeting(Noun):
    """Supervisor → actor. Not accepted: a process the supervisor does not count with; it ends itself."""

    accepted: bool
    supervisor_pid: int
    reason: str = ""


class Adopt(Ask):
    """A warm or restarted process gets its name and session. Answered by every actor."""

    TYPE: ClassVar = "actor.adopt"
    REPLY: ClassVar[type[Reply]] = Done
    name: str
    session_id: str
    recovering: bool
