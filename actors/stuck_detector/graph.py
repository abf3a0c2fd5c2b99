"""Who can wake whom, and who can no longer be woken. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from actors.stuck_detector.sample import Thread

OWNED = frozenset({"mutex", "rwlock", "join"})  # waits whose owner alone can end them


def is_untimed(thread: Thread) -> bool:
    """It sleeps until someone does something, and nothing outside can."""
    return thread.wait is not None and not thread.wait.timed and not thread.wait.outside


def hopeless(threads: Mapping[int, Thread]) -> set[int]:
    """The greatest set of threads of which each waits untimed, and only for others in the set (or for nobody)."""
    left = {tid for tid, thread in threads.items() if is_untimed(thread)}
    while True:
        out = {tid for tid in left if any(waker in threads and waker not in left for waker in _wakers(threads[tid]))}
        if not out:
            return left
        left -= out


def _wakers(thread: Thread) -> frozenset[int]:
    return thread.wait.wakers if thread.wait else frozenset()


def cycles(threads: Mapping[int, Thread]) -> list[list[int]]:
    """Closed chains of untimed waits, each for the one thread that owns what it waits for."""
    found: list[list[int]] = []
    seen: set[int] = set()
    for start in sorted(threads):
        path: list[int] = []
        tid = start
        while tid in threads and tid not in path and tid not in seen and (owner := owner_of(threads[tid])):
            path.append(tid)
            tid = owner
        if tid in path:
            found.append(path[path.index(tid) :])
        seen.update(path)
    return found


def owner_of(thread: Thread) -> int:
    wait = thread.wait
    return wait.owner if wait is not None and not wait.timed and wait.kind in OWNED else 0


def process_cycle(threads: Mapping[int, Thread], stuck: set[int]) -> list[int]:
    """A closed chain of waits (child, pipe, socket) through more than one process, by tid; empty: none."""
    for start in sorted(stuck):
        path: list[int] = []
        tid = start
        while tid in stuck and tid not in path:
            path.append(tid)
            following = [waker for waker in sorted(_wakers(threads[tid])) if waker in stuck]
            tid = next((waker for waker in following if threads[waker].pid != threads[tid].pid), following[0] if following else 0)
        loop = path[path.index(tid) :] if tid in path else []
        if len({threads[one].pid for one in loop}) > 1:
            return loop
    return []
