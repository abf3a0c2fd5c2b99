"""From an attach ask to a session of a process that runs already: looks at it, watch, pool, recorder, hooks. At every failure the process runs on as it did."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from actors.session.capabilities import Finding, capabilities
from actors.session.collector import Collector
from actors.session.journal import Journal
from actors.session.launching import Launched, Stages, undone_if_cancelled, watch_pending
from actors.session.lifecycle import Started
from actors.session.ptrace import patching
from actors.session.ptrace.healing import leftover_patches
from actors.session.ptrace.permission import may_trace
from actors.session.ptrace.rebinding import bind_pool
from actors.session.target import Asker, Target
from actors.session.tracing import PREPARE_S, Tracing
from strobe import paths
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import CHUNK_BYTES, CHUNKS_OFFSET
from strobe.lanes.pool import DEFAULT_CHUNKS, LEAST_CHUNKS, MOST_CHUNKS, Pool, create_pool
from strobe.launch.keeper import Keeper, watch_process
from strobe.launch.request import Watch
from strobe.modules import maps_text, parse_mapped
from strobe.preflight import Preflight, inspect_process
from strobe.preflight.loaded import wait_loaded
from strobe.preflight.running import check_attachable, check_permitted, look_at, may_trace_all, refused, yama_scope
from strobe.protocol.indexer import Load, ModuleFacts
from strobe.protocol.session import Launch
from strobe.protocol.spawner import FindRecorder, PrepareReply, RecorderReply

LOAD_S: Final = 10.0
LOADED_S: Final = 5.0
_DELETED: Final = " (deleted)"
_NONE: Final = RecorderReply(state="none")


async def attach(actor: Asker, ask: Launch, folder: Path, collector_for: Callable[[Pool, Keeper], Collector]) -> Launched:
    """Errors: PROCESS_EXITED, FRIDA_ATTACH_FAILED, SESSION_EXISTS, TIMEOUT, LIMIT_EXCEEDED. Nothing is left behind by a failed one, in the process or
    around it, but a recorder that sleeps."""
    stages = Stages()
    facts = await asyncio.to_thread(_judge, ask)
    stages.done("preflight")
    found = await _recorder(actor, ask) if facts.injectable else _NONE
    pool = await undone_if_cancelled(_pool, ask, facts, found, undo=Pool.unlink)
    try:
        keeper = await undone_if_cancelled(_watch, ask, folder, undo=_let_go)
    except BaseException:
        pool.unlink()
        raise
    stages.done("watch")
    target = _target(ask, folder, facts, pool, keeper, collector_for)
    tracing = Tracing(actor, target)
    try:
        return await _begin(tracing, facts, found, stages)
    except BaseException:
        await _undo(tracing)
        raise


def _judge(ask: Launch) -> Preflight:
    """What it is, once it is clear that it may be attached to at all."""
    assert ask.attach is not None  # else it is a launch
    pid = ask.attach.pid
    running = look_at(pid)
    if running.start_ticks != ask.attach.start_ticks:
        raise StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended; another one has its pid now.", "Find its pid anew.", value=pid)
    check_attachable(running, os.geteuid())
    facts = inspect_process(pid)
    if not facts.injectable:
        return facts
    if not may_trace(pid):
        raise check_permitted(pid, yama_scope(), may_trace_all(Path("/proc/self/status").read_text()))
    wait_loaded(pid, LOADED_S)
    return facts


async def _recorder(actor: Asker, ask: Launch) -> RecorderReply:
    """What an earlier session left there. Errors: SESSION_EXISTS when it is a living one's."""
    assert ask.attach is not None  # attach() has it
    pid = ask.attach.pid
    found: RecorderReply = await actor.ask(f"spawner:{ask.session_id}", FindRecorder(pid=pid), deadline_s=PREPARE_S)
    if found.state == "other":
        raise refused(pid, "it holds the recorder of another version of Strobe", "Start it anew, then attach.")
    if found.state == "ours" and not found.pool_path.endswith(_DELETED):
        owner = await asyncio.to_thread(_owner_of, found.pool_path)
        if owner is not None:
            what = f"Process {pid} belongs to session {Path(found.pool_path).name.split('-', 3)[-1]}, which is recording it (process {owner})."
            raise StrobeError(Code.SESSION_EXISTS, what, "Use that session, or stop it with debug_session action=stop first.", value=pid)
    return found


