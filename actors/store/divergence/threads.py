"""Which thread of one session is which of the other: their ids differ from run to run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from actors.store.query.branches import number_list
from actors.store.reading import Reading
from actors.store.session_file import SessionFile, Thread


@dataclass(frozen=True, slots=True)
class TracedThread:
    """A thread with traced calls. `ids`: its rows in the file, one for each name it had; `process`: the how-manieth of the session to be seen."""

    ids: tuple[int, ...]
    pid: int
    tid: int
    name: str  # the last one
    process: int
    first_ts: int
    first_function: int  # key (functions.py)
    calls: int
    first_n: int
    last_n: int


Pair = tuple[TracedThread, TracedThread]


def traced_threads(file: SessionFile, reading: Reading, keys: Mapping[int, int], last_n: int, named: str | None) -> list[TracedThread]:
    """In the order of their first call. `keys`: hook → function; `named`: only those whose name contains this."""
    known = list(file.threads.values())
    together: defaultdict[tuple[int, int, int], list[Thread]] = defaultdict(list)
    for thread in known:
        together[thread.lane, thread.pid, thread.tid].append(thread)
    calls = _calls(reading, keys, last_n)
    pids: dict[int, int] = {}
    for thread in sorted(known, key=lambda one: one.id):
        pids.setdefault(thread.pid, len(pids))
    found = []
    for (_, pid, tid), same in together.items():
        rows = [calls[one.id] for one in same if one.id in calls]
        name = max(same, key=lambda one: one.id).name
        if rows and (named is None or named in name):
            first_n, first_ts, hook = min((row[0], row[2], row[3]) for row in rows)
            last_n_of = max(row[1] for row in rows)
            total = sum(row[4] for row in rows)
            ids = tuple(one.id for one in same)
            found.append(TracedThread(ids, pid, tid, name, pids[pid], first_ts, keys[hook], total, first_n, last_n_of))
    return sorted(found, key=lambda one: one.first_ts)


def _calls(reading: Reading, keys: Mapping[int, int], last_n: int) -> dict[int, tuple[int, int, int, int, int]]:
    """Thread → first and last number of an event, time and hook of its first call, number of calls."""
    if not keys:
        return {}
    chosen = f"n <= {last_n} AND {number_list('hook', keys)}"
    sql = f"SELECT thread, min(n), max(greatest(n, coalesce(exit_n, n))), min(ts), arg_min(hook, n), count(*) FROM raw_calls WHERE {chosen} GROUP BY thread"
    found = {thread: (first, last, ts, hook, number) for thread, first, last, ts, hook, number in reading.execute(sql).fetchall()}
    late = reading.execute(f"SELECT thread, max(n) FROM raw_exits WHERE {chosen} GROUP BY thread").fetchall()
    for thread, last in late:
        if thread in found:
            first, before, *rest = found[thread]
            found[thread] = (first, max(before, last), *rest)
    return found


def paired(ours: Collection[TracedThread], theirs: Collection[TracedThread]) -> tuple[list[Pair], list[TracedThread], list[TracedThread]]:
    """Pairs in the order of our threads, and who has none on either side.

    The same process (in order of appearance), name and first function, in order of their first calls; then what is left by process and name, then by process.
    """
    left, right = list(ours), list(theirs)
    pairs: list[Pair] = []
    for level in (lambda one: (one.process, one.name, one.first_function), lambda one: (one.process, one.name), lambda one: one.process):
        waiting: defaultdict[object, list[TracedThread]] = defaultdict(list)
        for one in right:
            waiting[level(one)].append(one)
        rest = []
        for one in left:
            if waiting[level(one)]:
                pairs.append((one, waiting[level(one)].pop(0)))
            else:
                rest.append(one)
        left, right = rest, [one for several in waiting.values() for one in several]
    return sorted(pairs, key=lambda pair: pair[0].first_ts), left, sorted(right, key=lambda one: one.first_ts)
