"""What the stuck-detector concludes of a process tree: a verdict with its evidence, who waits for whom, and the stacks."""

from __future__ import annotations

from typing import Literal

from strobe.model.base import Noun
from strobe.model.probe import Frame

Kind = Literal["deadlock", "infinite_loop", "waiting_outside", "busy_moving", "paused", "not_stuck"]
Certainty = Literal["proven", "probable", "suspected"]
STUCK_KINDS: frozenset[Kind] = frozenset({"deadlock", "infinite_loop"})


class WaitNode(Noun):
    """One thread of the wait graph."""

    pid: int
    tid: int
    name: str
    waits: str  # mutex, condition, join, read, child …; "" where it runs
    timed: bool = False
    what: str = ""  # in words: `pthread mutex lock_a (0x5555…), held by transfer-ba`
    at: str | None = None  # `transfer, bank.c:41`, where its stack is known


class WaitEdge(Noun):
    """`waiter` goes on when `owner` (both tids) does something. `certain`: the owner is the only one who can."""

    waiter: int
    owner: int
    kind: str
    address: int | None = None
    name: str | None = None
    certain: bool = False


class Verdict(Noun):
    kind: Kind
    cause: str  # mutex_cycle, self_lock, abandoned_lock, no_waker, process_cycle; loop, livelock, recursion; timer, network, stdin, child …
    certainty: Certainty
    summary: str
    evidence: list[str] = []
    nodes: list[WaitNode] = []
    edges: list[WaitEdge] = []
    suggested_traces: list[str] = []


class ThreadStack(Noun):
    pid: int
    tid: int
    name: str
    state: str
    frames: list[Frame]
    note: str | None = None  # why it is short or missing
