"""Replies about test runs as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strobe.protocol.testing import TestStateReply
from strobe.render.events import left_out_lines

FRAMES_SHOWN: Final = 5
MESSAGE_LINES: Final = 12
THREADS_SHOWN: Final = 6


def testing_text(reply: Mapping[str, Any]) -> str:
    """debug_test's reply to any of its actions."""
    if "runs" in reply:
        return "\n".join(_run_line(one) for one in reply["runs"]) or "There is no test run yet; start one with debug_test."
    lines = []
    if "noTests" in reply:
        lines = [f"No tests: {reply['noTests']['project']}.", reply["noTests"]["hint"]]
    elif "result" in reply:
        lines = _result_lines(reply["testRunId"], reply["result"])
    elif "progress" in reply:
        lines = _progress_lines(reply["testRunId"], reply["progress"])
    if "sessionId" in reply:
        lines.append(f'Calls: debug_query {{"sessionId": "{reply["sessionId"]}"}}')
    if "error" in reply:
        lines.append(f"Error: {reply['error']}")
    return "\n".join([*lines, *(f"Warning: {text}" for text in reply.get("warnings", [])), *left_out_lines(reply)])


def progress_line(state: TestStateReply) -> str:
    """How a run is, in one line."""
    ended = state.passed + state.failed + state.skipped
    of = f" of {state.expected}" if state.expected is not None else ""
    now = f"; now {state.running[0].name}, for {state.running[0].elapsed_ms / 1000:.1f} s" if state.running else ""
    stuck = f"; {state.suspected[0].test_name} looks stuck" if state.suspected else ""
    return f"{state.phase.replace('_', ' ')}: {ended}{of} tests, {state.failed} failed{now}{stuck}"


def _run_line(one: Mapping[str, Any]) -> str:
    counts = f", {one['passed']} passed, {one['failed']} failed" if "passed" in one else ""
    return f"{one['testRunId']}: {one['status']}{counts} ({one.get('framework', '?')}, {one['projectRoot']})"


def _progress_lines(run_id: str, progress: Mapping[str, Any]) -> list[str]:
    if not progress:
        return [f"{run_id} runs."]
    done = f"{progress['passed']} passed, {progress['failed']} failed, {progress['skipped']} skipped"
    of = f" of {progress['expected']}" if "expected" in progress else ""
    lines = [f"{run_id} is {progress['phase']} for {progress['elapsedMs'] / 1000:.1f} s: {done}{of}."]
    if "currentTest" in progress:
        usual = f"; it takes {progress['currentTestBaselineMs'] / 1000:.1f} s usually" if "currentTestBaselineMs" in progress else ""
        lines.append(f"Now: {progress['currentTest']}, for {progress['currentTestElapsedMs'] / 1000:.1f} s{usual}.")
    others = progress.get("runningTests", [])[1:]
    if others:
        lines.append(f"Beside it: {', '.join(others[:5])}{' …' if len(others) > 5 else ''}.")
    for warning in progress.get("warnings", []):
        traces = f" Trace: {', '.join(warning['suggestedTraces'])}." if warning["suggestedTraces"] else ""
        lines.append(f"Looks stuck: {warning['testName']}: {warning['diagnosis']}{traces}")
    if "compileMessage" in progress:
        lines.append(progress["compileMessage"])
    return [*lines, f'Next: debug_test {{"action": "status", "testRunId": "{run_id}"}}']


def _result_lines(run_id: str, result: Mapping[str, Any]) -> list[str]:
    summary = result["summary"]
    counts = ", ".join(f"{summary[name]} {name}" for name in ("passed", "failed", "skipped", "stuck") if summary[name] or name in ("passed", "failed"))
    lines = [f"{run_id} ({result['framework']}): {counts} in {summary['durationMs'] / 1000:.1f} s."]
    for one in result.get("stuck", []):
        lines += _stuck_lines(one)
    lines += [f"Could not run: {text}" for text in result.get("errors", [])]
    if "crash" in result:
        crash = result["crash"]
        how = crash.get("signal") or f"exit status {crash.get('exitCode')}"
        during = f" while {', '.join(crash['during'][:5])} ran" if crash.get("during") else ""
        lines.append(f"Crash: {crash['command']} ended by {how}{during}.")
    if "noTests" in result:
        lines += [f"No tests: {result['noTests']['project']}.", result["noTests"]["hint"]]
    for failure in result.get("failures", []):
        lines += _failure_lines(failure)
    return [*lines, f"All tests and the last output: {result['details']}"]


def _stuck_lines(one: Mapping[str, Any]) -> list[str]:
    if "diagnosis" not in one:  # a run of an earlier version
        return [f"Stuck: {one['name']}"]
    lines = [f"Stuck: {one['name']}, ended after {one['elapsedMs'] / 1000:.1f} s: {one['diagnosis']}"]
    for thread in one.get("threads", [])[:THREADS_SHOWN]:
        lines += [f"  {thread['name']}", *(f"    {frame}" for frame in thread["stack"][:FRAMES_SHOWN])]
    if one.get("suggestedTraces"):
        lines.append(f"  trace: {', '.join(one['suggestedTraces'])}")
    return lines


def _failure_lines(failure: Mapping[str, Any]) -> list[str]:
    place = f" at {failure['file']}:{failure.get('line', '?')}" if "file" in failure else ""
    message = str(failure["message"]).splitlines() or [""]
    lines = [f"FAILED {failure['name']}{place}", *(f"  {line}" for line in message[:MESSAGE_LINES])]
    for frame in failure.get("stackTrace", [])[:FRAMES_SHOWN]:
        lines.append(f"    {frame.get('function', '?')} {frame.get('file', '')}:{frame.get('line', '')}".rstrip(":"))
    if "rerunCommand" in failure:
        lines.append(f"  rerun: {failure['rerunCommand']}")
    if failure.get("suggestedTraces"):
        lines.append(f"  trace: {', '.join(failure['suggestedTraces'])}")
    return lines
