"""One run of a suite, from its start to what came of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from strobe.ci.link import Link
from strobe.errors import Code, StrobeError
from strobe.model.testing import Level, TestCase, TestResult, TestStatus
from strobe.protocol.testing import TestState, TestStateReply
from strobe.redaction import Redactor

LOOK_MS: Final = 400  # between two looks at what runs
AWAY_S: Final = 30.0  # that the node may be away (its processes are replaced meanwhile) before the run is given up

Watcher = Callable[[TestStateReply], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What debug_test is asked for. `traces`: patterns; none: a plain run."""

    project: str
    framework: str | None = None
    level: Level | None = None
    test: str | None = None
    command: str | None = None
    timeout_ms: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    traces: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        given = {
            "projectRoot": self.project, "framework": self.framework, "level": self.level, "test": self.test, "command": self.command,
            "timeout": self.timeout_ms, "env": self.env or None, "tracePatterns": list(self.traces) or None,
        }  # fmt: skip
        return {"action": "run", **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run. `session_id`: of its trace, where it was traced; `error`: why it was not run to its end."""

    run_id: str | None
    framework: str | None
    result: TestResult | None
    cases: list[TestCase]
    last_lines: list[str]
    error: str | None
    session_id: str | None
    warnings: list[str]
    started_at: float  # s since the epoch
    hint: str | None = None  # where there are no tests

    @property
    def failed(self) -> list[TestCase]:
        return [case for case in self.cases if case.status in (TestStatus.FAILED, TestStatus.LOST)]

    @property
    def stuck(self) -> list[TestCase]:
        return [case for case in self.cases if case.status is TestStatus.STUCK]


def exit_status(outcome: Outcome) -> int:
    """0 all passed, 1 failures, 2 stuck (whatever else failed), 3 could not run."""
    result = outcome.result
    if result is None:
        return 3
    if result.stuck:
        return 2
    if result.failed or result.failures:
        return 1
    nothing = not result.passed and not result.skipped
    return 3 if outcome.error or result.errors or result.crash or nothing else 0


async def run_suite(link: Link, wanted: Wanted, watcher: Watcher | None = None) -> Outcome:
    """Raises StrobeError: what was asked for is refused, or the node is gone for good."""
    started_at = time.time()
    reply = await link.call("debug_test", wanted.arguments())
    run_id, framework = reply.get("testRunId"), reply.get("framework")
    session_id, warnings = reply.get("sessionId"), list(reply.get("warnings", []))
    while reply.get("status") == "running" and run_id is not None:
        reply = await _next(link, run_id, watcher)
        session_id = reply.get("sessionId", session_id)
    result = TestResult.model_validate(_flat(reply["result"])) if reply.get("result") else None
    cases, last_lines = _details(result, link.redactor)
    none = reply.get("noTests") or (result.no_tests.model_dump(by_alias=True) if result and result.no_tests else None)
    hint = f"{none['project']}: {none['hint']}" if none else None
    return Outcome(
        run_id, reply.get("framework") or framework, result, cases, last_lines, reply.get("error"), session_id, warnings, started_at, hint
    )


async def _next(link: Link, run_id: str, watcher: Watcher | None) -> dict[str, Any]:
    """The reply at its end; until then `watcher` is told how it is. Raises StrobeError when the node stays away."""
    until = time.monotonic() + AWAY_S
    while True:
        try:
            state: TestStateReply = await link.node.ask(f"session:{run_id}", TestState(wait_ms=LOOK_MS), deadline_s=5)
            if state.status == "running":
                until = time.monotonic() + AWAY_S
                if watcher is not None:
                    watcher(state)
                continue
        except StrobeError as error:  # the run's process is gone: it has ended, or is being replaced
            if error.code not in (Code.ACTOR_UNAVAILABLE, Code.TIMEOUT):
                raise
        try:
            reply = await link.call("debug_test", {"action": "status", "testRunId": run_id})
        except StrobeError as error:
            if time.monotonic() > until or error.code is Code.TEST_RUN_NOT_FOUND:
                raise StrobeError(error.code, f"The test run {run_id} was lost: {error.what}", "Run it again.", value=run_id) from None
            await asyncio.sleep(LOOK_MS / 1000)
            continue
        if reply.get("status") != "running":
            return reply
        if not reply.get("progress") and time.monotonic() > until:
            raise StrobeError(Code.ACTOR_UNAVAILABLE, f"The process of the test run {run_id} is gone.", "Run it again.", value=run_id)
        await asyncio.sleep(LOOK_MS / 1000)


def _flat(shown: dict[str, Any]) -> dict[str, Any]:
    """debug_test's form of a result as the model's."""
    flat = {name: value for name, value in shown.items() if name not in ("summary", "stuck")}
    return {**flat, **shown["summary"], "stuckTests": [one["name"] for one in shown.get("stuck", [])]}


def _details(result: TestResult | None, redactor: Redactor | None) -> tuple[list[TestCase], list[str]]:
    """Every test, from the run's own file, without what looks like a secret. Raises StrobeError: a report without its tests would be a lie."""
    if result is None or not result.details:
        return [], []
    try:
        content = json.loads(Path(result.details).read_bytes())
    except (OSError, ValueError) as error:
        what = f"The run's details cannot be read: {error}."
        raise StrobeError(Code.ACTOR_UNAVAILABLE, what, "strobe-ci must run where the node runs, with its home.", value=result.details) from None
    if redactor is not None:
        content = redactor.value({name: content[name] for name in ("tests", "lastLines")})
    return [TestCase.model_validate(case) for case in content["tests"]], [str(line) for line in content["lastLines"]]
