"""CompareSessions answered from two sessions' files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

from actors.store.divergence.compare import Divergence, Progress, compare_threads
from actors.store.divergence.deep import Deep, Side
from actors.store.divergence.functions import Functions, functions_of
from actors.store.divergence.report import alone, row_of
from actors.store.divergence.same import Numbers
from actors.store.divergence.stream import ThreadStream
from actors.store.divergence.threads import Pair, TracedThread, paired, traced_threads
from actors.store.query.selection import resolve
from actors.store.query.typed_values import TypedValues, biases_of
from actors.store.reading import Reading
from actors.store.session_file import EVICTED, SAMPLED, SessionFile
from strobe.model.query import Query
from strobe.model.session import SessionState
from strobe.protocol.compare import CompareReply, CompareSessions, OfSide, Verdict

DEEP_SHARE: Final = 0.6  # of the time, for values that have to be shown to be compared
THREADS_MAX: Final = 4096
NAMED_MAX: Final = 8  # functions or threads named in a note
_LIVE: Final = (SessionState.RUNNING, SessionState.PAUSED)


@dataclass(slots=True)
class _Found:
    divergences: list[Divergence] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)


def run_compare(
    ask: CompareSessions, ours: SessionFile, theirs: SessionFile, connections: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection], within_s: float
) -> CompareReply:
    """Raises VALIDATION_ERROR. Each file is read in a transaction of its own; ends in time, and says what it did not get to."""
    readings = Reading(connections[0]), Reading(connections[1])
    try:
        sides = [
            Side(name, file, reading, TypedValues(file, reading))
            for name, file, reading in ((ask.session_id, ours, readings[0]), (ask.against, theirs, readings[1]))
        ]
        return _compare(ask, sides[0], sides[1], time.monotonic(), within_s)
    finally:
        for reading in readings:
            reading.end()


def _compare(ask: CompareSessions, ours: Side, theirs: Side, begun: float, within_s: float) -> CompareReply:
    query = Query(function=ask.function, source_file=ask.source_file)
    snapshots = ours.file.counts.snapshot(), theirs.file.counts.snapshot()
    selections = [
        resolve(side.session_id, query, list(side.file.hooks.values()), list(side.file.threads.values()), snapshot, side.reading, side.typed)
        for side, snapshot in zip((ours, theirs), snapshots, strict=True)
    ]
    functions = functions_of(ours.file, theirs.file, selections[0], selections[1], frozenset(ask.ignored))
    notes = _notes(functions, ours, theirs)
    evicted = [side.session_id for side, snapshot in zip((ours, theirs), snapshots, strict=True) if snapshot.evicted]
    if evicted:
        why = f"The oldest calls of {' and '.join(evicted)} were evicted (events.maxPerSession): their beginnings cannot be compared."
        return _reply("notComparable", [why, *notes], ours, theirs)
    named = ask.thread_name.contains if ask.thread_name else None
    keys = [{hook: one.key for hook, one in compared.items()} for compared in (functions.ours, functions.theirs)]
    threads = [traced_threads(side.file, side.reading, key, shot.last_n, named) for side, key, shot in zip((ours, theirs), keys, snapshots, strict=True)]
    if not threads[0] or not threads[1]:
        return _reply("notComparable", [_nothing(ours, theirs, threads, functions), *notes], ours, theirs)
    pairs, only_here, only_there = paired(*threads)
    numbers = _numbers(pairs)
    deep = Deep(ours, theirs, functions, numbers, begun + within_s * DEEP_SHARE)
    found = _Found()
    for pair in pairs[:THREADS_MAX]:
        streams = [
            ThreadStream(side.file, side.reading, thread, compared, shot.last_n, known)
            for side, thread, compared, shot, known in zip(
                (ours, theirs), pair, (functions.ours, functions.theirs), snapshots, (numbers.ours, numbers.theirs), strict=True
            )
        ]
        one = compare_threads(pair, streams[0], streams[1], deep, found.progress, begun + within_s)
        if one is not None and not (one.kind == "ended" and _is_live(ours if one.ours is None else theirs)):
            found.divergences.append(one)
        if found.progress.out_of_time:
            break
    notes += _unfinished(found, deep, len(pairs), within_s)
    rows = [row_of(one, ours, theirs) for one in sorted(found.divergences, key=_order)[: ask.limit]]
    rows += [alone(one, ours, ours=True) for one in only_here if not _is_live(theirs)][: max(0, ask.limit - len(rows))]
    rows += [alone(one, theirs, ours=False) for one in only_there if not _is_live(ours)][: max(0, ask.limit - len(rows))]
    verdict: Verdict = "differs" if rows else "unfinished" if found.progress.out_of_time or deep.left else "same"
    facts = {"calls": found.progress.events // 2, "threads": len(pairs), "functions": len(functions.names), "values": deep.shown}
    return _reply(verdict, notes, ours, theirs, rows, facts, len(found.divergences) + len(only_here) + len(only_there))


def _reply(
    verdict: Verdict, notes: list[str], ours: Side, theirs: Side, rows: list[dict[str, Any]] | None = None, facts: dict[str, int] | None = None, total: int = 0
) -> CompareReply:
    sides = [OfSide(function_addresses=sorted(side.typed.functions), modules=biases_of(side.file) if side.typed.functions else {}) for side in (ours, theirs)]
    notes = [*notes, *ours.typed.warnings]
    return CompareReply(verdict=verdict, divergences=rows or [], total=total, compared=facts or {}, notes=notes, ours=sides[0], theirs=sides[1])


def _order(one: Divergence) -> tuple[bool, int]:
    """What one of two side threads did not get to any more is often no more than how the process ended: after the others."""
    steps = [step.ts for step in (one.ours, one.theirs) if step is not None]
    main = one.pair[0].pid == one.pair[0].tid
    return one.kind == "ended" and not main, steps[0]


def _is_live(side: Side) -> bool:
    return side.file.record.state in _LIVE


def _numbers(pairs: Sequence[Pair]) -> Numbers:
    ours: dict[int, int] = {}
    theirs: dict[int, int] = {}
    for number, (one, other) in enumerate(pairs):
        for left, right, shared in ((one.tid, other.tid, 2 * number), (one.pid, other.pid, 2 * number + 1)):
            if left not in ours and right not in theirs:
                ours[left] = theirs[right] = shared
    return Numbers(ours, theirs)


def _nothing(ours: Side, theirs: Side, threads: list[list[TracedThread]], functions: Functions) -> str:
    without = [side.session_id for side, found in zip((ours, theirs), threads, strict=True) if not found]
    if not functions.names:
        return "No function is traced in both sessions: launch both with the same patterns (debug_trace)."
    return f"No call of a function that both trace was captured in {' and '.join(without)}."


def _notes(functions: Functions, ours: Side, theirs: Side) -> list[str]:
    notes = []
    if functions.one_sided:
        notes.append(f"Traced in one session only, and left out: {_named(functions.one_sided)}.")
    if functions.sampled:
        notes.append(f"Not every call was recorded (sampling), left out: {_named(functions.sampled)}. Trace with budget.callsPerSecond 0 to have all.")
    for side in (ours, theirs):
        lost = {cause: number for cause, number in side.file.losses.items() if number and cause not in (SAMPLED, EVICTED, "valuesLeftOut")}
        if lost:
            notes.append(f"{side.session_id} lost {sum(lost.values()):,} events ({', '.join(lost)}): a difference may be one of them.")
        if _is_live(side):
            notes.append(f"{side.session_id} still runs: it was compared as far as it has come.")
    return notes


def _unfinished(found: _Found, deep: Deep, pairs: int, within_s: float) -> list[str]:
    notes = []
    if found.progress.out_of_time:
        notes.append(f"Only the first {found.progress.events // 2:,} calls were compared in {within_s:.0f} s. Narrow by function, sourceFile or threadName.")
    if deep.left:
        notes.append(f"What values show was compared for {deep.shown:,} events, for {deep.left:,} later ones only numbers and texts. Narrow by function.")
    if pairs > THREADS_MAX:
        notes.append(f"Only the first {THREADS_MAX:,} of {pairs:,} threads were compared.")
    return notes


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
