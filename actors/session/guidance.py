"""What to do next, in words. Pure."""

from __future__ import annotations

from strobe.model.session import Capabilities
from strobe.render.values import count


def guidance(hooked: int, matched: int | None, refused: int, patterns: list[str], *, waiting: bool = False) -> str:
    """What to do now, in one or two sentences. `waiting`: libraries that are loaded later are traced as well."""
    if not patterns:
        return "No patterns are active. Add some, e.g. add: ['parse*', '@usercode']."
    refusals = f" {refused} could not be hooked (see refused)." if refused else ""
    if hooked == 0 and waiting:
        what = "Nothing is hooked yet: no function of what is loaded matched"
        return f"{what}.{refusals} The patterns are waiting: they take effect as soon as a library with a match is loaded. See warnings for what is close."
    if hooked == 0:
        return f"Nothing is hooked: no function matched.{refusals} See warnings for what is close, or try '@usercode'."
    if matched is not None and hooked > 500:
        return f"{hooked:,} functions are hooked.{refusals} That is a lot: expect many events; narrow the patterns once you know where to look."
    return f"{hooked} function{'s' if hooked != 1 else ''} hooked and recording.{refusals} Exercise the program, then debug_query."


def next_steps(session_id: str, can: Capabilities, patterns: list[str], matched: int) -> list[str]:
    """Concrete calls, most useful first."""
    steps = []
    if matched:
        steps.append(f'debug_query {{"sessionId": "{session_id}", "view": "callTree"}} shows what the {count(matched, "traced function")} did')
    elif patterns:
        steps.append(f'debug_trace {{"sessionId": "{session_id}"}} says why the pending patterns matched nothing')
    steps.append(f'debug_query {{"sessionId": "{session_id}"}} reads its output and events')
    if can.function_tracing != "none" and not matched:
        steps.append(f'debug_trace {{"sessionId": "{session_id}", "add": ["@usercode"]}} traces the functions of the project')
    steps.append(f'debug_session {{"action": "stop", "sessionId": "{session_id}"}} ends the session')
    return steps
