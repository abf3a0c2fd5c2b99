"""Replies about sessions and probes as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from strobe.model.sampling import SampledFunction
from strobe.render.events import crash_line, left_out_lines
from strobe.render.table import align
from strobe.render.values import byte_count, count, plain

_SAMPLED_NAMED: Final = 5
_PROCESSES_NAMED: Final = 10
_EVIDENCE_SHOWN: Final = 6


def launch_text(reply: Mapping[str, Any]) -> str:
    can = reply["capabilities"]
    lines = [f"Session {reply['sessionId']}, pid {reply['pid']}."]
    detail = f" ({can['runtimeDetail']})" if can.get("runtimeDetail") else ""
    lines.append(f"{can['runtime']}{detail}: tracing {can['functionTracing']}, output {can['outputCapture']}.")
    if reply.get("pendingPatternsApplied") is not None:
        lines.append(f"{count(reply['pendingPatternsApplied'], 'waiting pattern')} applied.")
    lines += [f"Limit: {text}" for text in can.get("limitations", [])]
    return "\n".join([*lines, *_warnings(reply), *next_lines(reply)])


def trace_text(reply: Mapping[str, Any]) -> str:
    lines = [reply["status"]]
    patterns = ", ".join(reply["activePatterns"]) or "none"
    hooks = f"{reply['hookedFunctions']:,} hooked"
    if reply.get("matchedFunctions") is not None:
        hooks += f" of {reply['matchedFunctions']:,} matched"
    lines.append(f"Patterns: {patterns}. Functions: {hooks}.")
    lines += [f"Refused: {item['function']}: {item['reason']}" for item in reply.get("refused", [])]
    return "\n".join([*lines, *_warnings(reply), *left_out_lines(reply)])


def sampling_note(sampled: Sequence[SampledFunction]) -> list[str]:
    """One line for all functions of which not all calls are recorded, or were not."""
    named = [f"{one.function} ({_share(one.rate)}, {one.not_recorded:,} calls only counted)" for one in sampled[:_SAMPLED_NAMED]]
    if not named:
        return []
    more = f" and {len(sampled) - _SAMPLED_NAMED} more" if len(sampled) > _SAMPLED_NAMED else ""
    return [f"Sampled, being called so often: {', '.join(named)}{more}. debug_trace budget.callsPerSecond sets from where on, 0 never."]


def _share(rate: float) -> str:
    return "now all recorded" if rate >= 1 else f"now 1 call in {round(1 / rate):,}"


def session_text(reply: Mapping[str, Any]) -> str:
    """debug_session's reply to any of its actions."""
    if "sessions" in reply:
        return _list_text(reply)
    if "success" in reply:
        return _ended_text(reply)
    return _status_text(reply)


def _list_text(reply: Mapping[str, Any]) -> str:
    rows = [[s["sessionId"], s["status"], f"pid {s['pid']}" if s.get("pid") else "", s["startedAt"], s["binaryPath"]] for s in reply["sessions"]]
    return "\n".join([*(align(rows) or ["No sessions. debug_launch starts one."]), *_warnings(reply), *left_out_lines(reply)])


def _ended_text(reply: Mapping[str, Any]) -> str:
    parts = [f"{reply['sessionId']}: {reply['status']}."]
    if reply.get("eventsCollected") is not None:
        parts.append(f"{count(reply['eventsCollected'], 'event')} collected.")
    return "\n".join([" ".join(parts), *_warnings(reply)])


def _status_text(reply: Mapping[str, Any]) -> str:
    lines = [f"{reply['sessionId']}: {state_words(reply)}"]
    if reply.get("crash"):
        lines += [f"crash: {crash_line(reply['crash'])}", *_crash_detail(reply["crash"])]
    lines += _stuck_lines(reply.get("stuck"))
    lines.append(f"{count(reply.get('eventCount', 0), 'event')}, {count(reply.get('hookedFunctions', 0), 'hooked function')}.")
    lines += _process_lines(reply.get("processes", []))
    if reply.get("patterns"):
        lines.append("Patterns: " + ", ".join(reply["patterns"]))
    if reply.get("outputBytes"):
        lines.append("Output: " + ", ".join(f"{stream} {byte_count(size)}" for stream, size in reply["outputBytes"].items()))
    lost = {cause: number for cause, number in reply.get("losses", {}).items() if number}
    if lost:
        lines.append("Lost: " + ", ".join(f"{number:,} {cause}" for cause, number in sorted(lost.items())))
    lines += [f"Limit: {text}" for text in reply.get("capabilities", {}).get("limitations", [])]
    return "\n".join([*lines, *_warnings(reply), *left_out_lines(reply), *next_lines(reply)])


def _stuck_lines(stuck: Mapping[str, Any] | None) -> list[str]:
    if not stuck:
        return []
    lines = [f"{stuck['kind'].replace('_', ' ')} ({stuck['certainty']}): {stuck['summary']}"]
    lines += [f"  {line}" for line in stuck.get("evidence", [])[:_EVIDENCE_SHOWN]]
    for thread in stuck.get("threads", []):
        lines += [f"  thread {thread['name']} ({thread['tid']}):", *(f"    {frame}" for frame in thread["stack"])]
    return lines


def _process_lines(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Programs that children became: those that live, and the last ones."""
    shown = sorted(processes, key=lambda one: not one["alive"])[:_PROCESSES_NAMED]
    lines = [f"  {one['pid']} {one['command']}: {_process_words(one)}" for one in shown]
    more = len(processes) - len(shown)
    return [f"{count(len(processes), 'child program')}:", *lines, *([f"  and {more} more"] if more else [])] if processes else []


def _process_words(one: Mapping[str, Any]) -> str:
    state = "runs" if one["alive"] else f"ended {one['exit']}" if one.get("exit") else "ended"
    if one.get("whyNot"):
        return f"{state}, not traced: {one['whyNot']}"
    return f"{state}, {count(one.get('hooks', 0), 'hooked function')}"


def _crash_detail(crash: Mapping[str, Any]) -> list[str]:
    lines = [f"  {line}" for line in crash.get("frames", [])]
    if crash.get("locals"):
        lines.append("  locals: " + ", ".join(f"{name}={plain(value)}" for name, value in crash["locals"].items()))
    return [*lines, *([f"  {crash['framesMissing']}"] if crash.get("framesMissing") else [])]


def state_words(reply: Mapping[str, Any]) -> str:
    """`running, pid 71` · `exited with code 3` · `crashed by signal 11`."""
    words = str(reply["status"])
    if reply.get("signal"):
        return f"{words} by signal {reply['signal']}"
    if reply.get("exitCode") is not None:
        return f"{words} with code {reply['exitCode']}"
    return f"{words}, pid {reply['pid']}" if reply.get("pid") else words


def next_lines(reply: Mapping[str, Any]) -> list[str]:
    return [f"Next: {step}" for step in reply.get("nextSteps", [])]


def _warnings(reply: Mapping[str, Any]) -> list[str]:
    return [f"Note: {text}" for text in reply.get("warnings", [])]
