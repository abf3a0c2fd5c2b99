"""Two samples in, a verdict out. No I/O, no clock: what is recorded can be judged again.

`proven` is said of one thing only: a cycle of untimed waits, each for the live owner of a lock (or the end of a thread), that was the same in both samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from actors.stuck_detector.graph import cycles, hopeless, process_cycle
from actors.stuck_detector.sample import Thread, Tree
from strobe.model.stuck import Verdict, WaitEdge, WaitNode

BUSY_SHARE: Final = 0.5  # of a core, by one thread: it computes
BUSY_LEAST: Final = 0.1  # of a core, where it would like more and others have it
IDLE_SHARE: Final = 0.02  # of a core, by the whole tree
MOVED_BYTES: Final = 64 << 10  # per window: input and output that count as progress
LOOP_S: Final = 0.9  # a state that repeats for so long is a loop without end
RECURSION_BYTES: Final = 256 << 10  # that a stack grew between looks, each time
NODES_MAX: Final = 64
EDGES_MAX: Final = 200


@dataclass(frozen=True)
class Loop:
    """What ptrace saw of a busy thread, several times. `since_s`: how long ago the first of these looks was."""

    since_s: float
    looks: int
    repeats: bool = False  # the registers came back to the same values, in every look
    no_exit: bool = False  # no branch of the loop leads out of it
    calls_system: bool = False
    yields: bool = False  # … to give the processor away
    stack_grew: int = 0  # bytes, from the first look to the last, never shrinking
    place: str = ""  # function, file:line
    function: str = ""


@dataclass(frozen=True)
class Known:
    """What is known beside the samples."""

    loops: Mapping[int, Loop] = field(default_factory=dict)  # by tid
    names: Mapping[tuple[int, int], str] = field(default_factory=dict)  # (pid, address) → `lock_a`
    places: Mapping[int, str] = field(default_factory=dict)  # tid → `transfer, bank.c:41`
    functions: Mapping[int, str] = field(default_factory=dict)  # tid → the innermost function of the user's own
    holders: Mapping[int, frozenset[int]] = field(default_factory=dict)  # waiter → threads whose stack holds the lock's address


def judge(first: Tree, second: Tree, known: Known | None = None) -> Verdict:
    return _Case(first, second, known or Known()).verdict()


class _Case:
    def __init__(self, first: Tree, second: Tree, known: Known) -> None:
        self.known = known
        self.tree = second
        self.window_s = max(second.at - first.at, 1e-3)
        self.threads = {thread.tid: thread for thread in second.threads if thread.state not in "ZX"}
        before = {thread.tid: thread for thread in first.threads}
        self.used = {tid: thread.cpu_ns - before[tid].cpu_ns if tid in before else thread.cpu_ns for tid, thread in self.threads.items()}
        same = [tid for tid, thread in self.threads.items() if tid in before and before[tid].place == thread.place and before[tid].wait == thread.wait]
        self.still = {tid: self.threads[tid] for tid in same}
        self.share = sum(self.used.values()) / 1e9 / self.window_s
        self.moved = sum(max(0, one.moved_bytes - first.processes[pid].moved_bytes) for pid, one in second.processes.items() if pid in first.processes)

    def verdict(self) -> Verdict:
        return self._paused() or self._cycle() or self._no_waker() or self._busy() or self._waiting()

    def _paused(self) -> Verdict | None:
        held = [thread for thread in self.threads.values() if thread.state in "tT"]
        if not held or any(thread.state == "R" for thread in self.threads.values()):
            return None
        traced = [one for one in self.tree.processes.values() if one.tracer]
        if any(thread.state == "t" for thread in held):
            tracer = f"its tracer, process {traced[0].tracer}" if traced else "a tracer"
            return self._make("paused", "tracer", "probable", f"Held by {tracer}: {_count(held, 'thread')}.", held)
        return self._make("paused", "stopped", "probable", f"Stopped by a signal (SIGSTOP, SIGTSTP): {_count(held, 'thread')}.", held)

    def _cycle(self) -> Verdict | None:
        found = cycles(self.still)
        if not found:
            return None
        loop = max(found, key=len)
        members = [self.threads[tid] for tid in loop]
        if len(loop) == 1:
            text = f"{self.called(members[0])} waits for a lock that it holds itself: {self.lock(members[0])}."
            return self._make("deadlock", "self_lock", "proven", text, members)
        chain = "; ".join(f"{self.called(one)} waits for {self.lock(one)}" for one in members)
        return self._make("deadlock", "mutex_cycle", "proven", f"{len(loop)} threads wait for each other: {chain}.", members)

    def _no_waker(self) -> Verdict | None:
        lost = hopeless(self.threads) & self.still.keys()
        abandoned = [self.threads[tid] for tid in lost if self.threads[tid].wait and self.threads[tid].wait.kind == "abandoned"]  # type: ignore[union-attr]
        if abandoned:
            return self._make("deadlock", "abandoned_lock", "probable", f"{self.called(abandoned[0])} waits for {self.lock(abandoned[0])}.", abandoned)
        by_process = Counter(self.threads[tid].pid for tid in lost)
        whole = {pid for pid, number in by_process.items() if number == sum(1 for one in self.threads.values() if one.pid == pid)}
        members = [self.threads[tid] for tid in sorted(lost) if self.threads[tid].pid in whole]
        if not members:
            return None
        if loop := process_cycle(self.threads, lost):
            chain = "; ".join(f"{self.called(self.threads[tid])} waits for {self.lock(self.threads[tid])}" for tid in loop)
            return self._make("deadlock", "process_cycle", "probable", f"Processes wait for each other: {chain}.", members)
        kinds = Counter(one.wait.kind for one in members if one.wait)
        cause = "lock_cycle" if "lock" in kinds or "rwlock" in kinds else "no_waker"
        shown = "; ".join(f"{self.called(one)} waits for {self.lock(one)}" for one in members[:4])
        return self._make("deadlock", cause, "probable", f"Nobody is left to wake anybody: {shown}{' …' if len(members) > 4 else ''}.", members)

    def _busy(self) -> Verdict | None:
        busy = sorted((tid for tid in self.threads if self._computes(tid)), key=lambda tid: -self.used[tid])
        loops = [(self.threads[tid], self.known.loops[tid]) for tid in busy if tid in self.known.loops]
        endless = [(thread, loop) for thread, loop in loops if loop.since_s >= LOOP_S and (loop.repeats or loop.no_exit)]
        if endless and self.moved < MOVED_BYTES:
            return self._loop(endless)
        polite = [(thread, loop) for thread, loop in loops if loop.yields and loop.looks >= 3 and loop.since_s >= LOOP_S]
        if len(polite) > 1 and len(polite) == len(busy) and self.moved < MOVED_BYTES:
            return self._livelock(polite)
        deeper = [(thread, loop) for thread, loop in loops if loop.looks >= 3 and loop.stack_grew >= RECURSION_BYTES * loop.looks]
        if deeper:
            thread, loop = deeper[0]
            text = f"{self.called(thread)} calls deeper and deeper: its stack grew by {loop.stack_grew >> 10} KiB in {loop.since_s:.1f} s{_at(loop)}."
            return self._make("infinite_loop", "recursion", "suspected", text, [thread])
        if busy or self.share >= BUSY_SHARE:
            threads = [self.threads[tid] for tid in busy]
            return self._make("busy_moving", "cpu", "probable", f"It computes: {self.share:.2f} cores{_at(loops[0][1]) if loops else ''}.", threads)
        if self.moved >= MOVED_BYTES:
            return self._make("busy_moving", "io", "probable", f"It reads and writes: {self.moved / self.window_s / 1e6:.1f} MB/s.", [])
        disk = [thread for thread in self.threads.values() if thread.state == "D"]
        if disk and self.share > IDLE_SHARE:
            return self._make("busy_moving", "io", "suspected", f"It works with the disk: {self.called(disk[0])} in {disk[0].wchan}.", disk)
        return None

    def _computes(self, tid: int) -> bool:
        share = self.used[tid] / 1e9 / self.window_s
        return share >= BUSY_SHARE or (share >= BUSY_LEAST and (self.threads[tid].state == "R" or tid in self.known.loops))

    def _loop(self, endless: Sequence[tuple[Thread, Loop]]) -> Verdict:
        threads = [thread for thread, _ in endless]
        thread, loop = endless[0]
        why = "no branch leads out of it" if loop.no_exit else "its registers come back to the same values"
        who = self.called(thread) if len(endless) == 1 else f"{len(endless)} threads ({', '.join(self.called(one) for one in threads[:4])})"
        text = f"{who} {'loops' if len(endless) == 1 else 'loop'} without end{_at(loop)}: {why}, in {loop.looks} looks over {loop.since_s:.1f} s."
        return self._make("infinite_loop", "loop", "probable" if loop.no_exit and not loop.calls_system else "suspected", text, threads)

    def _livelock(self, polite: Sequence[tuple[Thread, Loop]]) -> Verdict:
        threads = [thread for thread, _ in polite]
        shown = ", ".join(f"{self.called(thread)}{_at(loop)}" for thread, loop in polite[:4])
        text = f"{len(polite)} threads keep giving way to each other (sched_yield) and get nowhere for {polite[0][1].since_s:.1f} s: {shown}."
        return self._make("infinite_loop", "livelock", "suspected", text, threads)

    def _waiting(self) -> Verdict:
        leaf = self._leaf()
        if leaf is None:
            return self._make("not_stuck", "moving", "suspected", f"It runs: {self.share:.2f} cores.", [])
        wait = leaf.wait
        assert wait is not None
        cause = "timer" if wait.timed and not wait.outside else wait.outside or wait.kind
        if self.share > IDLE_SHARE and wait.timed:
            text = f"It wakes up again and again ({self.share:.2f} cores); now {self.called(leaf)} waits for {self.lock(leaf)}."
            return self._make("not_stuck", "polling", "suspected", text, [leaf])
        certainty = "probable" if leaf.tid in self.still else "suspected"
        return self._make("waiting_outside", cause, certainty, f"{self.called(leaf)} waits for {self.lock(leaf)}.", [leaf])

    def _leaf(self) -> Thread | None:
        """Where the chain of waits from the first thread ends. None: something runs."""
        root = next((thread for thread in self.tree.threads if thread.tid in self.threads), None)
        seen: set[int] = set()
        while root is not None and root.wait is not None and root.tid not in seen:
            seen.add(root.tid)
            wakers = [self.threads[tid] for tid in sorted(root.wait.wakers) if tid in self.threads and tid not in seen]
            if root.wait.outside or not wakers:
                return root
            outward = [one for one in wakers if one.wait is None or one.wait.outside or one.wait.timed]
            root = min(outward or wakers, key=_weight)
        return root if root is not None and root.wait is not None else None

    def called(self, thread: Thread) -> str:
        name = f"{thread.name} ({thread.tid})" if thread.tid == thread.pid else f"thread {thread.name} ({thread.tid})"
        return f"{name}{' in ' + place if (place := self.known.places.get(thread.tid)) else ''}"

    def lock(self, thread: Thread) -> str:
        """What it waits for, by name where one is known."""
        if thread.wait is None:
            return "nothing"
        name = self.known.names.get((thread.pid, thread.wait.address)) if thread.syscall == 202 else None
        return f"{thread.wait.what}{', ' + name if name else ''}"

    def _make(self, kind: str, cause: str, certainty: str, summary: str, members: Sequence[Thread]) -> Verdict:
        idle = [thread for thread in self.threads.values() if thread.wait is not None]
        shown = sorted(idle, key=lambda one: (one not in members, one.tid))[:NODES_MAX]
        return Verdict.model_validate(
            {
                "kind": kind, "cause": cause, "certainty": certainty, "summary": summary, "evidence": self._evidence(members),
                "nodes": [self._node(thread) for thread in shown] + [self._node(one) for one in members if one.wait is None],
                "edges": [edge for thread in shown for edge in self._edges(thread)][:EDGES_MAX],
                "suggested_traces": list(dict.fromkeys(self.known.functions[one.tid] for one in members if one.tid in self.known.functions))[:8],
            }
        )  # fmt: skip

    def _evidence(self, members: Sequence[Thread]) -> list[str]:
        lines = [f"{_count(list(self.threads), 'thread')} used {self.share:.3f} cores and moved {self.moved:,} bytes in {self.window_s:.2f} s."]
        same = [thread for thread in members if thread.tid in self.still]
        if same:
            lines.append(f"{_count(same, 'thread')} of {len(members)} did not move: same system call, arguments, stack pointer and CPU time in two samples.")
        for thread in members[:8]:
            if thread.wait:
                lines.append(f"{self.called(thread)}: {self.lock(thread)}{' with a timeout' if thread.wait.timed else ''}.")
        return lines

    def _node(self, thread: Thread) -> WaitNode:
        wait = thread.wait
        place = self.known.places.get(thread.tid)
        if wait is None:
            return WaitNode(pid=thread.pid, tid=thread.tid, name=thread.name, waits="", at=place)
        return WaitNode(pid=thread.pid, tid=thread.tid, name=thread.name, waits=wait.kind, timed=wait.timed, what=self.lock(thread), at=place)

    def _edges(self, thread: Thread) -> list[WaitEdge]:
        wait = thread.wait
        if wait is None:
            return []
        name = self.known.names.get((thread.pid, wait.address)) if thread.syscall == 202 else None
        address = wait.address if thread.syscall == 202 else None
        likely = self.known.holders.get(thread.tid, frozenset())
        others = sorted(wait.wakers) if wait.kind in ("child", "read", "write") else []
        owners = [wait.owner] if wait.owner else sorted(likely & self.threads.keys()) or others
        return [WaitEdge(waiter=thread.tid, owner=owner, kind=wait.kind, address=address, name=name, certain=bool(wait.owner)) for owner in owners[:8]]


def _weight(thread: Thread) -> tuple[int, int]:
    """Which of several that could wake a thread tells most: what runs, then what leads outside for long, the timers last."""
    if thread.wait is None:
        return 0, thread.tid
    order = {"network": 1, "stdin": 1, "another process": 1, "disk": 1, "child": 2, "signal": 3, "timer": 4}
    return order.get(thread.wait.outside, 5), thread.tid


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _at(loop: Loop) -> str:
    return f" in {loop.place}" if loop.place else ""
