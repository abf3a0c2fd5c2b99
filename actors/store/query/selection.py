"""A Query with everything resolved that can be resolved before the scan: hooks, threads, times, ids, typed comparisons."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import duckdb

from actors.store.counts import Snapshot
from actors.store.query.event_id import parse_event_id
from actors.store.query.typed_values import TypedValues
from actors.store.query.value_tests import ValueTests, argument_tests, result_tests
from actors.store.reading import Reading
from actors.store.session_file import Thread
from strobe.errors import Code, StrobeError
from strobe.model.probe import Hook
from strobe.model.query import FileFilter, Query, TextFilter, parse_relative_ns

OUTPUT_TYPES: Final = {"stdout": 1, "stderr": 2}


@dataclass(frozen=True, slots=True)
class Named:
    """What a text of an event must be: SQL over `{c}` and its parameters."""

    sql: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """None means: not asked for. Times are ns since the session's start, bounds included.

    `parent_exit`: the number of the parent's own exit, where that is known.
    """

    last_n: int
    event_type: str | None
    hooks: frozenset[int] | None
    function: Named | None
    file: Named | None
    threads: frozenset[int] | None
    thread_name: str | None
    tid: int | None
    pid: int | None
    time_from: int | None
    time_to: int | None
    min_duration: int | None
    parent: int | None
    after: int | None
    arguments: ValueTests | None
    results: ValueTests | None
    parent_exit: int | None
    exits_only: bool = False  # filters on values that were left out of this copy hold for exits only

    @property
    def wants_exits(self) -> bool:
        """Some filter holds for exits only; an argument filter then selects the exits of the calls that had the argument."""
        return self.exits_only or self.event_type == "function_exit" or self.min_duration is not None or self.results is not None

    @property
    def every_call(self) -> bool:
        """No filter leaves out a call."""
        return self.countable and self.hooks is None and self.threads is None

    @property
    def countable(self) -> bool:
        """The counters can answer it."""
        return self.evenly_spread and all(part is None for part in (self.time_from, self.time_to, self.after))

    @property
    def times_alone(self) -> bool:
        """No filter leaves out an event, but for bounds of time."""
        return self.every_event and self.after is None

    @property
    def every_event(self) -> bool:
        places = (self.hooks, self.threads, self.thread_name, self.tid, self.pid)
        return self.evenly_spread and self.event_type is None and all(part is None for part in places)

    @property
    def evenly_spread(self) -> bool:
        """But for bounds of time and number, the counters tell how many events the filters leave."""
        return all(part is None for part in (self.min_duration, self.parent, self.arguments, self.results))


def resolve(
    session_id: str, query: Query, hooks: Collection[Hook], threads: Collection[Thread], snapshot: Snapshot, reading: Reading, typed: TypedValues
) -> Selection:
    """Raises VALIDATION_ERROR: a bad regular expression, a foreign event id, a path to what no function has."""
    function, file = _named(query.function, "function", reading), _named(query.source_file, "sourceFile", reading)
    found = _hooks(query, hooks, reading)
    candidates = [hook for hook in hooks if found is None or hook.id in found]
    parent = None if query.parent_event_id is None else parse_event_id(session_id, query.parent_event_id, "parentEventId")
    return Selection(
        last_n=snapshot.last_n,
        event_type=query.event_type,
        hooks=found,
        function=function,
        file=file,
        threads=_threads(query, threads),
        thread_name=query.thread_name.contains if query.thread_name else None,
        tid=query.thread_id,
        pid=query.pid,
        time_from=_time(query.time_from, snapshot),
        time_to=_time(query.time_to, snapshot),
        min_duration=query.min_duration_ns,
        parent=parent,
        after=None if query.after_event_id is None else parse_event_id(session_id, query.after_event_id, "afterEventId"),
        arguments=None if query.argument is None else argument_tests(query.argument, candidates, typed),
        results=None if query.return_value is None else result_tests(query.return_value, candidates, typed),
        parent_exit=None if parent is None else _exit_of(parent, reading),
    )


def _exit_of(call: int, reading: Reading) -> int | None:
    """The number of a call's exit, where it is in the same row."""
    found = reading.execute(f"SELECT exit_n FROM raw_calls WHERE n = {call}").fetchall()
    return found[0][0] if found else None