def _owner_of(pool: str) -> int | None:
    """The session that has it mapped: an actor of some node of ours. The processes of its target map it too."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or is another user's
            if pool in (folder / "maps").read_text(errors="surrogateescape") and b"\0STROBE_IDENTITY=" in b"\0" + (folder / "environ").read_bytes():
                return int(folder.name)
    return None


def _pool(ask: Launch, facts: Preflight, found: RecorderReply) -> Pool:
    """For a process with a recorder no larger than the room that this one has for it."""
    path = paths.pool_path(ask.session_id)
    path.unlink(missing_ok=True)  # the id is new: such a pool is of a session that the store knows no more
    if found.state == "ours" and not found.pool_path.endswith(_DELETED):
        Path(found.pool_path).unlink(missing_ok=True)  # nobody's: its session and its node are gone
    if not facts.injectable:
        return create_pool(path, LEAST_CHUNKS)
    assert ask.attach is not None  # attach() has it
    bounded = _address_space(ask.attach.pid) != resource.RLIM_INFINITY  # room for growth counts as mapped
    most = (found.pool_bytes - CHUNKS_OFFSET) // CHUNK_BYTES if found.pool_bytes else DEFAULT_CHUNKS if bounded else MOST_CHUNKS
    return create_pool(path, min(DEFAULT_CHUNKS, most), chunks_most=most if most > DEFAULT_CHUNKS else 0)


def _address_space(pid: int) -> int:
    try:
        return resource.prlimit(pid, resource.RLIMIT_AS)[0]
    except ProcessLookupError:
        raise _gone(pid) from None


def _gone(pid: int) -> StrobeError:
    return StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Find the pid of the one that runs now.", value=pid)


def _watch(ask: Launch, folder: Path) -> Keeper:
    assert ask.attach is not None  # attach() has it
    return watch_process(folder, Watch(ask.attach.pid, ask.attach.start_ticks))


def _let_go(keeper: Keeper) -> None:
    try:
        keeper.control.drain()
    except StrobeError as error:
        if error.code is not Code.PROCESS_EXITED:  # it has ended with the process
            raise
    finally:
        keeper.close()


def _target(ask: Launch, folder: Path, facts: Preflight, pool: Pool, keeper: Keeper, collector_for: Callable[[Pool, Keeper], Collector]) -> Target:
    status = keeper.status()
    pool.set_streams(status.stream_dev, status.stream_ino)
    pool.header["copy_output"] = 1
    journal = Journal(launch=ask, project_root=ask.project_root, depth=ask.serialization_depth, sampling=ask.sampling, budget=ask.budget)
    target = Target(ask.session_id, folder, journal, keeper, pool, collector_for(pool, keeper), capabilities(_finding(facts, "none", has_symbols=False)))
    target.took(Started(status.pid))
    journal.save(folder)
    target.collector.limit(target.limits())
    target.collector.start()
    return target


async def _begin(tracing: Tracing, facts: Preflight, found: RecorderReply, stages: Stages) -> Launched:
    target, journal = tracing.target, tracing.target.journal
    matched, warnings = 0, [target.pool.shortfall] if target.pool.shortfall else []
    journal.running = True  # as it was before us
    journal.save(target.folder)
    if facts.injectable:
        index, matched, told = await _install(tracing, found, stages)
        warnings += told
        finding = _finding(facts, journal.recorder, has_symbols=index.has_symbols or index.has_debug_info)
        target.capabilities = capabilities(replace(finding, sees_loading=journal.sees_loading))
    journal.capabilities = target.capabilities
    journal.save(target.folder)
    tracing.typing.begin()
    stages.done("run")
    return Launched(target, tracing, matched, warnings, stages)


def _finding(facts: Preflight, recorder: str, *, has_symbols: bool) -> Finding:
    refusal = None if facts.injectable else facts.reason
    return Finding(facts.runtime, facts.detail, recorder, refusal, has_symbols=has_symbols, pty=False, attached=True)


async def _install(tracing: Tracing, found: RecorderReply, stages: Stages) -> tuple[ModuleFacts, int, list[str]]:
    """Recorder, patterns that waited, crash handlers, while the process runs: all changes of its code in one short stop."""
    target = tracing.target
    journal, ask = target.journal, target.journal.launch
    journal.probes.patterns = journal.probes.changed_patterns(ask.patterns, [])
    healed = await undone_if_cancelled(_take_over_recorder, target, found, undo=lambda _: None) if found.state == "ours" else 0
    stages.done("recorder")
    index: ModuleFacts = await tracing.actor.ask("indexer", Load(path=ask.command, symbols_path=ask.symbols_path), deadline_s=LOAD_S)
    files = parse_mapped(maps_text(target.pid))
    tracing.libraries.look(files)
    mapped = [one.module for one in files]
    wanted, warnings = await tracing.resolving.resolve(journal.probes.patterns, mapped)
    if ask.watches:
        warnings = [*warnings, *await watch_pending(tracing, ask, mapped)]
    hooks = await tracing.new_hooks(wanted, mapped)
    stages.done("plans")
    async with tracing.lock:
        needed = hooks or found.state == "none"  # the first visit brings the recorder in, whatever there is to hook
        reply = await tracing.prepare(hooks) if needed else PrepareReply.nothing(journal.recorder)
        arm = found.arm_address or reply.arm_address
        change = target.pid, reply.writes, reply.patches, arm
        tracing.settle(await undone_if_cancelled(patching.take_in, *change, undo=tracing.settle))  # what was written is known before it is undone
        tracing.arming.settle()
    stages.done("hooks")
    if healed:
        warnings = [*warnings, f"An earlier session ended without leaving it: {healed} functions got their own bytes back first."]
    return index, len(wanted), warnings


def _take_over_recorder(target: Target, found: RecorderReply) -> int:
    """The recorder of a session that is over records for this one. Answers how many functions that one had left patched."""
    assert found.remote_address is not None  # of one that is ours
    journal = target.journal
    try:
        left = leftover_patches(target.pid, frozenset(one.hook for one in found.internals))
    except PermissionError as error:
        raise refused(target.pid, f"{error.filename} may not be read", "Start it anew, then attach.") from None
    except OSError:
        raise _gone(target.pid) from None
    if left:
        patching.restore(target.pid, left)
    bind_pool(target.pid, found.remote_address, (found.start, found.end), target.pool.path)
    journal.recorder, journal.remote = "native", found.remote_address
    journal.internals, journal.sees_loading = list(found.internals), found.sees_loading
    journal.save(target.folder)
    return len(left)


async def _undo(tracing: Tracing) -> None:
    """What was changed in the process is changed back; it runs on."""
    target = tracing.target
    target.pool.set_recording(False)
    tracing.arming.end()
    try:
        with suppress(StrobeError, OSError):  # it has ended, or cannot be stopped: its hooks record nothing
            await tracing.restore_functions()
    finally:
        await asyncio.to_thread(target.collector.abandon)
        await asyncio.to_thread(_let_go, target.keeper)
        target.pool.unlink()
