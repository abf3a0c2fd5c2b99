"""Keeps what was seen of busy threads, look after look."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from actors.stuck_detector.look import Walked, walk
from actors.stuck_detector.sample import Tree
from actors.stuck_detector.verdict import BUSY_LEAST, Loop
from strobe.ptrace import run_as_tracer

LOOKS_MIN: Final = 3
THREADS_MAX: Final = 4  # looked at each time
REPEATED: Final = 0.1  # of a look's states were seen in earlier ones, each time: it goes round in them
STATES_MAX: Final = 4_000
_YIELD: Final = 24


@dataclass
class _Track:
    began: float
    last: float
    looks: int
    repeats: bool
    no_exit: int  # looks that showed it
    states: set[int]
    system: set[int]
    sp_first: int
    sp: int
    pc: int
    sinks: bool = True


class Loops:
    """Of one tree. A thread that rested in between starts anew."""

    def __init__(self) -> None:
        self._tracks: dict[int, _Track] = {}

    def look(self, first: Tree, second: Tree) -> None:
        """Samples the busiest threads, for some 20 ms each; call it off the loop."""
        before, window_ns = first.cpu, (second.at - first.at) * 1e9
        used = {thread.tid: (thread.cpu_ns - before.get(thread.tid, thread.cpu_ns)) / window_ns for thread in second.threads}
        ran = {thread.tid for thread in first.threads if thread.state == "R"}  # others may be in a call that a stop would end
        pids = {thread.tid: thread.pid for thread in second.threads if thread.state == "R" and (thread.tid in ran or thread.tid in self._tracks)}
        busy = sorted((tid for tid in pids if used[tid] >= BUSY_LEAST), key=lambda tid: -used[tid])[:THREADS_MAX]
        self._tracks = {tid: track for tid, track in self._tracks.items() if tid in busy}
        for tid in busy:
            try:
                self._add(tid, run_as_tracer(lambda tid=tid: walk(pids[tid], tid)))  # type: ignore[misc]
            except (OSError, TimeoutError):
                continue  # it has ended, another traces it, or it got no processor: the next look may

    def _add(self, tid: int, seen: Walked) -> None:
        now, track = time.monotonic(), self._tracks.get(tid)
        if track is None:
            self._tracks[tid] = _Track(now, now, 1, True, seen.no_exit, set(seen.states), set(seen.system_calls), seen.sp, seen.sp, seen.pc)
            return
        known = len(seen.states & track.states)
        track.repeats &= known >= max(1, len(seen.states) * REPEATED)
        if len(track.states) < STATES_MAX:
            track.states |= seen.states
        track.looks += 1
        track.last = now
        track.no_exit += seen.no_exit
        track.system |= seen.system_calls
        track.sinks &= seen.sp < track.sp
        track.sp, track.pc = seen.sp, seen.pc

    @property
    def young(self) -> bool:
        """More looks would tell more."""
        return not self._tracks or any(track.looks <= LOOKS_MIN for track in self._tracks.values())

    def pcs(self) -> dict[int, int]:
        return {tid: track.pc for tid, track in self._tracks.items()}

    def found(self, places: dict[int, tuple[str, str]] | None = None) -> dict[int, Loop]:
        """By tid. `places`: tid → (place, function)."""
        found = {}
        for tid, track in self._tracks.items():
            place, function = (places or {}).get(tid, ("", ""))
            grew = track.sp_first - track.sp if track.sinks else 0
            repeats = track.repeats and track.looks >= LOOKS_MIN
            system, yields = bool(track.system), _YIELD in track.system
            found[tid] = Loop(track.last - track.began, track.looks, repeats, track.no_exit * 2 >= track.looks, system, yields, grew, place, function)
        return found