def _named(wanted: TextFilter | FileFilter | None, field: str, reading: Reading) -> Named | None:
    if wanted is None:
        return None
    parts: list[tuple[str, str]] = []
    if wanted.equals is not None:
        parts.append(("{c} = ?", wanted.equals))
    if wanted.contains is not None:
        parts.append(("contains({c}, ?)", wanted.contains))
    if isinstance(wanted, TextFilter) and wanted.matches is not None:
        check_regex(wanted.matches, f"{field}.matches", reading)
        parts.append(("regexp_matches({c}, ?)", wanted.matches))
    if not parts:
        return None
    return Named(" AND ".join(sql for sql, _ in parts), tuple(text for _, text in parts))


def check_regex(pattern: str, field: str, reading: Reading) -> None:
    """By the engine that will run it (RE2)."""
    try:
        reading.execute("SELECT regexp_matches('', ?)", [pattern]).fetchall()
    except duckdb.InvalidInputException as error:
        reason, _, fragment = str(error).partition("Error: ")[2].partition(": ")
        position = _unclosed(pattern) if reason.startswith("missing )") else max(pattern.find(fragment), 0)
        what = f"{field} {pattern!r} is not a regular expression: {reason}, at position {position}."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Correct it (RE2 syntax: no look-around, no back-references), or use contains.", value=pattern) from None


def _unclosed(pattern: str) -> int:
    """Index of the parenthesis that is not closed."""
    opened: list[int] = []
    escaped = False
    for index, character in enumerate(pattern):
        if not escaped and character == "(":
            opened.append(index)
        elif not escaped and character == ")" and opened:
            opened.pop()
        escaped = character == "\\" and not escaped
    return opened[-1] if opened else 0


def _hooks(query: Query, hooks: Collection[Hook], reading: Reading) -> frozenset[int] | None:
    """Ids of the hooks that the filters on function and file leave; None when there is none."""
    tests: list[Callable[[Hook], bool]] = []
    if query.function is not None:
        tests += _text_tests(query.function, lambda hook: hook.place.function)
        if query.function.matches is not None:
            rows = reading.execute("SELECT id FROM hooks WHERE regexp_matches(function, ?)", [query.function.matches]).fetchall()
            matching = {row[0] for row in rows}
            tests.append(lambda hook: hook.id in matching)
    if query.source_file is not None:
        tests += _text_tests(query.source_file, lambda hook: hook.place.file)
    return frozenset(hook.id for hook in hooks if all(test(hook) for test in tests)) if tests else None


def _text_tests(wanted: TextFilter | FileFilter, text_of: Callable[[Hook], str | None]) -> list[Callable[[Hook], bool]]:
    tests: list[Callable[[Hook], bool]] = []
    if (whole := wanted.equals) is not None:
        tests.append(lambda hook: text_of(hook) == whole)
    if (part := wanted.contains) is not None:
        tests.append(lambda hook: (text := text_of(hook)) is not None and part in text)
    return tests


def _threads(query: Query, threads: Collection[Thread]) -> frozenset[int] | None:
    tests: list[Callable[[Thread], bool]] = []
    if query.thread_name is not None and (part := query.thread_name.contains) is not None:
        tests.append(lambda thread: part in thread.name)
    if query.thread_id is not None:
        tests.append(lambda thread: thread.tid == query.thread_id)
    if query.pid is not None:
        tests.append(lambda thread: thread.pid == query.pid)
    return frozenset(thread.id for thread in threads if all(test(thread) for test in tests)) if tests else None


def _time(bound: int | str | None, snapshot: Snapshot) -> int | None:
    return snapshot.newest_ns - parse_relative_ns(bound) if isinstance(bound, str) else bound
