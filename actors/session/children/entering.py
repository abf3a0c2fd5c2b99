"""Hooks for a program that an exec has started: it waits at its gate with the recorder in it, and does itself what has to be done in it.

Ids and plans are the session's: one for a function of a file, in whatever process and wherever it is mapped. Plans that were made for watches hold
addresses of the target's own process, so those of its children are made without; the programs of a test run have plans of their own for them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from actors.session.children import root
from actors.session.children.gate import Gate
from actors.session.children.lingering import holders, start_ticks
from actors.session.ptrace import patching
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import NewPlan, Order, packed_plans, unpacked_plans
from actors.session.ptrace.reserving import groups
from actors.session.ptrace.threads import thread_ids
from actors.session.tracing import PREPARE_S, Tracing, flags_of
from actors.session.watching import Watching
from strobe.errors import StrobeError
from strobe.lanes.layout import HookFlag
from strobe.model.probe import Hook, Place
from strobe.modules import Mapped, maps_text, parse_mapped
from strobe.protocol.spawner import OWN_BYTES, HookSpec, Internal, Patch, Prepare, PrepareReply, Slab

PLANS_MS: Final = 300
NAME_BYTES: Final = 64
INTERNALS_MAX: Final = 256
PROGRAMS_MAX: Final = 200  # remembered before those that have ended are forgotten
FOLLOWING: Final = frozenset({"execve", "execveat", "fexecve"})  # what the recorder needs to see of a shell
_INTERNAL: Final = struct.Struct("<QQII")  # struct strobe_internal
_LIBRARIES: Final = ("libc.so", "libc-", "ld-linux", "libgcc_s", "libstdc++", "libc++")

FunctionKey = tuple[str, str, int]  # path and version of a file, link-time address


@dataclass(frozen=True, slots=True)
class Entered:
    hooks: int
    refused: int


@dataclass(frozen=True, slots=True)
class Program:
    """What was patched in a process, and when that began."""

    ticks: int
    patches: list[Patch]
    forked: bool = False  # it has others of its parent's


class Entering:
    """Of one session."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._target = tracing.target
        self._hooks: dict[FunctionKey, Hook] = {}  # of which the target itself had none
        self._resting: set[FunctionKey] = set()  # of patterns that were removed
        self.programs: dict[int, Program] = {}
        self.watch_problems: dict[str, str] = {}
        self.watches_read: set[str] = set()

    async def enter(self, gate: Gate, program: str, *, bare: bool) -> Entered:
        """`bare`: only what it starts is of interest. It still waits when this returns. Errors: Left, StrobeError."""
        mapped = parse_mapped(maps_text(gate.pid))
        internals = await asyncio.to_thread(_internals, gate)
        if bare:
            internals, hooks = [item for item in internals if item.symbol in FOLLOWING], []
        else:
            hooks = await self._watched(await self.wanted(mapped, program), mapped, program)
        ask = await asyncio.to_thread(self._reserved, gate, mapped, internals, hooks)
        reply: PrepareReply = await self._tracing.actor.ask(f"spawner:{self._target.session_id}", ask, deadline_s=PREPARE_S)
        if gate.pid == self._target.pid:
            async with self._tracing.lock:
                root.entered(self._tracing, mapped, hooks, reply, gate.remote)
        else:
            self._keep(gate.pid, reply)
        await asyncio.to_thread(_install, gate, reply, arm=not bare)
        return Entered(len(hooks) - len(reply.refused_ids), len(reply.refused_ids))

    async def wanted(self, mapped: Sequence[Mapped], program: str) -> list[Hook]:
        """Hooks for what the patterns match in a process that has these files mapped, at their addresses there."""
        patterns = self._target.journal.probes.patterns
        if not patterns:
            return []
        places = await self._tracing.resolving.in_new(patterns, mapped, program)
        files = {one.module.path: one.file for one in mapped}
        found = {address: (place.module, files[place.module], place.offset) for address, place in places.items()}
        async with self._tracing.lock:
            hooks = self._targets(files) | self._hooks
            fresh = {key: places[address] for address, key in found.items() if key not in hooks}
            if fresh:
                await self._make(fresh)
            hooks |= self._hooks
            for key in self._resting.intersection(found.values()):
                self._target.set_hook(hooks[key].id, flags_of(hooks[key]))
                self._resting.discard(key)
        return [hooks[key].model_copy(update={"address": address}) for address, key in found.items()]

    async def _watched(self, hooks: list[Hook], mapped: Sequence[Mapped], program: str) -> list[Hook]:
        """Of a test run: with what its watches read, in ids of this process alone, for what they begin at lies elsewhere in each."""
        journal = self._target.journal
        if not hooks or not journal.watches or not journal.launch.copy_output:
            return hooks
        watching = Watching(self._tracing.actor, self._target, program)
        watching.resolved = await watching.resolve(journal.watches, [one.module for one in mapped])
        for watch in journal.watches:
            if watch.on:
                watching.on[watch.label] = set(await self._tracing.resolving.in_new(watch.on, mapped, program))
        planned = [(hook, watching.plan_for(hook.plan, hook.address)) for hook in hooks]
        self.watch_problems |= {label: one.problem for label, one in watching.resolved.items() if one.problem is not None}
        self.watch_problems |= {label: next(iter(found.values())) for label, found in watching.problems.items() if found}
        self.watches_read |= {value.label for _, plan in planned for value in plan.watches}
        changed = [(hook, plan) for hook, plan in planned if plan is not hook.plan]
        async with self._tracing.lock:
            made = journal.probes.new_hooks([hook.place for hook, _ in changed], [hook.address for hook, _ in changed], [plan for _, plan in changed])
            journal.save(self._target.folder)
        self._target.collector.announce_hooks(made)
        for hook in made:
            self._target.set_hook(hook.id, flags_of(hook))
        fresh = {hook.address: hook for hook in made}
        return [fresh.get(hook.address, hook) for hook in hooks]

    def told(self) -> list[str]:
        """Watches that were read nowhere, and why."""
        return [f"Watch {label}: {why}" for label, why in self.watch_problems.items() if label not in self.watches_read]

    def _targets(self, files: dict[str, str]) -> dict[FunctionKey, Hook]:
        """Hooks that the target itself has for functions of these files."""
        items = self._target.journal.probes.installed.values()
        usable = [item.hook for item in items if item.hook.place.module in files and item.patch is not None and item.enabled and item.base is None]
        return {(hook.place.module, files[hook.place.module], hook.place.offset): hook for hook in usable}

    async def _make(self, fresh: dict[FunctionKey, Place]) -> None:
        """Their ids are known to the store before a record can use them."""
        journal = self._target.journal
        reply = await self._tracing.typing.plans(list(fresh.values()), PLANS_MS)
        hooks = journal.probes.new_hooks(list(fresh.values()), [place.offset for place in fresh.values()], reply.plans)
        journal.save(self._target.folder)
        self._target.collector.announce_hooks(hooks)
        for key, hook in zip(fresh, hooks, strict=True):
            self._target.set_hook(hook.id, flags_of(hook))
            self._hooks[key] = hook

    def _reserved(self, gate: Gate, mapped: Sequence[Mapped], internals: list[Internal], hooks: Sequence[Hook]) -> Prepare:
        """What thunks need of the process: memory near the functions, and hooks that are registered."""
        others = [one.module.start for one in mapped if PurePath(one.module.path).name.startswith(_LIBRARIES)]
        slabs = []
        for near, size in groups([hook.address for hook in hooks], others):
            address = gate.order(Order.SLAB, near, size + OWN_BYTES)
            slabs.append(Slab(address=address, bytes=size + OWN_BYTES if address else 0))
        plans = [NewPlan(hook.id, hook.address, 0, hook.plan.ops) for hook in hooks]
        words = _register(gate, plans) if plans else []
        specs = [spec_of(hook, *pair) for hook, pair in zip(hooks, words, strict=True)]
        return Prepare(pid=gate.pid, pool_path=str(self._target.pool.path), hooks=specs, slabs=slabs, internals=internals)

    def forget(self, removed: Sequence[str] | None) -> None:
        """Patterns were removed: their hooks record nothing more, in no process. None: values are captured otherwise from now on, with new plans."""
        if removed is None:
            self._hooks.clear()
            self._resting.clear()
            return
        for key, hook in self._hooks.items():
            if hook.place.pattern in removed:
                self._target.set_hook(hook.id, HookFlag(0))
                self._resting.add(key)

    def restore(self) -> None:
        """The functions' own bytes in all children that live, the merely forked ones too. What does not hold our jump is left alone. Wanted again,
        they get new ids. Blocks."""
        patched = [list(one.patches) for one in self.programs.values()]
        patched.append([item.patch for item in self._target.journal.probes.installed.values() if item.patch])
        status = self._target.keeper.status()
        for pid, ticks in holders(self._target.pool.path, status.start_ticks).items():
            own = self.programs.get(pid)
            if pid == status.pid:
                continue
            for patches in [own.patches] if own is not None and own.ticks == ticks and not own.forked else patched:
                with suppress(StrobeError):  # it has ended meanwhile, or is held by another debugger
                    patching.restore(pid, patches)
        self.programs.clear()
        self.forget(None)

    def _keep(self, pid: int, reply: PrepareReply) -> None:
        ticks = start_ticks(pid)
        if ticks is not None:
            self.programs[pid] = Program(ticks, [patch for patch in reply.patches if patch.hook])
        if len(self.programs) > PROGRAMS_MAX:
            self.programs = {pid: one for pid, one in self.programs.items() if start_ticks(pid) == one.ticks}


