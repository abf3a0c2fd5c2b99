"""A session of a core dump: crashed from the start, its crash an event as a living target's would be, its memory there to be read."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from actors.session import crash as crashes
from actors.session.capabilities import CORE
from actors.session.collector import Collector
from actors.session.journal import Journal
from actors.session.launching import Launched, Stages
from actors.session.lifecycle import Ended, Started
from actors.session.target import Asker, Target
from actors.session.tracing import Tracing
from strobe import paths
from strobe.core import Core, Thread
from strobe.errors import StrobeError
from strobe.lanes.layout import CRASH_STACK_BYTES
from strobe.lanes.pool import LEAST_CHUNKS, Pool, create_pool
from strobe.launch.keeper import Keeper, adopt_keeper
from strobe.launch.page import write_ended
from strobe.model.probe import Module
from strobe.modules import parse_maps
from strobe.protocol.indexer import FramesReply, Unwind
from strobe.protocol.session import Launch

UNWIND_S: Final = 8.0  # of all threads: a launch is to be answered
FLUSH_S: Final = 8.0
WCOREFLAG: Final = 0x80  # wait(2)
THREADS_MAX: Final = 64  # whose stacks are unwound
THREAD_FRAMES: Final = 32
RED_ZONE: Final = 256  # bytes below the stack pointer that belong to the saved stack (recorder_crash.c)
_SAVED_ALIVE: Final = "The core was saved of a living process: it has no signal."


async def open_core(actor: Asker, ask: Launch, folder: Path, collector_for: Callable[[Pool, Keeper], Collector]) -> Launched:
    """Errors: VALIDATION_ERROR for what is no core dump; LIMIT_EXCEEDED."""
    assert ask.core_file is not None  # else it is a launch
    stages = Stages()
    core = await asyncio.to_thread(_opened, Path(ask.core_file))
    stages.done("core")
    try:
        target = await asyncio.to_thread(_target, ask, folder, core, collector_for)
    except BaseException:
        core.close()
        raise
    target.core = core
    await _tell(actor, target, core)
    await asyncio.to_thread(_end, target, core)
    stages.done("frames")
    warnings = [f"{path}: {why}; its functions are not named." for path, why in list(core.changed.items())[:5]]
    return Launched(target, Tracing(actor, target), 0, [*warnings, *([] if core.signo else [_SAVED_ALIVE])], stages)


def opened(ask: Launch) -> Core | None:
    """For a successor of this process."""
    return _opened(Path(ask.core_file)) if ask.core_file is not None else None


def _opened(path: Path) -> Core:
    core = Core.open(path)
    core.check_files()
    return core


def _target(ask: Launch, folder: Path, core: Core, collector_for: Callable[[Pool, Keeper], Collector]) -> Target:
    """Its keeper has ended, and with it the target: that is all that the others need to know."""
    write_ended(folder, core.pid, core.signo | WCOREFLAG if core.signo else None)
    pool = create_small(paths.pool_path(ask.session_id))
    keeper = adopt_keeper(folder)
    journal = Journal(launch=ask, project_root=ask.project_root, running=True, capabilities=CORE)
    target = Target(ask.session_id, folder, journal, keeper, pool, collector_for(pool, keeper), CORE)
    target.took(Started(core.pid))
    journal.save(folder)
    target.collector.start()
    return target


def create_small(path: Path) -> Pool:
    """Nobody will record anything."""
    path.unlink(missing_ok=True)
    return create_pool(path, LEAST_CHUNKS)


def _end(target: Target, core: Core) -> None:
    """It has ended before it is asked for: the catalog has that when this returns."""
    life = target.took(Ended(core.signo | WCOREFLAG if core.signo else None))
    detail = {"capabilities": CORE.model_dump(by_alias=True), "coreFile": str(core.path)}
    target.collector.tell_session({"pid": core.pid, "state": life.state, "signal": life.signal, "endedAt": time.time_ns(), "detail": detail})
    target.collector.flush(FLUSH_S)


async def _tell(actor: Asker, target: Target, core: Core) -> None:
    """The crash of the thread that the signal came to, with the stacks of the others."""
    maps = core.maps()
    modules = parse_maps(maps)
    crash = _crash(core, core.threads[0], maps)
    missing: dict[str, Any] = {}
    deadline = time.monotonic() + UNWIND_S
    try:
        reply = await _frames(actor, target, core, core.threads[0], modules, UNWIND_S)
    except StrobeError as error:  # the crash itself must be told
        reply, missing = FramesReply(frames=[]), {"framesMissing": f"{error.what} {error.next_step}"}
    data = crashes.event_data(crash, reply.frames, reply.culprit) | missing | {"coreFile": str(core.path)}
    text = crashes.summary(crash, reply.frames, reply.culprit)
    if not core.signo:
        data |= {"signal": "none", "cause": _SAVED_ALIVE}
        text = "core of a living process" + (crashes.in_words(crashes.where(reply.frames[0])) if reply.frames else "")
    data["threads"] = [await _thread(actor, target, core, thread, modules, deadline) for thread in core.threads[1:THREADS_MAX]]
    if len(core.threads) > THREADS_MAX:
        data["threadsLeftOut"] = len(core.threads) - THREADS_MAX
    target.crash = {"summary": text, **data}
    event = {"type": "crash", "tsNs": time.monotonic_ns(), "pid": core.pid, "tid": crash.tid, "text": text, "data": data}
    target.collector.tell_timed(event)
    (target.folder / f"died-{core.pid}").touch()  # told: the end says no more than this


async def _thread(actor: Asker, target: Target, core: Core, thread: Thread, modules: list[Module], deadline: float) -> dict[str, Any]:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        return {"threadId": thread.tid, "framesMissing": f"The stacks of the threads before it took {UNWIND_S:g} s. Open the core again: they are known then."}
    try:
        reply = await _frames(actor, target, core, thread, modules, left_s)
    except StrobeError as error:
        return {"threadId": thread.tid, "framesMissing": error.what}
    return {"threadId": thread.tid, "frames": [crashes.frame_data(number, frame) for number, frame in enumerate(reply.frames[:THREAD_FRAMES])]}


async def _frames(actor: Asker, target: Target, core: Core, thread: Thread, modules: list[Module], left_s: float) -> FramesReply:
    base, stack = core.stack(thread.registers["rsp"], RED_ZONE, CRASH_STACK_BYTES)
    ask = Unwind(
        modules=modules, regs={number: thread.registers[name] for number, name in enumerate(crashes.DWARF_REGISTERS)}, stack_base=base,
        stack=stack, symbols_path=target.journal.launch.symbols_path, project_root=target.journal.project_root or None,
    )  # fmt: skip
    reply: FramesReply = await actor.ask("indexer", ask, deadline_s=left_s)
    return reply


def _crash(core: Core, thread: Thread, maps: str) -> crashes.Crash:
    base, stack = core.stack(thread.registers["rsp"], RED_ZONE, CRASH_STACK_BYTES)
    known = {name: thread.registers[name] for name in crashes.GREGS if name in thread.registers}
    return crashes.Crash(
        signo=core.signo, code=core.notes.code if core.notes.signo else _code_of(core.signo), address=core.notes.address, pid=core.pid, tid=thread.tid,
        sender_pid=core.notes.sender, ts=0, span=0, regs=known, stack_base=base, stack=stack, maps=maps, comm=core.notes.name,
    )  # fmt: skip


def _code_of(signo: int) -> int:
    """Where the dump does not tell: SI_KERNEL for a fault, so that no address is claimed; else sent by somebody."""
    return 128 if signo in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL) else 0
