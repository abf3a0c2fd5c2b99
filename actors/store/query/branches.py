"""The places events come from, each with the same names for its columns, and the one WHERE that a selection means there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from actors.store.query.selection import OUTPUT_TYPES, Named, Selection
from actors.store.query.value_tests import ValueTest, ValueTests
from actors.store.schema import VALUE_COLUMNS

_LISTED_MAX: Final = 1000  # numbers that are written into a statement


@dataclass(frozen=True, slots=True)
class Branch:
    """SQL expressions over `table`; None: such events have none."""

    name: str
    table: str
    n: str
    ts: str
    parent: str
    thread: str | None = None
    tid: str | None = None
    hook: str | None = None
    duration: str | None = None
    result: str | None = None
    call: str | None = None  # n of the enter
    stream: str = "stream"
    always: str = "true"


ENTER: Final = Branch("enter", "raw_calls", "n", "ts", "parent", thread="thread", hook="hook", call="n")
EXIT: Final = Branch(
    "exit", "raw_calls", "exit_n", "exit_ts", "n", thread="thread", hook="hook", duration="(exit_ts - ts)", result="ret", call="n", always="exit_n IS NOT NULL",
)  # fmt: skip
LATE: Final = Branch("late", "raw_exits", "n", "ts", "call", thread="thread", hook="hook", duration="(ts - enter_ts)", result="ret", call="call")
OUTPUT: Final = Branch("output", "output", "n", "ts", "parent", thread="thread")
POINT: Final = Branch("point", "points", "n", "ts", "parent", tid="tid")
CALL: Final = Branch("call", "raw_calls", "n", "ts", "parent", thread="thread", hook="hook", duration="(exit_ts - ts)", result="ret", call="n")  # for views
ALL: Final = (ENTER, EXIT, LATE, OUTPUT, POINT)


class Test(NamedTuple):
    """What a number of a row must be: `operator` is one of >= <= > < = IN (then `wanted` holds several)."""

    quantity: str  # a field of Branch
    operator: str
    wanted: int | frozenset[int]


@dataclass(slots=True)
class Where:
    """Conditions joined by AND, and their parameters in order. `possible` False: nothing can match.

    `tests` says the same for rows in memory; None: some condition can only be asked in SQL.
    """

    sql: list[str] = field(default_factory=list)
    texts: list[Any] = field(default_factory=list)
    possible: bool = True
    tests: list[Test] | None = field(default_factory=list)

    def add(self, sql: str, texts: Iterable[Any] = ()) -> None:
        """A condition that SQL alone can answer."""
        self.sql.append(sql)
        self.texts += texts
        self.tests = None

    def always(self, sql: str) -> None:
        """What is true of all rows of the branch."""
        self.sql.append(sql)

    def number(self, branch: Branch, quantity: str, operator: str, wanted: int) -> None:
        self.sql.append(f"{getattr(branch, quantity)} {operator} {wanted}")
        self._test(Test(quantity, operator, wanted))

    def one_of(self, branch: Branch, quantity: str, wanted: frozenset[int]) -> None:
        self.sql.append(number_list(getattr(branch, quantity), wanted) if wanted else "false")
        self._test(Test(quantity, "IN", wanted))

    def _test(self, test: Test) -> None:
        if self.tests is not None:
            self.tests.append(test)

    def also(self, sql: str) -> Where:
        """A copy with one more condition, which takes no parameter."""
        return Where([*self.sql, sql], list(self.texts), self.possible, None)

    def text(self) -> str:
        return " AND ".join(self.sql) or "true"


def where(branch: Branch, selection: Selection) -> Where:
    """The one place that says which events of a branch a query means: for its rows, its count and its views."""
    found = Where()
    _kind(branch, selection, found)
    _times(branch, selection, found)
    _place(branch, selection, found)
    _who(branch, selection, found)
    _values(branch, selection, found)
    return found


def number_list(column: str, numbers: Iterable[int]) -> str:
    return f"{column} IN ({', '.join(map(str, sorted(numbers)))})"


def _kind(branch: Branch, selection: Selection, found: Where) -> None:
    wanted = selection.event_type
    if branch.always != "true":
        found.always(branch.always)
    found.number(branch, "n", "<=", selection.last_n)
    match None if branch is CALL else wanted:
        case None:
            return
        case "function_enter":
            found.possible &= branch is ENTER
        case "function_exit":
            found.possible &= branch is EXIT or branch is LATE
        case "stdout" | "stderr":
            found.possible &= branch is OUTPUT
            found.number(branch, "stream", "=", OUTPUT_TYPES[str(wanted)])
        case _:
            found.possible &= branch is POINT
            found.add("type = ?", [str(wanted)])


def _times(branch: Branch, selection: Selection, found: Where) -> None:
    if selection.time_from is not None:
        found.number(branch, "ts", ">=", selection.time_from)
    if selection.time_to is not None:
        found.number(branch, "ts", "<=", selection.time_to)
    if selection.after is not None:
        found.number(branch, "n", ">", selection.after)
    if selection.min_duration is not None:
        found.possible &= branch.duration is not None
        found.number(branch, "duration", ">=", selection.min_duration)


def _place(branch: Branch, selection: Selection, found: Where) -> None:
    if selection.parent is not None:
        found.number(branch, "parent", "=", selection.parent)
        if branch in (ENTER, CALL):  # children are numbered between their parent's enter and its exit
            found.number(branch, "n", ">", selection.parent)
            if selection.parent_exit is not None:
                found.number(branch, "n", "<", selection.parent_exit)
    if selection.hooks is None:
        return
    if branch is POINT:
        _point_place(selection.function, "function", found)
        _point_place(selection.file, "file", found)
    elif branch.hook is None or not selection.hooks:
        found.possible = False
    else:
        found.one_of(branch, "hook", selection.hooks)


def _point_place(named: Named | None, column: str, found: Where) -> None:
    if named is not None:
        found.add(named.sql.replace("{c}", column), named.texts)


def _who(branch: Branch, selection: Selection, found: Where) -> None:
    if branch is POINT:
        if selection.thread_name is not None:
            found.add("contains(thread_name, ?)", [selection.thread_name])
        if selection.tid is not None:
            found.add(f"tid = {selection.tid}")
        if selection.pid is not None:
            found.add(f"pid = {selection.pid}")
    elif selection.threads is not None:
        found.possible &= bool(selection.threads)
        found.one_of(branch, "thread", selection.threads)


def _values(branch: Branch, selection: Selection, found: Where) -> None:
    if selection.arguments is not None:
        of_calls = branch is CALL or (branch is ENTER and not selection.wants_exits) or (branch in (EXIT, LATE) and selection.wants_exits)
        deep = _numbered("call" if branch is LATE else "n", selection.arguments)
        _any(found, [*(_argument(branch, test) for test in selection.arguments.columns), *deep], possible=of_calls)
    if selection.results is not None:
        deep = _numbered("n" if branch is LATE else "exit_n", selection.results)
        columns = [(f"{number_list('hook', test.hooks)} AND {_over('ret', test)}", test.condition.texts) for test in selection.results.columns]
        _any(found, [*columns, *deep], possible=branch.result is not None)


def _numbered(column: str, tests: ValueTests) -> list[tuple[str, tuple[Any, ...]]]:
    """The rows that met the tests of payloads."""
    if len(tests.numbers) <= _LISTED_MAX:
        return [(number_list(column, tests.numbers), ())] if tests.numbers else []
    return [(f"{column} IN (SELECT unnest(?::BIGINT[]))", (list(tests.numbers),))]


def _over(column: str, test: ValueTest) -> str:
    return test.condition.sql.replace("{c}", column)


def _argument(branch: Branch, test: ValueTest) -> tuple[str, tuple[str, ...]]:
    hooks = number_list("hook", test.hooks)
    if test.position is not None and test.position < VALUE_COLUMNS:
        in_calls = f"{hooks} AND {_over(f'a{test.position}', test)}"
    else:
        in_calls = f"{hooks} AND n IN (SELECT n FROM more_values WHERE position = {test.position} AND {_over('bits', test)})"
    if branch is LATE:
        return f"call IN (SELECT n FROM raw_calls WHERE exit_n IS NULL AND {in_calls})", test.condition.texts
    return in_calls, test.condition.texts


def _any(found: Where, tests: list[tuple[str, tuple[Any, ...]]], *, possible: bool) -> None:
    found.possible &= possible and bool(tests)
    if tests:
        found.add("(" + " OR ".join(f"({sql})" for sql, _ in tests) + ")", [text for _, texts in tests for text in texts])
