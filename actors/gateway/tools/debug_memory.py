"""debug_memory: values of a running program by name or address: read, written, or sampled. Nothing is paused or hooked."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from actors.gateway.sessions import ended_words, is_live, of_core, record_of
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import Code, StrobeError
from strobe.model.session import SessionRecord
from strobe.protocol import session
from strobe.render.memory import memory_text

_DESCRIPTION: Final = (
    'Read, write or poll variables and memory of a running program, without pausing it. variable: gTempo, a->b.c[3], *p@10, map["key"]; or address with a type.'
)
_ADDRESS: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}")
_TARGETS_MAX: Final = 16
_TEXT_MAX: Final = 4096
_BASIC: Final = "i8…u64 f32 f64 pointer bytes string, or any type of the program"


class MemoryTarget(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)
    variable: str | None = Field(default=None, max_length=_TEXT_MAX)
    address: str | int | None = None
    type: str | None = Field(default=None, max_length=_TEXT_MAX, description=_BASIC)
    size: int | None = Field(default=None, ge=1)
    value: Any = None
    thread_id: int | None = Field(default=None, ge=1)


class MemoryArguments(Arguments):
    session_id: str
    action: Literal["read", "write", "poll"] = "read"
    targets: list[MemoryTarget] = Field(min_length=1, max_length=_TARGETS_MAX)
    depth: int = Field(default=1, ge=1, le=5)
    interval_ms: int | None = Field(default=None, ge=50, le=5000)
    duration_ms: int | None = Field(default=None, ge=100, le=30_000)
    on_change: bool | None = None


class MemoryResult(Result):
    results: list[dict[str, Any]]
    poll: str | None = None
    interval_ms: int | None = None
    achieved_interval_ms: float | None = None
    expected_samples: int | None = None
    next_steps: list[str] | None = None


async def run(arguments: MemoryArguments, call: Call) -> Result:
    _check(arguments)
    targets = [_target(one, index, arguments.action) for index, one in enumerate(arguments.targets)]
    record = await record_of(call, arguments.session_id)
    if not (is_live(record) or of_core(record)):
        raise _gone(record)
    try:
        return await _asked(arguments, targets, record, call)
    except StrobeError as error:
        if error.code in (Code.ACTOR_UNAVAILABLE, Code.TIMEOUT, Code.PROCESS_EXITED):
            now = await record_of(call, record.session_id)
            if not is_live(now):  # it ended between our look at the catalog and the ask
                raise _gone(now) from None
        raise


async def _asked(arguments: MemoryArguments, targets: list[session.MemoryTarget], record: SessionRecord, call: Call) -> Result:
    name, tokens = f"session:{record.session_id}", arguments.max_tokens
    if arguments.action == "read":
        reply = await call.ask(name, session.ReadMemory(targets=targets, depth=arguments.depth, tokens=tokens), session.MemoryReply, deadline_s=13)
        return MemoryResult(results=reply.results, warnings=reply.warnings)
    if arguments.action == "write":
        reply = await call.ask(name, session.WriteMemory(targets=targets, tokens=tokens), session.MemoryReply, deadline_s=13)
        return MemoryResult(results=reply.results, warnings=reply.warnings)
    ask = session.PollMemory(
        targets=targets, interval_ms=arguments.interval_ms or 0, duration_ms=arguments.duration_ms or 0, depth=arguments.depth,
        on_change=bool(arguments.on_change), tokens=tokens,
    )  # fmt: skip
    polled = await call.ask(name, ask, session.PollReply, deadline_s=13)
    if not polled.poll:
        return MemoryResult(results=polled.results, warnings=[*polled.warnings, "No target can be read: nothing is polled."])
    query = f'debug_query {{"sessionId": "{record.session_id}", "eventType": "variable_snapshot"}}'
    return MemoryResult(
        results=polled.results,
        warnings=polled.warnings,
        poll=polled.poll,
        interval_ms=polled.interval_ms,
        achieved_interval_ms=polled.achieved_interval_ms,
        expected_samples=polled.expected_samples,
        next_steps=[f"The samples: {query}; the last one, done, has the interval achieved."],
    )


def _check(arguments: MemoryArguments) -> None:
    poll_fields = {"interval_ms": "intervalMs", "duration_ms": "durationMs", "on_change": "onChange"}
    given = arguments.model_fields_set
    if arguments.action == "poll":
        missing = next((wire for name, wire in poll_fields.items() if name != "on_change" and getattr(arguments, name) is None), None)
        if missing is not None:
            raise _invalid(f"`{missing}` is missing; poll needs it.", "intervalMs is 50 to 5000, durationMs 100 to 30000.", missing)
        if (arguments.interval_ms or 0) > (arguments.duration_ms or 0):
            raise _invalid("`intervalMs` is longer than `durationMs`.", "Poll for at least one interval.", "intervalMs")
        return
    wrong = next((wire for name, wire in poll_fields.items() if name in given and getattr(arguments, name) is not None), None)
    if wrong is not None:
        raise _invalid(f"`{wrong}` does not go with action {arguments.action}.", 'Use action "poll", or leave it out.', wrong)


def _target(target: MemoryTarget, index: int, action: str) -> session.MemoryTarget:
    """What is wrong with the call's form; what is wrong with the program is told target by target."""
    where = f"targets[{index}]"
    if (target.variable is None) == (target.address is None):
        problem = "both `variable` and `address`" if target.variable is not None else "neither `variable` nor `address`"
        raise _invalid(f"`{where}` has {problem}; it needs one of them.", "A variable or expression, or an address with type or size.", where)
    has_value = "value" in target.model_fields_set
    if has_value != (action == "write"):
        problem = f"`{where}.value` does not go with action {action}." if has_value else f"`{where}.value` is missing; write needs it."
        raise _invalid(problem, 'Give "value" with action "write", and only there.', f"{where}.value")
    if target.size is not None and target.type not in (None, "bytes", "string"):
        raise _invalid(f"`{where}.size` goes with type bytes or string, not {target.type}.", "Leave size out: the type has one.", f"{where}.size")
    if target.variable is not None and target.size is not None and target.type is None:
        raise _invalid(f"`{where}.size` needs a type: bytes or string.", 'Add "type": "bytes".', f"{where}.size")
    return session.MemoryTarget(
        variable=target.variable, address=_address(target.address, where), type=target.type, size=target.size, thread_id=target.thread_id, value=target.value
    )


def _address(given: str | int | None, where: str) -> int | None:
    if given is None:
        return None
    text = str(given).strip()
    number = int(text, 0) if _ADDRESS.fullmatch(text) and (text[:2] in ("0x", "0X") or str(int(text)) == text) else -1
    if not 0 <= number < 1 << 64:
        raise _invalid(f"`{where}.address`: {text[:40]!r} is no address.", 'Write it in hex: "0x7ffd12345678".', f"{where}.address")
    return number


def _invalid(what: str, next_step: str, value: str) -> StrobeError:
    return StrobeError(Code.VALIDATION_ERROR, what, next_step, value=value)


def _gone(record: SessionRecord) -> StrobeError:
    kept = f'What it did is still there: debug_query {{"sessionId": "{record.session_id}"}}.'
    return StrobeError(Code.PROCESS_EXITED, f"The target of {record.session_id} is gone ({ended_words(record)}).", kept, value=record.session_id)


TOOL: Final = Tool(
    name="debug_memory",
    description=_DESCRIPTION,
    arguments=MemoryArguments,
    result=MemoryResult,
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False),
    run=run,
    text=memory_text,
    cuttable=("nextSteps", "results"),
)
