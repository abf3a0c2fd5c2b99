"""debug_trace: which functions record their calls. Without a session the patterns wait for the client's next launch."""

from __future__ import annotations

from typing import Any, Final, Literal

from mcp.types import ToolAnnotations
from pydantic import Field

from actors.gateway.command import project_folder
from actors.gateway.sessions import ended_words, is_live, record_of
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import Code, StrobeError
from strobe.model.probe import Refused
from strobe.model.session import SessionRecord
from strobe.protocol import indexer, session, store
from strobe.render.session import trace_text

_DESCRIPTION: Final = (
    "Choose the functions whose calls are recorded, while a session runs or (no sessionId) for your next launch; without add and remove it shows them. "
    "Patterns: name, ns::*, ns::**, @usercode, @file:part."
)


class TraceArguments(Arguments):
    session_id: str | None = None
    add: list[str] = Field(default=[], max_length=1000)
    remove: list[str] = Field(default=[], max_length=1000)
    serialization_depth: int | None = Field(default=None, ge=1, le=10)
    project_root: str | None = None


class TraceResult(Result):
    mode: Literal["pending", "runtime"]
    active_patterns: list[str]
    hooked_functions: int
    matched_functions: int | None = None
    active_watches: list[dict[str, Any]]
    warnings: list[str]
    refused: list[Refused] | None = None
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
    return await (_runtime if is_live(record) else _ended)(arguments, record, call)


async def _pending(arguments: TraceArguments, call: Call) -> Result:
    if arguments.add:
        # The indexer knows the pattern language: a bad one is told now, not at the launch.
        ask = indexer.Resolve(patterns=arguments.add, modules=[], main_modules=[], project_root=arguments.project_root or call.client.cwd)
        await call.ask("indexer", ask, indexer.ResolveReply)
    change = store.Pending(client_id=call.client.id, add=arguments.add, remove=arguments.remove)
    patterns = (await call.ask("store", change, store.PendingReply)).patterns
    if arguments.serialization_depth is not None or arguments.project_root is not None:
        call.warnings.append("serializationDepth and projectRoot are taken up when you trace the running session; debug_launch has its own projectRoot.")
    return TraceResult(
        mode="pending",
        active_patterns=patterns,
        hooked_functions=0,
        active_watches=[],
        warnings=[],
        event_limit=int(call.settings["events.maxPerSession"]),
        status=_pending_status(patterns),
    )


def _pending_status(patterns: list[str]) -> str:
    if not patterns:
        return "No pattern waits. Add some, or pass the sessionId of a running session."
    return f"{len(patterns)} pattern(s) wait for your next debug_launch, which applies them before the program's first instruction of its own."


async def _runtime(arguments: TraceArguments, record: SessionRecord, call: Call) -> Result:
    ask = session.Trace(
        add=arguments.add,
        remove=arguments.remove,
        serialization_depth=arguments.serialization_depth,
        project_root=arguments.project_root,
        event_limit=int(call.settings["events.maxPerSession"]),
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
        matched_functions=reply.matched_functions,
        active_watches=reply.active_watches,
        warnings=reply.warnings,
        refused=reply.refused or None,
        event_limit=reply.event_limit,
        sampling=reply.sampling,
        status=reply.status,
    )


async def _ended(arguments: TraceArguments, record: SessionRecord, call: Call) -> Result:
    words = ended_words(record)
    if arguments.add or arguments.remove:
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
    later={
        "watches": "Trace the functions that use the variable, and read their arguments and results.",
        "budget": "Narrow the patterns instead.",
    },
)
