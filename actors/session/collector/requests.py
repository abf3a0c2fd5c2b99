"""What other threads ask of the collector's thread, and how they wait for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

from strobe.errors import Code, StrobeError


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch without frames from the session itself. `crash`: (ts, tid) of the crash page it tells of."""

    kind: Literal["hooks", "event", "session"]
    header: dict[str, Any]
    ticks: int | None = None  # an event's time in the pool's clock, converted when it is sent
    crash: tuple[int, int] | None = None


@dataclass(slots=True)
class Wish:
    """Everything before now committed (flush), and then nothing more (finish); or all crash pages told (crashes)."""

    kind: Literal["flush", "finish", "crashes"]
    output_bytes: int = 0  # size of the output file that must be committed
    lanes: dict[int, tuple[int, int]] | None = None  # goal, set at the first look after the wish
    since_ns: int = 0
    seq: int | None = None  # all that was wished for went out with batches up to this one
    done: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def wait(self, timeout_s: float) -> None:
        """TIMEOUT when it takes longer, ACTOR_UNAVAILABLE when the collector ended before."""
        if not self.done.wait(timeout_s):
            what = f"The store has not confirmed everything within {timeout_s:g} s."
            raise StrobeError(Code.TIMEOUT, what, "Ask again; nothing is lost.", value=timeout_s)
        if self.failure is not None:
            raise StrobeError(Code.ACTOR_UNAVAILABLE, f"The session's collector ended: {self.failure}.", "Ask again in a second.") from self.failure
