"""Making what is installed match what is wanted: resolve, plan, prepare, patch; remove is the same difference the other way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from actors.session.arming import Arming
from actors.session.libraries import Libraries
from actors.session.probes import Installed
from actors.session.ptrace import patching
from actors.session.ptrace.code_map import CodeMap
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import NewPlan
from actors.session.ptrace.reserving import reserve
from actors.session.resolving import Resolving
from actors.session.target import Asker, Target
from actors.session.typing_up import FIRST_MS, TypingUp
from actors.session.watching import Watching
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import HookFlag
from strobe.model.probe import Hook, Module, Place, Plan, Refused
from strobe.model.watch import Watch
from strobe.modules import Mapped, maps_text, parse_mapped
from strobe.protocol.spawner import Enter, HookSpec, Patch, Prepare, PrepareReply

PREPARE_S = 30.0
LOADED_MS = 200  # for plans of functions in a library that a thread has just loaded, and waits
# Functions that return twice, or save or inspect the address they return to: their calls are recorded, their exits can't be.
NO_EXIT = frozenset({
    "setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "__vfork", "__libc_vfork", "getcontext", "__getcontext", "swapcontext",
    "dlopen", "dlmopen", "dlsym", "dlvsym", "dlclose", "__tls_get_addr", "longjmp", "_longjmp", "siglongjmp", "__libc_longjmp", "__libc_siglongjmp",
})  # fmt: skip


class Follower(Protocol):
    """actors.session.children.following.Following, which needs this file."""

    def begin(self) -> None: ...
    def end(self) -> None: ...
    def is_busy(self) -> bool: ...
    def take_in(self, pid: int) -> None: ...
    def changed(self, removed: Sequence[str] | None) -> None: ...
    def leave(self) -> None: ...
    async def spread(self) -> list[str]: ...
    def told(self) -> list[str]: ...
    def shown(self) -> list[dict[str, Any]]: ...


@dataclass
class Outcome:
    """What one change did."""

    matched: int
    warnings: list[str]


class Tracing:
    """One change at a time; the lock also keeps a stop from crossing a change."""

    def __init__(self, actor: Asker, target: Target) -> None:
        self.actor = actor
        self.target = target
        self.lock = asyncio.Lock()
        self.watching = Watching(actor, target)
        self.typing = TypingUp(actor, target, self.lock, self.watching)
        self.resolving = Resolving(actor, target)
        self.libraries = Libraries(target.journal)
        self.arming = Arming(target, self.lock, self._look)
        self.follower: Follower | None = None
        self._bases: dict[int, Plan] = {}

    async def new_hooks(self, wanted: dict[int, Place], modules: Iterable[Module], budget_ms: int = FIRST_MS) -> list[Hook]:
        """Ids and capture plans for places by runtime address, announced to the store before any record can use them."""
        if not wanted:
            return []
        addresses, places = list(wanted), list(wanted.values())
        reply = await self.typing.plans(places, budget_ms)
        self.target.collector.announce_modules({module.path: module.bias for module in modules})
        plans = [self.watching.plan_for(plan, address) for plan, address in zip(reply.plans, addresses, strict=True)]
        hooks = self.target.journal.probes.new_hooks(places, addresses, plans)
        self._bases = {hook.id: base for hook, base in zip(hooks, reply.plans, strict=True) if hook.plan is not base}
        self.target.journal.save(self.target.folder)
        self.target.collector.announce_hooks(hooks)
        self.typing.note(hooks, complete=reply.complete)
        return hooks

    async def enter(self) -> None:
        """The beginning of a launched target's visit: attached, at its entry point, the recorder loaded."""
        ask = Enter(pid=self.target.pid, pool_path=str(self.target.pool.path))
        await self.actor.ask(f"spawner:{self.target.session_id}", ask, deadline_s=PREPARE_S)

    async def prepare(self, hooks: list[Hook]) -> PrepareReply:
        """Thunks for `hooks`: by a visit of Frida's, or apart where the recorder is in the target. What is refused is remembered and not tried again."""
        target = self.target
        ask = Prepare(pid=target.pid, pool_path=str(target.pool.path), hooks=[_spec(hook) for hook in hooks])
        if target.journal.remote is not None and target.journal.internals:
            ask = await self._reserved(ask, target.journal.remote)
        reply: PrepareReply = await self.actor.ask(f"spawner:{target.session_id}", ask, deadline_s=PREPARE_S)
        by_id = {hook.id: hook for hook in hooks}
        for refused, hook_id in zip(reply.refused, reply.refused_ids, strict=True):
            if hook_id in by_id:
                target.journal.probes.refused[by_id[hook_id].address] = refused
        patches = {patch.hook: patch for patch in reply.patches if patch.hook}
        for hook in hooks:
            if hook.id not in reply.refused_ids:
                target.journal.probes.installed[hook.address] = Installed(hook, patches.get(hook.id), base=self._bases.get(hook.id))
                target.set_hook(hook.id, flags_of(hook))
        target.journal.recorder = reply.recorder
        target.journal.remote = reply.remote_address if reply.remote_address is not None else target.journal.remote
        target.journal.internals = reply.internals
        target.journal.sees_loading |= reply.sees_loading
        target.journal.internal += [patch for patch in reply.patches if not patch.hook]
        target.journal.save(target.folder)
        return reply

    async def _reserved(self, ask: Prepare, remote: int) -> Prepare:
        """With memory and hooks from the recorder, so that nobody needs to enter the target."""
        plans = [NewPlan(spec.id, spec.address, 0, spec.plan) for spec in ask.hooks]
        slabs, words = await asyncio.to_thread(reserve, self.target.pid, remote, plans)
        hooks = [spec.model_copy(update={"hook": hook, "entry": entry}) for spec, (hook, entry) in zip(ask.hooks, words, strict=True)]
        return ask.model_copy(update={"hooks": hooks, "slabs": slabs, "internals": self.target.journal.internals})

    def settle(self, outcome: patching.Outcome) -> None:
        """Patches that were not written (the bytes there were not the file's) are refusals, told like the others."""
        probes = self.target.journal.probes
        for patch in outcome.skipped:
            item = next((item for item in probes.installed.values() if item.patch == patch), None)
            if item is not None:
                del probes.installed[item.hook.address]
                place = item.hook.place
                probes.refused[item.hook.address] = Refused(function=place.function, module=place.module, reason="its first bytes are not those of the file")
            elif patch in self.target.journal.internal:
                self.target.journal.internal.remove(patch)

    async def change(self, add: list[str], remove: list[str], add_watches: Sequence[Watch] = (), remove_watches: Sequence[str] = ()) -> Outcome:
        """One difference to the sets of patterns and watches, in the running target."""
        async with self.lock:
            target = self.target
            pid = target.require_running()
            if not target.injected:
                raise StrobeError(Code.NO_DEBUG_SYMBOLS, " ".join(target.capabilities.limitations), "Use its output, or trace another build of it.")
            patterns = target.journal.probes.changed_patterns(add, remove)
            text = maps_text(pid)
            mapped = parse_mapped(text)
            modules = [one.module for one in mapped]
            fresh = self._new_libraries(mapped, came_back=True)
            wanted, warnings = await self.resolving.resolve(patterns, modules)
            watches = self.watching.changed(add_watches, remove_watches)
            warnings += await self.watch(watches, add_watches, modules)
            target.journal.probes.patterns = patterns
            if self.follower is not None and remove:
                self.follower.changed(remove)
            await self._apply(wanted, fresh, CodeMap.parse(text))
            self.arming.settle()
            if add_watches or remove_watches:
                await self._rewatch(add_watches)
        self.typing.begin()
        followed = [*(await self.follower.spread() if add else []), *self.follower.told()] if self.follower is not None else []
        return Outcome(matched=len(wanted), warnings=[*warnings, *self.arming.told(), *followed])

    async def set_depth(self, depth: int) -> None:
        """What is traced already is captured so deep from now on. What can't be planned at once follows in the background."""
        target = self.target
        if depth == target.journal.depth:
            return
        target.require_running()
        target.journal.depth = depth
        if self.follower is not None:
            self.follower.changed(None)
        self.typing.wanting |= {address for address, item in target.journal.probes.installed.items() if item.patch is not None and item.hook.plan.typed}
        await self.typing.retype(FIRST_MS)
        self.typing.begin()

    async def watch(self, watches: list[Watch], added: Sequence[Watch], modules: list[Module]) -> list[str]:
        """These are the watches from now on, as far as plans are concerned that are made later. Answers warnings. Errors: WATCH_FAILED."""
        await self.watching.restore(modules)
        self.watching.put(watches, await self.watching.resolve(added, modules))
        warnings: list[str] = []
        for watch in self.watching.watches:
            if watch.on:
                places, told = await self.resolving.resolve(watch.on, modules)
                self.watching.on[watch.label] = set(places)
                warnings += [f"watch {watch.label}: {text}" for text in told]
        return warnings

    async def _rewatch(self, added: Sequence[Watch]) -> None:
        """Errors: WATCH_FAILED for one that can be read nowhere; it is taken off again."""
        await self.typing.rewatch()
        try:
            self.watching.refuse_unreadable(added)
        except StrobeError:
            labels = {watch.label for watch in added}
            self.watching.put([watch for watch in self.watching.watches if watch.label not in labels], {})
            await self.typing.rewatch()
            raise

    async def _look(self, came_back: bool) -> None:
        """Libraries that came are traced as the patterns want it. The caller holds the lock."""
        target = self.target
        if target.journal.stopped or not target.keeper.target_alive():
            return
        text = maps_text(target.pid)
        fresh = self._new_libraries(parse_mapped(text), came_back=came_back)
        if not fresh:
            return
        wanted = await self.resolving.in_new(target.journal.probes.patterns, fresh)
        for watch in self.watching.watches:
            if watch.on:
                self.watching.on.setdefault(watch.label, set()).update(await self.resolving.in_new(watch.on, fresh))
        await self._apply(wanted, fresh, CodeMap.parse(text), also=True)
        self.typing.begin()

    def _new_libraries(self, mapped: Sequence[Mapped], *, came_back: bool) -> list[Mapped]:
        with Memory(self.target.pid) as memory:

            def is_there(patch: Patch) -> bool:
                return memory.read_some(patch.address, len(patch.data)) == patch.data

            return self.libraries.look(mapped, is_there if came_back else None)

    async def _apply(self, wanted: dict[int, Place], fresh: Sequence[Mapped], code: CodeMap, *, also: bool = False) -> None:
        """`also`: besides what is traced already; without it nothing else is."""
        target = self.target
        asleep, patches = self.libraries.wake(fresh, wanted)
        difference = target.journal.probes.difference(wanted)
        for item in [] if also else difference.disable:
            item.enabled = False
            target.set_hooks(item, HookFlag(0))
        for item in [*difference.enable, *asleep]:
            item.enabled = True
            target.set_hooks(item, flags_of(item.hook))
        hooks = await self.new_hooks(difference.install, self.libraries.known.values(), LOADED_MS if also else FIRST_MS)
        patches += [item.patch for item in asleep if item.patch is not None]
        reply = await self.prepare(hooks) if hooks else None
        if patches or reply is not None:
            writes, made = (reply.writes, reply.patches) if reply is not None else ([], [])
            self.settle(await asyncio.to_thread(patching.install, target.pid, writes, patches + made, code))
        elif also:
            return  # a thread waits, and there is nothing to remember
        if not target.journal.probes.active:
            await self.restore_functions()
        target.journal.save(target.folder)

    async def restore_functions(self) -> None:
        """Puts the functions' own bytes back, in children too. Their hooks are forgotten: wanted again, they get new ids."""
        if self.follower is not None:
            await asyncio.to_thread(self.follower.leave)
        probes = self.target.journal.probes
        patches = [item.patch for item in probes.installed.values() if item.patch]
        if patches and self.target.keeper.target_alive():
            await asyncio.to_thread(patching.restore, self.target.pid, patches)
        probes.installed = {address: item for address, item in probes.installed.items() if not item.patch}
        self.target.journal.save(self.target.folder)


def _spec(hook: Hook) -> HookSpec:
    place = hook.place
    return HookSpec(id=hook.id, address=hook.address, size=place.size, function=place.function, module=place.module, plan=hook.plan.ops)


def flags_of(hook: Hook) -> HookFlag:
    name = hook.place.function_raw.split("@", 1)[0]
    if name in NO_EXIT or name.startswith("_Unwind_"):
        return HookFlag.ENABLED
    return HookFlag.ENABLED | HookFlag.WANT_EXIT
