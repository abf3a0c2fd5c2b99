"""What the stuck-detector answers. It samples process trees: those it is asked about, and those it watches."""

from __future__ import annotations

from typing import Any, ClassVar

from strobe.model.base import Noun
from strobe.model.stuck import ThreadStack, Verdict
from strobe.protocol.base import Ask, Done, Reply


class DiagnoseReply(Reply):
    threads: list[dict[str, Any]]  # pid, tid, name, state, wchan, syscall, cpuNs
    cpu_share: float  # of one core, over the sampling window
    idle_ms: int  # since the tree last used CPU
    verdict: Verdict | None = None
    stacks: list[ThreadStack] = []
    notes: list[str] = []  # what could not be looked at, and why


class Diagnose(Ask):
    """Samples the process tree of `pid` twice, now, with verdict, wait graph and stacks. Errors: PROCESS_EXITED."""

    TYPE: ClassVar = "stuck_detector.diagnose"
    REPLY: ClassVar[type[Reply]] = DiagnoseReply
    pid: int
    stacks: bool = True


class Watch(Ask):
    """Keeps an eye on the tree of `pid` until it is gone or Unwatch. Again with the same key and pid: nothing changes. Errors: LIMIT_EXCEEDED."""

    TYPE: ClassVar = "stuck_detector.watch"
    REPLY: ClassVar[type[Reply]] = Done
    key: str
    pid: int


class Unwatch(Ask):
    """A key that is not watched is no error."""

    TYPE: ClassVar = "stuck_detector.unwatch"
    REPLY: ClassVar[type[Reply]] = Done
    key: str


class Suspicion(Noun):
    """A verdict that held from `since_ms` ago to `until_ms` ago (0: it still holds)."""

    verdict: Verdict
    since_ms: int
    until_ms: int = 0


class SuspicionsReply(Reply):
    watched: bool
    current: Suspicion | None = None  # of any kind: advisory; `verdict.kind` says whether it is stuck
    history: list[Suspicion] = []  # stuck ones that passed, the newest last
    idle_ms: int = 0


class Suspicions(Ask):
    TYPE: ClassVar = "stuck_detector.suspicions"
    REPLY: ClassVar[type[Reply]] = SuspicionsReply
    key: str
