"""What came of a run, in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strobe.ci.junit import failure_text
from strobe.ci.suite import Outcome
from strobe.ci.traced import Rerun
from strobe.render.plain import visible

FAILURES_SHOWN: Final = 30
LINES_SHOWN: Final = 25
TAIL_LINES: Final = 30


def outcome_lines(outcome: Outcome) -> list[str]:
    lines = [f"Warning: {text}" for text in outcome.warnings]
    cases = [*outcome.stuck, *outcome.failed]
    for case in cases[:FAILURES_SHOWN]:
        lines.append(f"{case.status.value.upper()} {case.name}")
        for failure in case.failures:
            told = visible(failure_text(failure)).splitlines()
            lines += [f"  {line}" for line in told[:LINES_SHOWN]] + (["  …"] if len(told) > LINES_SHOWN else [])
    if len(cases) > FAILURES_SHOWN:
        lines.append(f"… and {len(cases) - FAILURES_SHOWN} more; the JUnit file has all of them (--junit FILE).")
    result = outcome.result
    if result is None:
        return [visible(line) for line in [*lines, outcome.hint or outcome.error or "The tests could not be run."]]
    if result.crash is not None:
        how = result.crash.signal or f"exit status {result.crash.exit_code}"
        lines.append(f"CRASH {result.crash.command} ended by {how}")
    lines += [f"Could not run: {text}" for text in result.errors]
    if (outcome.error or (result.crash and not cases)) and not result.errors:
        lines += [f"  | {line}" for line in outcome.last_lines[-TAIL_LINES:]]
    lines += [outcome.error] if outcome.error else []
    lines += [outcome.hint] if outcome.hint else []
    if not result.passed and not result.failed and not result.skipped and not result.stuck and not outcome.hint:
        lines.append("No test ran.")
    counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped" + (f", {result.stuck} stuck" if result.stuck else "")
    return [visible(line) for line in [*lines, f"{outcome.framework}: {counts} in {result.duration_ms / 1000:.1f} s"]]


def rerun_lines(reruns: Sequence[Rerun]) -> list[str]:
    return [visible(f"Run again with {', '.join(one.patterns[:3])} traced: {one.test} {one.verdict}") for one in reruns]
