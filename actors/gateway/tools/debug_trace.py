"""debug_trace: which functions record their calls. Without a session the patterns wait for the client's next launch."""

from __future__ import annotations

from typing import Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from actors.gateway.command import project_folder
from actors.gateway.sessions import ended_words, is_live, of_core, record_of
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import Code, StrobeError
from strobe.model.pending import PendingChange, PendingSet
from strobe.model.probe import Refused
from strobe.model.sampling import Budget, SamplingLimits
from strobe.model.session import SessionRecord
from strobe.model.watch import EXPRESSION_MAX, WATCHES_MAX, ActiveWatch, Watch, check
from strobe.protocol import indexer, session, store
from strobe.render.session import sampling_note, trace_text
from strobe.render.values import count

_DESCRIPTION: Final = (
    "Choose the functions whose calls are recorded, while a session runs or (no sessionId) for your next launch; without add and remove it shows them. "
    "Patterns: name, ns::*, ns::**, @usercode, @file:part."
)


class WatchAdd(BaseModel):
    """Exactly one of variable, address with type, expr."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)
    variable: str | None = None
    address: str | None = Field(default=None, description="hex")
    type: str | None = None
    expr: str | None = Field(default=None, max_length=EXPRESSION_MAX, description="gState->items[2].id, args[0]->name")
    label: str | None = Field(default=None, min_length=1, max_length=64)
    on: list[str] = Field(default=[], max_length=100, description="patterns; default: all traced")


class WatchChange(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)
    add: list[WatchAdd] = Field(default=[], max_length=WATCHES_MAX)
    remove: list[str] = Field(default=[], max_length=WATCHES_MAX)


class BudgetArgument(BaseModel):
    """For all traced functions together, and for those that are called very often."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)
    events_per_second: int | None = Field(default=None, ge=1)
    overhead_percent: float | None = Field(default=None, gt=0)
    calls_per_second: int | None = Field(default=None, ge=0, description="above it 1 % or rate; 0 never")
    rate: float | None = Field(default=None, ge=0.0001, le=1)


class TraceArguments(Arguments):
    session_id: str | None = None
    add: list[str] = Field(default=[], max_length=1000)
    remove: list[str] = Field(default=[], max_length=1000)
    serialization_depth: int | None = Field(default=None, ge=1, le=10)
    project_root: str | None = None
    watches: WatchChange | None = None
    budget: BudgetArgument | None = None


class TraceResult(Result):
    mode: Literal["pending", "runtime"]
    active_patterns: list[str]
    hooked_functions: int
    typed_functions: int | None = None
    matched_functions: int | None = None
    active_watches: list[dict[str, Any]]  # ActiveWatch
    warnings: list[str]
    refused: list[dict[str, Any]] | None = None  # Refused
    event_limit: int
    sampling: list[dict[str, Any]] | None = None
    status: str


async def run(arguments: TraceArguments, call: Call) -> Result:
    if arguments.project_root is not None:
        project_folder(arguments.project_root)
    empty = [pattern for pattern in (*arguments.add, *arguments.remove) if not pattern.strip()]
    if empty:
        raise StrobeError(Code.INVALID_PATTERN, "A pattern is empty.", "Write a function name, for instance `main` or `ns::*`.", value=empty[0])
    if arguments.session_id is None:
        return await _pending(arguments, call)
    record = await record_of(call, arguments.session_id)
    if of_core(record):
        what = f"{record.session_id} is a core dump: nothing in it runs, so nothing can be traced."
        raise StrobeError(Code.PROCESS_EXITED, what, "Launch the program with `command` to trace it.", value=record.session_id)
    return await (_runtime if is_live(record) else _ended)(arguments, record, call)


async def _pending(arguments: TraceArguments, call: Call) -> Result:
    if arguments.add:
        # The indexer knows the pattern language: a bad one is told now, not at the launch.
        ask = indexer.Resolve(patterns=arguments.add, modules=[], main_modules=[], project_root=arguments.project_root or call.client.cwd)
        await call.ask("indexer", ask, indexer.ResolveReply)
    change = PendingChange(
        add=arguments.add,
        remove=arguments.remove,
        add_watches=watches_of(arguments.watches),
        remove_watches=arguments.watches.remove if arguments.watches else [],
        depth=arguments.serialization_depth,
        budget=_budget(arguments),
    )
    if arguments.project_root is not None:
        call.warnings.append("projectRoot is not kept: debug_launch has its own.")
    waiting = (await call.ask("store", store.Pending(client_id=call.client.id, change=change), store.PendingReply)).waiting
    if len(waiting.watches) > WATCHES_MAX:
        drop = PendingChange(remove_watches=[watch.label for watch in change.add_watches])
        await call.ask("store", store.Pending(client_id=call.client.id, change=drop), store.PendingReply)
        raise StrobeError(Code.LIMIT_EXCEEDED, f"{len(waiting.watches)} watches are more than {WATCHES_MAX}.", "Remove some first.", value=len(waiting.watches))
    return TraceResult(
        mode="pending",
        active_patterns=waiting.patterns,
        hooked_functions=0,
        active_watches=[wire_of(_waiting_watch(watch)) for watch in waiting.watches],
        warnings=[],
        event_limit=int(call.settings["events.maxPerSession"]),
        status=_pending_status(waiting),
    )


def _waiting_watch(watch: Watch) -> ActiveWatch:
    return ActiveWatch(label=watch.label, expr=watch.expr, address=None, size=None, type_name=None, on=watch.on or None, functions=0)


