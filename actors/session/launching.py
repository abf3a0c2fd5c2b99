"""From a launch ask to a running target: preflight, pool, keeper, injection, continue."""

from __future__ import annotations

import asyncio
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from actors.session.capabilities import Finding, capabilities
from actors.session.children.following import follow
from actors.session.collector import Collector
from actors.session.journal import Journal
from actors.session.lifecycle import Started
from actors.session.ptrace import patching
from actors.session.target import Asker, Target
from actors.session.tracing import Tracing
from strobe import paths
from strobe.errors import Code, StrobeError
from strobe.lanes.pool import LEAST_CHUNKS, MOST_CHUNKS, Pool, create_pool
from strobe.launch.keeper import Keeper, start_keeper
from strobe.launch.page import StatusPage
from strobe.launch.request import Launch as LaunchRequest
from strobe.launch.status import LaunchStage, TargetState
from strobe.model.probe import Module, Place
from strobe.modules import is_own, mapped_modules, maps_text, parse_mapped
from strobe.preflight import Preflight, inspect
from strobe.protocol.indexer import Load, ModuleFacts
from strobe.protocol.session import Launch, StdinOpen

LOAD_S = 10.0
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
KEEPER_FILES = ("launch", "status", "output", "control", "stdin")  # a keeper wants a folder without them (agent/native/KEEPER.md)


class Stages:
    """How long each stage of a launch took, for the log: {name: ms}."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.monotonic()

    def done(self, name: str) -> None:
        now = time.monotonic()
        self.ms[name] = round((now - self._last) * 1000, 1)
        self._last = now


@dataclass
class Launched:
    target: Target
    tracing: Tracing
    matched: int
    warnings: list[str]
    stages: Stages


async def launch(actor: Asker, ask: Launch, folder: Path, collector_for: Any) -> Launched:
    """Errors: VALIDATION_ERROR for what can't be run, FRIDA_ATTACH_FAILED, LIMIT_EXCEEDED. Nothing is left behind by a failed one."""
    stages = Stages()
    facts = await asyncio.to_thread(inspect, Path(ask.command), ask.env)
    facts.check_runnable()
    stages.done("preflight")
    pool = await undone_if_cancelled(_pool, ask, facts, undo=Pool.unlink)
    stages.done("pool")
    try:
        keeper, facts = await undone_if_cancelled(_start, ask, folder, facts, undo=lambda started: _undo(started[0], pool))
    except BaseException:
        pool.unlink()
        raise
    stages.done("keeper")
    try:
        return await _inject(actor, ask, folder, facts, pool, keeper, collector_for, stages)
    except BaseException:
        await asyncio.to_thread(_undo, keeper, pool)
        raise


