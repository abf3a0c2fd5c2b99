"""debug_launch: a program under Strobe, running when the call returns."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from actors.gateway.command import Program, check_arguments, find_program, project_folder, symbols_file, target_environment
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.errors import StrobeError
from strobe.model.pending import PendingChange, PendingSet
from strobe.model.sampling import SamplingLimits
from strobe.model.session import Capabilities, ChildrenPolicy
from strobe.protocol import session, store, supervisor
from strobe.render.session import launch_text

_DESCRIPTION: Final = "Start a program to debug; its output is captured from the first byte. Returns once it runs. Then debug_query, debug_trace."
_LAUNCH_S: Final = 11.0
_UNDO_S: Final = 3.0


class OpenInput(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    open: Literal[True]


class LaunchArguments(Arguments):
    command: str
    args: list[str] = []
    cwd: str | None = Field(default=None, description="default: the command's folder")
    project_root: str = Field(description="absolute folder of the sources")
    env: dict[str, str] = {}
    symbols_path: str | None = None
    stdin: str | OpenInput | None = Field(default=None, description="text then EOF; {open:true}: kept open; absent: /dev/null")
    pty: bool = Field(default=False, description="a terminal; stderr joins stdout")


class LaunchResult(Result):
    session_id: str
    pid: int
    pending_patterns_applied: int | None = None
    capabilities: Capabilities
    next_steps: list[str]


async def run(arguments: LaunchArguments, call: Call) -> Result:
    root = project_folder(arguments.project_root)
    check_arguments(arguments.args)
    program = find_program(arguments.command, arguments.cwd, root, {**call.client.env, **arguments.env})
    if program.note:
        call.warnings.append(program.note)
    session_id = await _create(_creation(arguments, program, root, call), call)
    waiting = PendingSet()
    try:
        waiting = (await call.ask("store", store.Pending(client_id=call.client.id, take=True), store.PendingReply)).waiting
        reply = await _start(session_id, arguments, program, root, waiting, call)
    except (Exception, asyncio.CancelledError) as error:
        undoing = call.background(_undo(session_id, waiting, call))
        if isinstance(error, StrobeError):
            await asyncio.wait([undoing], timeout=_UNDO_S)  # the caller may try again at once
        raise
    call.warnings.extend(reply.warnings)
    return LaunchResult(
        session_id=session_id,
        pid=reply.pid,
        pending_patterns_applied=_applied(waiting, reply),
        capabilities=reply.capabilities,
        next_steps=reply.next_steps,
    )


def _applied(waiting: PendingSet, reply: session.LaunchReply) -> int | None:
    if not waiting.patterns:
        return None
    return len(waiting.patterns) if reply.pending_patterns_applied is None else reply.pending_patterns_applied


async def _create(ask: store.CreateSession, call: Call) -> str:
    """The new session's id. A call that is cancelled meanwhile leaves no session behind."""
    creating = asyncio.ensure_future(call.ask("store", ask, store.CreateSessionReply))
    try:
        return (await asyncio.shield(creating)).session_id
    except asyncio.CancelledError:
        call.background(_undo_creation(creating, call))
        raise


async def _undo_creation(creating: asyncio.Future[store.CreateSessionReply], call: Call) -> None:
    try:
        session_id = (await creating).session_id
    except StrobeError:
        return  # none was made
    await _undo(session_id, PendingSet(), call)


def _creation(arguments: LaunchArguments, program: Program, root: Path, call: Call) -> store.CreateSession:
    return store.CreateSession(
        client_id=call.client.id,
        binary_path=str(program.path),
        command=[str(program.path), *arguments.args],
        cwd=str(program.cwd),
        project_root=str(root),
        started_at=time.time_ns(),
        started_monotonic_ns=time.monotonic_ns(),
        events_max=int(call.settings["events.maxPerSession"]),
    )


async def _start(session_id: str, arguments: LaunchArguments, program: Program, root: Path, waiting: PendingSet, call: Call) -> session.LaunchReply:
    opened = await call.ask("supervisor", supervisor.OpenSession(session_id=session_id), supervisor.OpenSessionReply, deadline_s=_LAUNCH_S)
    stdin = session.StdinOpen(open=True) if isinstance(arguments.stdin, OpenInput) else arguments.stdin
    launch = session.Launch(
        session_id=session_id,
        command=str(program.path),
        args=arguments.args,
        cwd=str(program.cwd),
        project_root=str(root),
        env=target_environment(call.client.env or dict(os.environ), arguments.env, program.path),
        stdin=stdin,
        pty=arguments.pty,
        symbols_path=symbols_file(arguments.symbols_path, root),
        patterns=waiting.patterns,
        watches=waiting.watches,
        sampling=SamplingLimits.of(call.settings),
        children=ChildrenPolicy.of(call.settings),
        budget=waiting.budget,
        serialization_depth=waiting.depth or session.Launch.model_fields["serialization_depth"].default,
    )
    return await call.ask(opened.session, launch, session.LaunchReply, deadline_s=_LAUNCH_S)


async def _undo(session_id: str, waiting: PendingSet, call: Call) -> None:
    """A launch that failed leaves nothing: no row, no processes; patterns wait again."""
    with suppress(StrobeError):  # there may be no session process, or one without a target
        await call.ask(f"session:{session_id}", session.Stop(kill=True), session.StopReply, deadline_s=_LAUNCH_S)
    asks = [
        call.ask("store", store.EndSession(session_id=session_id, state="stopped", retain=False), store.EndSession.EndReply),
        call.ask("supervisor", supervisor.CloseSession(session_id=session_id), supervisor.CloseSession.REPLY),
    ]
    if not waiting.empty:
        asks.append(call.ask("store", store.Pending(client_id=call.client.id, change=PendingChange.adding(waiting)), store.PendingReply))
    for outcome in await asyncio.gather(*asks, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, StrobeError):
            raise outcome


TOOL: Final = Tool(
    name="debug_launch",
    description=_DESCRIPTION,
    arguments=LaunchArguments,
    result=LaunchResult,
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True),
    run=run,
    text=launch_text,
    cuttable=("warnings", "nextSteps"),
    later={
        "pid": "Attaching comes later. Start the program with `command`.",
        "coreFile": "Core dumps come later. Run the program with `command`: a crash is recorded with its stack.",
        "channels": "Leave it out: stdin, stdout and stderr are always there.",
    },
)