def _pending_status(waiting: PendingSet) -> str:
    if not waiting.patterns and not waiting.watches:
        return "No pattern waits. Add some, or pass the sessionId of a running session."
    parts = [count(len(waiting.patterns), "pattern")] + ([count(len(waiting.watches), "watch", "watches")] if waiting.watches else [])
    if waiting.watches and not waiting.patterns:
        return f"{parts[1]} for your next debug_launch, but nothing to read them on: add patterns of functions to trace."
    wait = "waits" if len(waiting.patterns) + len(waiting.watches) == 1 else "wait"
    return f"{' and '.join(parts)} {wait} for your next debug_launch, which applies them before the program's first instruction of its own."


def wire_of(noun: ActiveWatch | Refused) -> dict[str, Any]:
    return noun.model_dump(by_alias=True, exclude_none=True)


def watches_of(asked: WatchChange | None) -> list[Watch]:
    """Checked as far as their texts tell. Errors: WATCH_FAILED, VALIDATION_ERROR."""
    found = [_watch(one) for one in asked.add] if asked is not None else []
    labels = [watch.label for watch in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise StrobeError(Code.VALIDATION_ERROR, f"Two watches are called {twice!r}.", "Give them different labels.", value=twice)
    for watch in found:
        check(watch)
    return found


def _watch(asked: WatchAdd) -> Watch:
    given = [name for name in ("variable", "address", "expr") if getattr(asked, name) is not None]
    if len(given) != 1:
        what = f"A watch has {', '.join(given) or 'nothing to read'}."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give it exactly one of variable, expr, or address with type.", value=asked.label or "watches.add")
    if (asked.address is None) != (asked.type is None):
        lone = asked.address or asked.type
        raise StrobeError(Code.VALIDATION_ERROR, "address and type go together.", "Give both, e.g. address 0x55d0c0 and type int.", value=lone)
    if asked.address is not None:
        try:
            address = int(asked.address, 16)
        except ValueError:
            raise StrobeError(Code.VALIDATION_ERROR, f"{asked.address!r} is no hexadecimal address.", "Write it as 0x55d0c0.", value=asked.address) from None
        label = asked.label or asked.address
        return Watch(label=label, expr=f"*({asked.type}*){address:#x}", on=asked.on, address=address, type_name=asked.type)
    expr = asked.expr if asked.expr is not None else asked.variable or ""
    return Watch(label=(asked.label or expr)[:64], expr=expr, on=asked.on)


async def _runtime(arguments: TraceArguments, record: SessionRecord, call: Call) -> Result:
    ask = session.Trace(
        add=arguments.add,
        remove=arguments.remove,
        add_watches=watches_of(arguments.watches),
        remove_watches=arguments.watches.remove if arguments.watches else [],
        serialization_depth=arguments.serialization_depth,
        project_root=arguments.project_root,
        event_limit=int(call.settings["events.maxPerSession"]),
        sampling=SamplingLimits.of(call.settings),
        budget=_budget(arguments),
    )
    try:
        reply = await call.ask(f"session:{record.session_id}", ask, session.TraceReply, deadline_s=13)
    except StrobeError as error:
        if error.code is Code.PROCESS_EXITED:  # between our look at the catalog and the ask
            raise StrobeError(error.code, error.what, _after_end(record), value=record.session_id) from None
        if error.code in (Code.ACTOR_UNAVAILABLE, Code.TIMEOUT):
            now = await record_of(call, record.session_id)
            if not is_live(now):  # its process ended with the target, and took the ask along
                return await _ended(arguments, now, call)
        raise
    return TraceResult(
        mode=reply.mode,
        active_patterns=reply.active_patterns,
        hooked_functions=reply.hooked_functions,
        typed_functions=reply.typed_functions,
        matched_functions=reply.matched_functions,
        active_watches=[wire_of(watch) for watch in reply.active_watches],
        warnings=[*reply.warnings, *sampling_note(reply.sampling)],
        refused=[wire_of(one) for one in reply.refused] or None,
        event_limit=reply.event_limit,
        sampling=[one.model_dump(by_alias=True) for one in reply.sampling] or None,
        status=reply.status,
    )


def _budget(arguments: TraceArguments) -> Budget | None:
    return None if arguments.budget is None else Budget.model_validate(arguments.budget.model_dump())


async def _ended(arguments: TraceArguments, record: SessionRecord, call: Call) -> Result:
    words = ended_words(record)
    if arguments.add or arguments.remove or arguments.watches is not None:
        raise StrobeError(Code.PROCESS_EXITED, f"The target of {record.session_id} is gone ({words}).", _after_end(record), value=record.session_id)
    return TraceResult(
        mode="runtime",
        active_patterns=[],
        hooked_functions=0,
        active_watches=[],
        warnings=[],
        event_limit=int(call.settings["events.maxPerSession"]),
        status=f"Nothing is traced: {words}.",
    )


def _after_end(record: SessionRecord) -> str:
    kept = f'Its events are still there: debug_query {{"sessionId": "{record.session_id}"}}.'
    return f"{kept} To trace another run, call debug_trace without sessionId, then debug_launch."


TOOL: Final = Tool(
    name="debug_trace",
    description=_DESCRIPTION,
    arguments=TraceArguments,
    result=TraceResult,
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
    run=run,
    text=trace_text,
    cuttable=("refused", "activePatterns", "warnings"),
)
