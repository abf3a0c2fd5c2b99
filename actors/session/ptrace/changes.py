"""Many small changes of code, put in order before the world stops, so that what happens during the stop is a few reads and writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from actors.session.ptrace.memory import Memory

PAGE: Final = 4096
RUN_BYTES_MAX: Final = 1 << 18
FEW: Final = 24  # changes in a run; with more of them numpy is faster than a loop


@dataclass(frozen=True, slots=True)
class Change:
    """`before` → `after`, of the same length, at `address`."""

    address: int
    before: bytes
    after: bytes


class Changes:
    """Immutable. Empty is allowed."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.items = sorted(changes, key=lambda one: one.address)
        self.starts: NDArray[np.uint64] = np.array([one.address for one in self.items], np.uint64)
        self.ends: NDArray[np.uint64] = np.array([one.address + len(one.after) for one in self.items], np.uint64)
        self._runs = [_Run(run) for run in _split(self.items)]

    def __len__(self) -> int:
        return len(self.items)

    def apply(self, memory: Memory, first: int, until: float) -> tuple[int, list[Change]]:
        """Writes runs from number `first` on, at least one, until `until` (time.perf_counter). Returns the first run not written (None are
        left when it is `runs`), and the changes that could not be made: other bytes than `before` are there, or nothing is mapped there
        any more. A place that is changed already counts as written."""
        wrong: list[Change] = []
        for number in range(first, len(self._runs)):
            wrong += self._runs[number].apply(memory)
            if time.perf_counter() > until:
                return number + 1, wrong
        return self.runs, wrong

    @property
    def runs(self) -> int:
        return len(self._runs)

    def holding(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each address: is it inside a window, that is, after its first byte? At the first byte the next instruction is the old
        one or the new one, both whole."""
        if not len(self.starts):
            return np.zeros(len(addresses), np.bool_)
        at = np.searchsorted(self.starts, addresses, side="left").astype(np.int64) - 1  # the last window that starts before it
        inside: NDArray[np.bool_] = (at >= 0) & (addresses < self.ends[at])
        return inside

    def holds(self, address: int) -> bool:
        return bool(self.holding(np.array([address], np.uint64))[0])


class _Run:
    """Changes close to each other: read, checked and written as one piece of whole pages."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        self.start = changes[0].address & -PAGE
        self.size = (changes[-1].address + len(changes[-1].after) - self.start + PAGE - 1) & -PAGE
        if len(changes) <= FEW:
            return
        lengths = np.array([len(one.after) for one in changes])
        self._lengths = lengths
        self._firsts = np.cumsum(lengths) - lengths
        within = np.arange(lengths.sum()) - np.repeat(self._firsts, lengths)
        self.places = np.repeat(np.array([one.address - self.start for one in changes]), lengths) + within
        self.before = np.frombuffer(b"".join(one.before for one in changes), np.uint8)
        self.after = np.frombuffer(b"".join(one.after for one in changes), np.uint8)

    def apply(self, memory: Memory) -> list[Change]:
        try:
            content = memory.read(self.start, self.size)
            wrong = self._apply_few(content) if len(self.changes) <= FEW else self._apply_many(np.frombuffer(content, np.uint8))
            memory.write(self.start, content)
        except OSError:  # not mapped any more, or a mapping that nobody may write to
            return self.changes
        return wrong

    def _apply_few(self, content: bytearray) -> list[Change]:
        wrong = []
        for change in self.changes:
            at = change.address - self.start
            end = at + len(change.after)
            now = content[at:end]
            if now == change.before:
                content[at:end] = change.after
            elif now != change.after:
                wrong.append(change)
        return wrong

    def _apply_many(self, image: NDArray[np.uint8]) -> list[Change]:
        now = image[self.places]
        fits = np.logical_and.reduceat(now == self.before, self._firsts)
        good = fits if fits.all() else np.repeat(fits, self._lengths)
        if good is fits:
            image[self.places] = self.after
        else:
            image[self.places[good]] = self.after[good]
        done = fits | np.logical_and.reduceat(now == self.after, self._firsts)
        return [self.changes[n] for n in np.flatnonzero(~done)]


def _split(ordered: list[Change]) -> list[list[Change]]:
    """Cut where the next change is more than a page away, or a run would get too long. Runs share no page."""
    runs: list[list[Change]] = []
    end = 0  # first page after the run
    for change in ordered:
        first, last = change.address & -PAGE, (change.address + len(change.after) - 1) & -PAGE
        if runs and (first < end or (first == end and first - (runs[-1][0].address & -PAGE) < RUN_BYTES_MAX)):
            runs[-1].append(change)
        else:
            runs.append([change])
        end = last + PAGE
    return runs
