"""A suite run again and again, traced: which tests do not always come out the same, and which call is the first that a failing run does otherwise.

Between runs that pass much differs without meaning anything (times, random numbers): what differs between two of them is not looked at when a failing
run is compared with a passing one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from strobe.ci.link import Link
from strobe.ci.suite import Outcome, exit_status
from strobe.errors import StrobeError
from strobe.model.testing import TestCase, TestStatus
from strobe.protocol.compare import CompareReply, CompareSessions
from strobe.render.divergence import comparison_lines
from strobe.render.plain import one_line

NOISE_ROUNDS: Final = 12  # times that a difference between two passing runs is put aside
COMPARE_S: Final = 20.0
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Runs in which a test came out alike. `runs` counts from 1."""

    outcome: str  # "passed", or the failure's first line with its numbers as #
    status: TestStatus
    runs: list[int]


@dataclass(slots=True)
class Flaky:
    """A test with more than one cluster; the largest first."""

    test: str
    clusters: list[Cluster]
    divergence: dict[str, Any] | None = None  # {passing, failing: session ids, ignored [names], verdict, rows, notes}
    notes: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        clusters = [{"outcome": one.outcome, "status": one.status.value, "runs": one.runs} for one in self.clusters]
        return {"test": self.test, "clusters": clusters, "divergence": self.divergence, "notes": self.notes}

    def lines(self) -> list[str]:
        lines = [f"FLAKY {self.test}"]
        lines += [f"  {len(one.runs)} ×  {one.outcome}  (run {', '.join(map(str, one.runs[:8]))}{' …' if len(one.runs) > 8 else ''})" for one in self.clusters]
        if self.divergence is not None:
            summary = {"verdict": self.divergence["verdict"], **self.divergence["compared"]}
            lines += [f"  {line}" for line in comparison_lines(self.divergence["rows"], summary)]
        return [*lines, *(f"  {note}" for note in self.notes)]


def flaky_tests(outcomes: Sequence[Outcome]) -> list[Flaky]:
    runs: defaultdict[tuple[str | None, str], defaultdict[tuple[TestStatus, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, outcome in enumerate(outcomes, 1):
        for case in outcome.cases:
            runs[case.suite, case.name][case.status, signature(case)].append(number)
    found = []
    for (_, name), clusters in runs.items():
        if len(clusters) > 1:
            several = [Cluster(said, status, numbers) for (status, said), numbers in clusters.items()]
            found.append(Flaky(name, sorted(several, key=lambda one: (-len(one.runs), one.runs))))
    return sorted(found, key=lambda one: one.test)


def signature(case: TestCase) -> str:
    """The same for failures that differ in numbers alone."""
    if not case.failures:
        return case.status.value
    failure = case.failures[0]
    place = f" ({failure.file}:{failure.line})" if failure.file else ""
    return _NUMBERS.sub("#", one_line(failure.message)) + place


async def first_divergence(link: Link, flaky: Flaky, outcomes: Sequence[Outcome]) -> None:
    """Compares a failing run of the test with a passing one, where both were traced."""
    passing = _sessions(flaky, outcomes, lambda status: status is TestStatus.PASSED)
    failing = _sessions(flaky, outcomes, lambda status: status in (TestStatus.FAILED, TestStatus.LOST, TestStatus.STUCK))
    if not passing or not failing:
        flaky.notes.append("No passing and failing run of it were both traced: nothing to compare.")
        return
    try:
        ignored = await _noise(link, passing) if len(passing) > 1 else []
        reply = await _compare(link, failing[0], passing[0], ignored)
    except StrobeError as error:
        flaky.notes.append(f"The runs could not be compared: {error.what}")
        return
    flaky.divergence = {
        "failing": failing[0], "passing": passing[0], "ignored": ignored, "verdict": reply.verdict, "compared": reply.compared, "rows": reply.divergences,
    }  # fmt: skip
    flaky.notes += [*reply.notes, *([f"Differs between passing runs too, and was left out: {', '.join(ignored)}."] if ignored else [])]


def _sessions(flaky: Flaky, outcomes: Sequence[Outcome], wanted: Callable[[TestStatus], bool]) -> list[str]:
    runs = [number for cluster in flaky.clusters if wanted(cluster.status) for number in cluster.runs]
    return [session for number in sorted(runs) if (session := outcomes[number - 1].session_id) is not None]


async def _noise(link: Link, passing: Sequence[str]) -> list[str]:
    """What differs between the first two passing runs, one difference after the other."""
    ignored: list[str] = []
    for _ in range(NOISE_ROUNDS):
        reply = await _compare(link, passing[1], passing[0], ignored)
        names = [name for row in reply.divergences for name in _names(row) if name not in ignored]
        if not names:
            break
        ignored += dict.fromkeys(names)
    return ignored


def _names(row: dict[str, Any]) -> list[str]:
    """What to leave out for two runs not to differ there."""
    function = row.get("function")
    if row["kind"] == "arguments":
        return list(dict.fromkeys(f"{function}({re.split(r'[.[]', one['path'])[0]})" for one in row["differs"]))
    if row["kind"] in ("returnValue", "exception"):
        return [f"{function}.ret"] if row["kind"] == "returnValue" else [function] if function else []
    sides = (row.get("here", {}), row.get("there", {}))
    entered = [side["function"] for side in sides if side.get("next") == "enters" and side.get("function")]
    return entered[:1] if row["kind"] in ("children", "ended") else []


async def _compare(link: Link, ours: str, theirs: str, ignored: Sequence[str]) -> CompareReply:
    ask = CompareSessions(session_id=ours, against=theirs, ignored=list(ignored), limit=5)
    reply: CompareReply = await link.node.ask("store", ask, deadline_s=COMPARE_S)
    return reply


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """The run that speaks for all: the worst of them, the first of those."""
    rank = {2: 3, 3: 2, 1: 1, 0: 0}
    return max(outcomes, key=lambda outcome: rank[exit_status(outcome)])


def tally(outcomes: Sequence[Outcome]) -> str:
    words = {0: "passed", 1: "failed", 2: "were stuck", 3: "could not be run"}
    counts = Counter(exit_status(outcome) for outcome in outcomes)
    return ", ".join(f"{counts[status]} of {len(outcomes)} runs {words[status]}" for status in sorted(counts))
