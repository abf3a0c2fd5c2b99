"""debug_test: runs a project's tests, tells how they are getting on, and what came of them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from actors.gateway.command import project_folder, target_environment
from actors.gateway.tool import Arguments, Call, Result, Tool
from actors.gateway.tools.debug_trace import WatchAdd, WatchChange, watches_of
from strobe.errors import Code, StrobeError
from strobe.model.sampling import SamplingLimits
from strobe.model.session import ChildrenPolicy
from strobe.model.testing import Level, TestRunRecord
from strobe.model.testing import TestResult as RunResult
from strobe.model.watch import WATCHES_MAX
from strobe.protocol import indexer, session, store, supervisor, test_runs, testing
from strobe.render.testing import progress_line, testing_text

_DESCRIPTION: Final = "Run a project's tests (run), see how they are getting on or what came of them (status; waits up to 5 s), or list runs."
WAIT_MS_MAX: Final = 12_500  # of a status: no call takes 15 s
FIRST_WAIT_MS: Final = 1_500  # of a run: a short suite is answered at once
LIMITS_S: Final = {"unit": 30, "integration": 120, "e2e": 300}
LIMIT_S: Final = 120  # no level given
PROGRESS_MS: Final = 1_000  # between two notifications
OPEN_S: Final = 11.0
WARNINGS_SHOWN: Final = 10
STATUS_S: Final = 14.0


class TestWatches(BaseModel):
    __test__ = False
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)
    add: list[WatchAdd] = Field(max_length=WATCHES_MAX)


class TestArguments(Arguments):
    __test__ = False

    action: Literal["run", "status", "list"] = "run"
    project_root: str | None = None
    framework: str | None = None
    level: Level | None = None
    test: str | None = None
    command: str | None = None
    env: dict[str, str] = {}
    timeout: int | None = Field(default=None, ge=100, le=3_600_000, description="ms; of one test")
    trace_patterns: list[str] = Field(default=[], max_length=1000, description="makes it a session too; then debug_query")
    watches: TestWatches | None = Field(default=None, description="read on traced calls, as in debug_trace")
    test_run_id: str | None = None


class TestResult(Result):
    __test__ = False

    test_run_id: str | None = None
    session_id: str | None = None
    status: str | None = None
    framework: str | None = None
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    no_tests: dict[str, Any] | None = None
    runs: list[dict[str, Any]] | None = None


async def run(arguments: TestArguments, call: Call) -> Result:
    if arguments.action == "list":
        reply = await call.ask("store", test_runs.ListTestRuns(), test_runs.TestRunsReply)
        return TestResult(runs=[_listed(record) for record in reply.records])
    if arguments.action == "status":
        if arguments.test_run_id is None:
            what = "`testRunId` is missing; status needs it."
            raise StrobeError(Code.VALIDATION_ERROR, what, 'debug_test {"action": "list"} shows the ids.', value="testRunId")
        return await _status(arguments.test_run_id, min(int(call.settings["test.statusRetryMs"]), WAIT_MS_MAX), call)
    return await _run(arguments, call)


async def _run(arguments: TestArguments, call: Call) -> Result:
    if arguments.project_root is None:
        raise StrobeError(Code.VALIDATION_ERROR, "`projectRoot` is missing.", "Give the project's folder as an absolute path.", value="projectRoot")
    root = project_folder(arguments.project_root)
    traced = await _traced(arguments, root, call)
    created = test_runs.CreateTestRun(client_id=call.client.id, project_root=str(root), started_at=time.time_ns(), traced=traced is not None)
    record = (await call.ask("store", created, test_runs.TestRunReply)).record
    try:
        if traced is not None:
            await call.ask("store", _session_of(record, call), store.CreateSessionReply)
        opening = supervisor.OpenSession(session_id=record.run_id, injects=traced is not None)
        opened = await call.ask("supervisor", opening, supervisor.OpenSessionReply, deadline_s=OPEN_S)
        limit_s = LIMITS_S.get(arguments.level or "", LIMIT_S)
        ask = testing.RunTests(
            run_id=record.run_id,
            project_root=str(root),
            framework=arguments.framework,
            level=arguments.level,
            test=arguments.test,
            command=arguments.command,
            env=target_environment(call.client.env, arguments.env, root),
            limit_ms=arguments.timeout or limit_s * 1000,
            traced=traced,
        )
        begun = await call.ask(opened.session, ask, testing.RunTestsReply, deadline_s=OPEN_S)
    except (Exception, asyncio.CancelledError):
        call.background(_undo(record, call))
        raise
    call.warnings.extend(begun.warnings)
    if begun.no_tests is not None:
        call.background(_undo(record, call))
        return TestResult(status="completed", no_tests=begun.no_tests.model_dump(by_alias=True, exclude_none=True))
    told = await _status(record.run_id, FIRST_WAIT_MS, call)
    return told.model_copy(update={"framework": begun.framework})


async def _traced(arguments: TestArguments, root: Path, call: Call) -> testing.Traced | None:
    """Errors: INVALID_PATTERN, WATCH_FAILED, VALIDATION_ERROR."""
    watches = watches_of(WatchChange(add=arguments.watches.add)) if arguments.watches is not None else []
    if not arguments.trace_patterns:
        if watches:
            what = "`watches` are read on calls of traced functions, and `tracePatterns` is empty."
            raise StrobeError(Code.VALIDATION_ERROR, what, "Give patterns of the functions on whose calls they are to be read.", value="watches")
        return None
    check = indexer.Resolve(patterns=arguments.trace_patterns, modules=[], main_modules=[], project_root=str(root))
    await call.ask("indexer", check, indexer.ResolveReply)  # it knows the pattern language: a bad one is told before anything runs
    return testing.Traced(
        patterns=arguments.trace_patterns, watches=watches, sampling=SamplingLimits.of(call.settings), children=ChildrenPolicy.of(call.settings)
    )  # fmt: skip


def _session_of(record: TestRunRecord, call: Call) -> store.CreateSession:
    return store.CreateSession(
        client_id=record.client_id, binary_path=record.project_root, command=["debug_test", record.project_root], cwd=record.project_root,
        project_root=record.project_root, session_id=record.run_id, started_at=record.started_at, started_monotonic_ns=time.monotonic_ns(),
        events_max=int(call.settings["events.maxPerSession"]),
    )  # fmt: skip


async def _undo(record: TestRunRecord, call: Call) -> None:
    """A run that never began leaves nothing."""
    run_id = record.run_id
    if record.traced:
        with suppress(StrobeError):  # there may be no session process, or one without a target
            await call.ask(f"session:{run_id}", session.Stop(kill=True), session.StopReply, deadline_s=OPEN_S)
    asks = [
        call.ask("supervisor", supervisor.CloseSession(session_id=run_id), supervisor.CloseSession.REPLY),
        call.ask("store", test_runs.ForgetTestRun(run_id=run_id), test_runs.ForgetTestRun.REPLY),
    ]
    if record.traced:
        asks.append(call.ask("store", store.EndSession(session_id=run_id, state="stopped", retain=False), store.EndSession.EndReply))
    for outcome in await asyncio.gather(*asks, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, StrobeError):
            raise outcome


async def _status(run_id: str, wait_ms: int, call: Call) -> TestResult:
    try:
        state = await _waited(run_id, wait_ms, call)
    except StrobeError as error:
        if error.code not in (Code.ACTOR_UNAVAILABLE, Code.TIMEOUT):
            raise
        return await _recorded(run_id, error, call)
    call.warnings.extend(state.warnings)
    traced = run_id if state.traced else None
    if state.result is not None or state.status != "running":
        framework = state.result.framework if state.result else None
        return TestResult(
            test_run_id=run_id, session_id=traced, status=state.status, framework=framework, result=_shown(state.result), error=state.error
        )  # fmt: skip
    return TestResult(test_run_id=run_id, session_id=traced, status="running", progress=await _progress(run_id, state, call))


async def _waited(run_id: str, wait_ms: int, call: Call) -> testing.TestStateReply:
    """The state when the run has ended, else after `wait_ms`; a client that asked for it is told each second how it gets on."""
    until = time.monotonic() + wait_ms / 1000
    told = 0.0
    while True:
        left_ms = max(0, round((until - time.monotonic()) * 1000))
        part_ms = left_ms if call.progress is None else min(left_ms, PROGRESS_MS)
        state = await call.ask(f"session:{run_id}", testing.TestState(wait_ms=part_ms), testing.TestStateReply, deadline_s=STATUS_S)
        if call.progress is not None and state.elapsed_ms > told:
            told = state.elapsed_ms
            await call.progress(round(told / 1000, 3), None, progress_line(state))
        if state.status != "running" or part_ms == left_ms:
            return state


async def _recorded(run_id: str, error: StrobeError, call: Call) -> TestResult:
    """What the catalog has: the run's process ends with it."""
    [record] = (await call.ask("store", test_runs.ListTestRuns(run_id=run_id), test_runs.TestRunsReply)).records
    if record.status == "running":
        if error.code is Code.TIMEOUT:
            raise error
        return TestResult(test_run_id=run_id, status="running", progress={}, error="The run's process is being replaced; ask again in a second.")
    status = "completed" if record.status == "completed" else "failed"
    traced = run_id if record.traced else None
    return TestResult(
        test_run_id=run_id, session_id=traced, status=status, framework=record.framework, result=_shown(record.result), error=record.error
    )  # fmt: skip