def spec_of(hook: Hook, word: int, entry: int) -> HookSpec:
    place = hook.place
    return HookSpec(
        id=hook.id, address=hook.address, size=place.size, function=place.function, module=place.module, plan=hook.plan.ops, hook=word, entry=entry
    )  # fmt: skip


def _register(gate: Gate, plans: Sequence[NewPlan]) -> list[tuple[int, int]]:
    desk = packed_plans(plans)
    address = gate.order(Order.DESK, len(desk))
    if not address:
        return [(0, 0)] * len(plans)
    with Memory(gate.pid) as memory:
        memory.write(address, desk)
        gate.order(Order.REGISTER, address, len(plans))
        return unpacked_plans(memory, address, len(plans))


def _internals(gate: Gate) -> list[Internal]:
    """strobe_internals, as it stands in the process."""
    count = min(max(gate.folder, 0), INTERNALS_MAX)
    found = []
    with Memory(gate.pid) as memory:
        rows = list(_INTERNAL.iter_unpack(memory.read(gate.path, _INTERNAL.size * count)))
        for n, (symbol, entry, everywhere, _) in enumerate(rows):
            name = bytes(memory.read_some(symbol, NAME_BYTES)).split(b"\0")[0].decode()
            found.append(Internal(symbol=name, every_module=bool(everywhere), hook=gate.path + n * _INTERNAL.size, entry=entry))
    return found


def _install(gate: Gate, reply: PrepareReply, *, arm: bool) -> None:
    """Nothing of it is run while it is written: the only thread waits at the gate. Where there are more, the world stops for it."""
    gate.hold()
    if len(thread_ids(gate.pid)) > 1:
        patching.install(gate.pid, reply.writes, reply.patches)
    else:
        with Memory(gate.pid) as memory:
            for write in reply.writes:
                memory.write(write.address, write.data)
            for patch in sorted(reply.patches, key=_own_last):
                if memory.read_some(patch.address, len(patch.original)) == patch.original:
                    memory.write(patch.address, patch.data)
    if arm:
        gate.order(Order.ARM)


def _own_last(patch: Patch) -> bool:
    """The recorder's own first: exceptions must find the way through the others' frames."""
    return bool(patch.hook)
