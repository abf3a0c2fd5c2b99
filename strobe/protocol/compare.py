"""What the store answers about two sessions: where their traced calls first differ."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from strobe.model.base import Noun
from strobe.model.query import FileFilter, TextFilter, ThreadNameFilter
from strobe.protocol.base import Ask, Reply

Verdict = Literal["differs", "same", "unfinished", "notComparable"]


class OfSide(Noun):
    """Addresses of functions that this side's values name, and where its modules are (path → load bias)."""

    function_addresses: list[int] = []
    modules: dict[str, int] = {}


class CompareReply(Reply):
    """`divergences`: actors/store/divergence/report.py says their fields; the earliest of each pair of threads, earliest first.

    `unfinished`: nothing differs as far as it was compared. `compared`: {calls, threads, functions, values}.
    """

    verdict: Verdict
    divergences: list[dict[str, Any]]
    total: int
    compared: dict[str, int]
    notes: list[str]
    ours: OfSide
    theirs: OfSide


class CompareSessions(Ask):
    """Filters hold for both. `ignored`: `function`, `function(argument)` or `function.ret`, which differ from run to run. Errors: SESSION_NOT_FOUND,
    VALIDATION_ERROR."""

    TYPE: ClassVar = "store.compare_sessions"
    REPLY: ClassVar[type[Reply]] = CompareReply
    session_id: str
    against: str
    function: TextFilter | None = None
    source_file: FileFilter | None = None
    thread_name: ThreadNameFilter | None = None
    ignored: list[str] = []
    limit: int = 5
