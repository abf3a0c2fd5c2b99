"""The comparison of two sessions: pairs of threads side by side, up to the first event of each that differs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from actors.store.divergence.deep import Deep, function_of, leaves
from actors.store.divergence.same import Difference
from actors.store.divergence.stream import Part, ThreadStream
from actors.store.divergence.threads import Pair

Kind = Literal["arguments", "returnValue", "exception", "children", "ended"]


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread did: entered the call `call` or (`left`) left it; `n` is the event's number."""

    n: int
    call: int
    ts: int
    left: bool


@dataclass(frozen=True, slots=True)
class Divergence:
    """`ours` or `theirs` None: that thread's trace had ended. `last`: what both did before, on each side."""

    pair: Pair
    kind: Kind
    ours: Step | None
    theirs: Step | None
    differs: list[Difference]
    last: tuple[Step, Step] | None


@dataclass(slots=True)
class Progress:
    events: int = 0
    out_of_time: bool = False



def compare_threads(pair: Pair, ours: ThreadStream, theirs: ThreadStream, deep: Deep, progress: Progress, until: float) -> Divergence | None:
    left, right = ours.parts(), theirs.parts()
    a: Part | None = None
    b: Part | None = None
    last: tuple[Step, Step] | None = None
    while True:
        if time.monotonic() > until:
            progress.out_of_time = True
            return None
        a = a if a is not None and a.size else next(left, None)
        b = b if b is not None and b.size else next(right, None)
        if a is None or b is None:
            if a is None and b is None:
                return None
            return Divergence(pair, "ended", None if a is None else _step(a, 0), None if b is None else _step(b, 0), [], last)
        size = min(a.size, b.size)
        mine, other = a.cut(0, size), b.cut(0, size)
        row = _first(mine, other)
        inside = deep.first(mine, other, size if row is None else row)
        row = inside if inside is not None else row
        if row is not None:
            progress.events += row
            before = (_step(mine, row - 1), _step(other, row - 1)) if row else last
            return Divergence(pair, _kind(mine, other, row), _step(mine, row), _step(other, row), _differs(mine, other, row, deep), before)
        progress.events += size
        last = (_step(mine, size - 1), _step(other, size - 1))
        a, b = a.cut(size, a.size), b.cut(size, b.size)


def _first(ours: Part, theirs: Part) -> int | None:
    differs = ours.code != theirs.code
    columns = min(ours.marks.shape[1], theirs.marks.shape[1]) - 1
    for mine, other in [*((ours.marks[:, k], theirs.marks[:, k]) for k in range(columns)), (ours.marks[:, -1], theirs.marks[:, -1])]:
        differs |= (mine != other) & (mine != 0) & (other != 0)
    return int(np.argmax(differs)) if differs.any() else None


def _kind(ours: Part, theirs: Part, row: int) -> Kind:
    mine, other = int(ours.code[row]), int(theirs.code[row])
    if mine == other:
        if mine < 0:
            return "exception"
        return "returnValue" if leaves(mine) else "arguments"
    return "exception" if leaves(mine) and leaves(other) and function_of(mine) == function_of(other) else "children"


def _differs(ours: Part, theirs: Part, row: int, deep: Deep) -> list[Difference]:
    return deep.of(ours, theirs, row) if ours.code[row] == theirs.code[row] else []


def _step(part: Part, row: int) -> Step:
    return Step(int(part.n[row]), int(part.call[row]), int(part.ts[row]), leaves(int(part.code[row])))