async def undone_if_cancelled(work: Callable[..., _A], *arguments: Any, undo: Callable[[_A], None]) -> _A:
    """`work` in a thread, which cannot be cancelled: where its caller is, what it made is undone."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if running.exception() is None:
            await asyncio.to_thread(undo, running.result())
        raise


def _pool(ask: Launch, facts: Preflight) -> Pool:
    """A target that may map only so much gets a pool that does not grow: room for growth counts as mapped."""
    path = paths.pool_path(ask.session_id)
    path.unlink(missing_ok=True)  # the id is new: such a pool is of a session that the store knows no more
    if not facts.injectable:
        return create_pool(path, LEAST_CHUNKS)
    bounded = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return create_pool(path, chunks_most=0 if bounded else MOST_CHUNKS)


def _start(ask: Launch, folder: Path, facts: Preflight) -> tuple[Keeper, Preflight]:
    """Where ptrace is refused (a container without SYS_PTRACE, say) the target runs in direct mode, and the facts say why."""
    try:
        return start_keeper(folder, _request(ask, stop=facts.injectable)), facts
    except StrobeError:
        if not facts.injectable or StatusPage(folder).read().stage is not LaunchStage.TRACE:
            raise
    for name in KEEPER_FILES:
        (folder / name).unlink(missing_ok=True)
    refused = replace(facts, injectable=False, reason="this machine lets no process trace another one (ptrace is refused)")
    return start_keeper(folder, _request(ask, stop=False)), refused


def _request(ask: Launch, *, stop: bool) -> LaunchRequest:
    stdin: Any = "open" if isinstance(ask.stdin, StdinOpen) else "null" if ask.stdin is None else ask.stdin.encode()
    return LaunchRequest(path=ask.command, argv=[ask.command, *ask.args], env=ask.env, cwd=ask.cwd, stdin=stdin, pty=ask.pty, stop=stop)


def _undo(keeper: Keeper, pool: Pool) -> None:
    try:
        if keeper.alive():
            keeper.control.kill_tree(signal.SIGKILL)
            keeper.control.drain()
    except StrobeError as error:
        if error.code is not Code.PROCESS_EXITED:  # it may end as soon as its target has
            raise
    finally:
        keeper.close()
        pool.unlink()


async def _inject(actor: Asker, ask: Launch, folder: Path, facts: Preflight, pool: Pool, keeper: Keeper, collector_for: Any, stages: Stages) -> Launched:
    status = keeper.status()
    pool.set_streams(status.stream_dev, status.stream_ino)
    pool.header["copy_output"] = int(ask.copy_output)
    journal = Journal(launch=ask, project_root=ask.project_root, depth=ask.serialization_depth, sampling=ask.sampling, budget=ask.budget)
    collector: Collector = collector_for(pool, keeper)
    target = Target(ask.session_id, folder, journal, keeper, pool, collector, capabilities(finding_of(facts, ask, "none", has_symbols=False)))
    target.took(Started(status.pid))
    tracing = Tracing(actor, target)
    journal.save(folder)
    collector.limit(target.limits())
    collector.start()
    follow(tracing)
    try:
        matched, warnings = 0, [pool.shortfall] if pool.shortfall else []
        if facts.injectable and status.state is TargetState.STOPPED:
            index, matched, told = await _install(tracing, ask, stages)
            warnings += told
            finding = finding_of(facts, ask, journal.recorder, has_symbols=index.has_symbols or index.has_debug_info)
            target.capabilities = capabilities(replace(finding, sees_loading=journal.sees_loading))
        journal.capabilities, journal.running = target.capabilities, True
        journal.save(folder)
    except BaseException:
        if tracing.follower is not None:
            tracing.follower.end()
        await asyncio.to_thread(collector.abandon)
        raise
    tracing.typing.begin()
    stages.done("run")
    return Launched(target, tracing, matched, warnings, stages)


def finding_of(facts: Preflight, ask: Launch, recorder: str, *, has_symbols: bool) -> Finding:
    return Finding(
        runtime=facts.runtime, detail=facts.detail, recorder=recorder, refusal=None if facts.injectable else facts.reason, has_symbols=has_symbols, pty=ask.pty
    )


async def _install(tracing: Tracing, ask: Launch, stages: Stages) -> tuple[ModuleFacts, int, list[str]]:
    """Recorder, pending patterns and crash handlers, before the program's first instruction.

    While the spawner enters the target and runs it to its entry point, its symbols are looked up. Shared libraries are mapped only after that:
    functions of its own are looked up then, and for what matched nothing those of the system.
    """
    target, probes = tracing.target, tracing.target.journal.probes
    probes.patterns = probes.changed_patterns(ask.patterns, [])
    program = str(Path(f"/proc/{target.pid}/exe").readlink())  # a script's is its interpreter
    index, (wanted, warnings), _ = await _together(_facts(tracing, ask), _look_up(tracing, program), tracing.enter())
    stages.done("enter")
    files = parse_mapped(maps_text(target.pid)) if probes.patterns or ask.watches else []
    tracing.libraries.look(files)
    mapped = [one.module for one in files]
    own_libraries = any(is_own(module.path, program) and module.path != program for module in mapped)
    if own_libraries or not tracing.resolving.all_match(probes.patterns):
        wanted, warnings = await tracing.resolving.resolve(probes.patterns, mapped)
    if ask.watches:
        warnings = [*warnings, *await watch_pending(tracing, ask, mapped)]
    hooks = await tracing.new_hooks(wanted, mapped)
    stages.done("plans")
    reply = await tracing.prepare(hooks)
    stages.done("prepare")
    target.journal.running = True  # saved before: whoever recovers this session must not take a running target for one that waits
    target.journal.save(target.folder)
    async with tracing.lock:  # a library that the program loads at once is looked at when this is done
        tracing.arming.settle()
        tracing.settle(await asyncio.to_thread(patching.take_over, target.pid, reply.writes, reply.patches, reply.arm_address))
    return index, len(wanted), warnings


async def watch_pending(tracing: Tracing, ask: Launch, mapped: list[Module]) -> list[str]:
    """A watch that can't be read is no reason not to launch: it is told."""
    told: list[str] = []
    for watch in ask.watches:
        try:
            told += await tracing.watch([*tracing.watching.watches, watch], [watch], mapped)
        except StrobeError as error:
            told.append(f"{error.what} {error.next_step}")
    return told


async def _facts(tracing: Tracing, ask: Launch) -> ModuleFacts:
    facts: ModuleFacts = await tracing.actor.ask("indexer", Load(path=ask.command, symbols_path=ask.symbols_path), deadline_s=LOAD_S)
    return facts


async def _look_up(tracing: Tracing, program: str) -> tuple[dict[int, Place], list[str]]:
    """Places in the program's own file."""
    patterns = tracing.target.journal.probes.patterns
    modules = [module for module in mapped_modules(tracing.target.pid) if module.path == program]
    return await tracing.resolving.resolve(patterns, modules)


async def _together(facts: Awaitable[_A], places: Awaitable[_B], entered: Awaitable[_C]) -> tuple[_A, _B, _C]:
    """All three; where one fails, the others are cancelled and over when its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in (facts, places, entered)]
    try:
        return await asyncio.gather(*tasks)  # type: ignore[return-value]
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