async def _progress(run_id: str, state: testing.TestStateReply, call: Call) -> dict[str, Any]:
    current = state.running[0] if state.running else None
    progress: dict[str, Any] = {
        "elapsedMs": round(state.elapsed_ms), "passed": state.passed, "failed": state.failed, "skipped": state.skipped, "expected": state.expected,
        "phase": state.phase, "compileMessage": state.compile_message, "runningTests": [one.name for one in state.running],
        "warnings": [one.model_dump(by_alias=True) for one in state.suspected[:WARNINGS_SHOWN]],
    }  # fmt: skip
    if current is not None:
        [record] = (await call.ask("store", test_runs.ListTestRuns(run_id=run_id), test_runs.TestRunsReply)).records
        means = await call.ask("store", test_runs.Baselines(project_root=record.project_root, tests=[current.name]), test_runs.BaselinesReply)
        mean = means.mean_ms.get(current.name)
        progress |= {"currentTest": current.name, "currentTestElapsedMs": round(current.elapsed_ms), "currentTestBaselineMs": mean and round(mean, 1)}
    return {name: value for name, value in progress.items() if value is not None and value != []}


def _shown(result: RunResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    wire = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    summary = {name: wire.pop(name) for name in ("passed", "failed", "skipped", "stuck", "durationMs")}
    details = {one.pop("name"): one for one in wire.pop("stuckDetails")}
    stuck = [{"name": name} | {key: value for key, value in details.get(name, {}).items() if value != []} for name in wire.pop("stuckTests")]
    framework = wire.pop("framework")
    return {"framework": framework, "summary": summary, **({"stuck": stuck} if stuck else {}), **{name: value for name, value in wire.items() if value != []}}


def _listed(record: TestRunRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "testRunId": record.run_id, "projectRoot": record.project_root, "framework": record.framework, "status": record.status,
        "startedAt": datetime.fromtimestamp(record.started_at / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }  # fmt: skip
    if record.result is not None:
        shown |= {"passed": record.result.passed, "failed": record.result.failed}
    return {name: value for name, value in shown.items() if value is not None}


TOOL: Final = Tool(
    name="debug_test",
    description=_DESCRIPTION,
    arguments=TestArguments,
    result=TestResult,
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True),
    run=run,
    text=testing_text,
    cuttable=("runs", "warnings"),
)
