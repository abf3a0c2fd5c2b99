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
from pydantic.alias_generators import to_snake

from actors.gateway.command import check_arguments, find_program, project_folder, symbols_file, target_environment
from actors.gateway.tool import Arguments, Call, Result, Tool
from strobe.core import Core
from strobe.errors import Code, StrobeError
from strobe.model.pending import PendingChange, PendingSet
from strobe.model.sampling import SamplingLimits
from strobe.model.session import Capabilities, ChildrenPolicy
from strobe.preflight.running import check_attachable, look_at
from strobe.protocol import session, store, supervisor
from strobe.render.session import launch_text

_DESCRIPTION: Final = "Start a program to debug, or attach to a pid; its output is captured. Returns once it runs. Then debug_query, debug_trace."
_LAUNCH_ONLY: Final = ("args", "cwd", "env", "stdin", "pty")
_LAUNCH_S: Final = 11.0
_UNDO_S: Final = 3.0


class OpenInput(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    open: Literal[True]


class LaunchArguments(Arguments):
    command: str | None = Field(default=None, description="program; or else pid or coreFile")
    pid: int | None = Field(default=None, ge=1)
    core_file: str | None = None
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
    launch = await _asked(arguments, root, call)
    session_id = await _create(_creation(launch, call), call)
    waiting = PendingSet()
    try:
        waiting = (await call.ask("store", store.Pending(client_id=call.client.id, take=True), store.PendingReply)).waiting
        reply = await _start(launch, session_id, waiting, call)
    except (Exception, asyncio.CancelledError) as error:
        undoing = call.background(_undo(session_id, waiting, call, kill=launch.attach is None and launch.core_file is None))
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
    await _undo(session_id, PendingSet(), call, kill=True)  # it has no target yet


def _launch(arguments: LaunchArguments, root: Path, call: Call) -> session.Launch:
    if arguments.command is None:
        what = "None of `command`, `pid` and `coreFile` is given."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give the program to start, the pid to attach to, or the core dump to open.", value="command")
    check_arguments(arguments.args)
    program = find_program(arguments.command, arguments.cwd, root, {**call.client.env, **arguments.env})
    if program.note:
        call.warnings.append(program.note)
    return session.Launch(
        session_id="",  # it is yet to be made
        command=str(program.path),
        args=arguments.args,
        cwd=str(program.cwd),
        project_root=str(root),
        env=target_environment(call.client.env or dict(os.environ), arguments.env, program.path),
        stdin=session.StdinOpen(open=True) if isinstance(arguments.stdin, OpenInput) else arguments.stdin,
        pty=arguments.pty,
        symbols_path=symbols_file(arguments.symbols_path, root),
        patterns=[],
    )


async def _asked(arguments: LaunchArguments, root: Path, call: Call) -> session.Launch:
    """Errors: VALIDATION_ERROR, PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    kind = next((name for name in ("coreFile", "pid") if getattr(arguments, to_snake(name)) is not None), None)
    if kind is None:
        return _launch(arguments, root, call)
    wrong = [name for name in ("command", "pid", *_LAUNCH_ONLY) if name != kind and name in arguments.model_fields_set]
    if wrong:
        what = f"`{wrong[0]}` does not go with `{kind}`."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Give one of `command`, `pid` and `coreFile`.", value=wrong[0])
    return _attachment(arguments, root) if kind == "pid" else await asyncio.to_thread(_dump, arguments, root, Path(call.client.cwd))


def _dump(arguments: LaunchArguments, root: Path, folder: Path) -> session.Launch:
    path = (folder / Path(arguments.core_file or "").expanduser()).resolve()
    core = Core.open(path)
    try:
        program = core.program
    finally:
        core.close()
    return session.Launch(
        session_id="",
        command=program or str(path),
        args=[],
        cwd=str(path.parent),
        project_root=str(root),
        env={},
        stdin=None,
        pty=False,
        core_file=str(path),
        symbols_path=symbols_file(arguments.symbols_path, root),
        patterns=[],
    )


def _attachment(arguments: LaunchArguments, root: Path) -> session.Launch:
    """Of a process that may be attached to as far as can be seen from here."""
    assert arguments.pid is not None  # who calls has looked
    running = look_at(arguments.pid)
    check_attachable(running, os.geteuid())
    return session.Launch(
        session_id="",
        command=running.program,
        args=list(running.command[1:]),
        cwd=running.cwd,
        project_root=str(root),
        env={},
        stdin=None,
        pty=False,
        attach=session.Attach(pid=running.pid, start_ticks=running.start_ticks),
        symbols_path=symbols_file(arguments.symbols_path, root),
        patterns=[],
    )


def _creation(launch: session.Launch, call: Call) -> store.CreateSession:
    return store.CreateSession(
        client_id=call.client.id,
        binary_path=launch.command,
        command=[launch.command, *launch.args],
        cwd=launch.cwd,
        project_root=launch.project_root,
        pid=None if launch.attach is None else launch.attach.pid,
        started_at=time.time_ns(),
        started_monotonic_ns=time.monotonic_ns(),
        events_max=int(call.settings["events.maxPerSession"]),
    )


async def _start(launch: session.Launch, session_id: str, waiting: PendingSet, call: Call) -> session.LaunchReply:
    opened = await call.ask("supervisor", supervisor.OpenSession(session_id=session_id), supervisor.OpenSessionReply, deadline_s=_LAUNCH_S)
    waited = {
        "session_id": session_id,
        "patterns": waiting.patterns,
        "watches": waiting.watches,
        "sampling": SamplingLimits.of(call.settings),
        "children": ChildrenPolicy.of(call.settings),
        "budget": waiting.budget,
        "serialization_depth": waiting.depth or launch.serialization_depth,
    }
    return await call.ask(opened.session, launch.model_copy(update=waited), session.LaunchReply, deadline_s=_LAUNCH_S)


async def _undo(session_id: str, waiting: PendingSet, call: Call, *, kill: bool) -> None:
    """A launch that failed leaves nothing: no row, no processes (but one that was there before, unharmed); patterns wait again."""
    with suppress(StrobeError):  # there may be no session process, or one without a target
        await call.ask(f"session:{session_id}", session.Stop(kill=kill), session.StopReply, deadline_s=_LAUNCH_S)
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
        "channels": "Leave it out: stdin, stdout and stderr are always there.",
    },
)
