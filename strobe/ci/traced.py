"""Failures run once more, traced: what their functions were given and returned. Bounded in number and time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from strobe.ci.link import Link
from strobe.ci.suite import Outcome, Wanted, Watcher, run_suite
from strobe.errors import Code, StrobeError
from strobe.model.testing import TestCase, TestStatus

PATTERNS: Final = ("@usercode",)
PATTERNS_MAX: Final = 20
Said = Callable[[str], None]
Keep = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Rerun:
    """`verdict`: fails again, passes now (flaky), was stuck, or why it says nothing."""

    test: str
    verdict: str
    patterns: tuple[str, ...]
    session_id: str | None
    message: str | None = None


class TracingRefused(Exception):
    """This node does not trace test runs: its own words."""


async def run_traced(link: Link, wanted: Wanted, watcher: Watcher | None = None) -> Outcome:
    """Raises TracingRefused; StrobeError."""
    try:
        return await run_suite(link, wanted, watcher)
    except StrobeError as error:
        if error.code is Code.VALIDATION_ERROR and "tracePatterns" in f"{error.value} {error.what}":
            raise TracingRefused(f"{error.what} {error.next_step}") from None
        raise


async def rerun_failures(link: Link, wanted: Wanted, outcome: Outcome, most: int, within_s: float, keep: Keep, say: Said) -> list[Rerun]:
    """Each failed or stuck test, alone and traced. `keep` is given each session, which may go afterwards."""
    until = time.monotonic() + within_s
    cases = [*outcome.stuck, *outcome.failed]
    done: list[Rerun] = []
    for case in cases[:most]:
        if time.monotonic() > until:
            say(f"{len(cases) - len(done)} failures were not run again: {within_s:g} s were up.")
            return done
        patterns = patterns_of(case)
        one = replace(wanted, framework=outcome.framework, test=case.name, traces=patterns, command=None if outcome.framework != "generic" else wanted.command)
        try:
            again = await run_traced(link, one)
        except TracingRefused as refused:
            say(f"Failures are not run again traced: {refused}")
            return done
        except StrobeError as error:
            done.append(Rerun(case.name, f"could not be run again: {error.what}", patterns, None))
            continue
        if again.session_id is not None:
            await keep(again.session_id)
        done.append(_rerun(case, again, patterns))
        say(f"{case.name}: {done[-1].verdict}")
    if len(cases) > most:
        say(f"{len(cases) - most} more failures were not run again (--rerun-max {most}).")
    return done


def patterns_of(case: TestCase) -> tuple[str, ...]:
    found = dict.fromkeys(pattern for failure in case.failures for pattern in failure.suggested_traces)
    return tuple(found)[:PATTERNS_MAX] or PATTERNS


def _rerun(case: TestCase, again: Outcome, patterns: tuple[str, ...]) -> Rerun:
    found = next((one for one in again.cases if one.name == case.name and one.suite == case.suite), None)
    if found is None:
        return Rerun(case.name, f"could not be run again: {again.error or 'it was not among the tests'}", patterns, again.session_id)
    verdict = {
        TestStatus.PASSED: "passes now: flaky, or it needs the tests before it",
        TestStatus.STUCK: "is stuck again",
        TestStatus.SKIPPED: "is skipped now",
    }.get(found.status, "fails again")
    message = found.failures[0].message if found.failures else None
    return Rerun(case.name, verdict, patterns, again.session_id, message)


async def let_go(link: Link, session_id: str) -> None:
    """A session that nobody needs any more."""
    try:
        await link.call("debug_session", {"action": "stop", "sessionId": session_id, "kill": True})
    except StrobeError as error:
        if error.code is not Code.SESSION_NOT_FOUND:
            raise
