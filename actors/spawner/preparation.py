"""From hooks to writes and patches, by the agent in a target or apart from it. What could not be hooked comes back with its reason."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from actors.spawner.apart import Apart
from actors.spawner.items import ALREADY, FOREIGN, NO_HOOK, REASONS, Prepared, Wanted, pack, unpack
from actors.spawner.live_code import read_sources
from actors.spawner.process import TargetProcess, gone
from actors.spawner.sources import AddressSpace, hooked_already, is_as_expected
from actors.spawner.symbols import LOADING, find_internals
from actors.spawner.visit import PREPARE_S, Visit
from strobe.model.probe import Refused
from strobe.protocol.spawner import HookSpec, Internal, Patch, Prepare, PrepareReply

NOT_CODE: Final = "its address is not in executable memory"
NOT_CALLED: Final = "it is jumped to, not called, so there is no return address"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the agent says about the recorder it loaded. `status`: 0, or -errno of mapping the pool."""

    status: int
    internals: list[Internal]
    arm: int | None
    remote: int | None

    @classmethod
    def from_agent(cls, row: dict[str, Any]) -> Loaded:
        internals = [
            Internal(symbol=item["symbol"], every_module=item["everyModule"], hook=int(item["hook"], 16), entry=int(item["entry"], 16))
            for item in row["internals"]
        ]
        return cls(row["status"], internals, int(row["arm"], 16), int(row["remote"], 16))


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything the agent prepared, before Frida left; `misplaced` hooks were not shown to it."""

    loaded: Loaded
    prepared: Prepared
    misplaced: list[tuple[HookSpec, str]]


async def prepare_hooks(visit: Visit, loaded: Loaded, hooks: Sequence[HookSpec], recorder: str) -> Preparation:
    mappings = visit.target.mappings()
    space = AddressSpace(mappings)
    wanted, misplaced = select(hooks, space)
    own = find_internals(loaded.internals, mappings, recorder)
    wanted += [dataclasses.replace(one, source=space.file_bytes(one.address, one.size)) for one in own]
    prepared = await _ask_agent(visit, wanted)
    again = [dataclasses.replace(one, source=space.file_bytes(one.address, one.size)) for one, reason, _ in prepared.refused if reason == FOREIGN]
    again = [one for one in again if one.source]
    if again:
        prepared = _merge(prepared, await _ask_agent(visit, again), {one.address for one in again})
    return Preparation(loaded, prepared, misplaced)


async def prepare_apart(apart: Apart, ask: Prepare, recorder: str) -> PrepareReply:
    """For a target that has the recorder in it. Errors: PROCESS_EXITED, and those of the agent's process."""
    mappings = TargetProcess(ask.pid).mappings()
    space = AddressSpace(mappings)
    wanted, misplaced = select([hook for hook in ask.hooks if hook.hook], space)
    misplaced += [(hook, REASONS[NO_HOOK]) for hook in ask.hooks if not hook.hook]
    wanted, refused = read_sources(ask.pid, wanted + find_internals(ask.internals, mappings, recorder), space)
    wanted.sort(key=lambda one: one.address)
    meta, block = await apart.prepare(len(wanted), len(ask.slabs), pack(wanted, ask.slabs))
    prepared = unpack(wanted, meta, block)
    made = Prepared(prepared.writes, prepared.patches, prepared.refused + refused)
    return finish(ask.pid, Preparation(Loaded(0, ask.internals, None, None), made, misplaced))


def select(hooks: Sequence[HookSpec], space: AddressSpace) -> tuple[list[Wanted], list[tuple[HookSpec, str]]]:
    """Hooks whose function lies in executable memory, and the others with their reason: the agent reads what it is given."""
    good: list[Wanted] = []
    bad: list[tuple[HookSpec, str]] = []
    for hook in hooks:
        mapping = space.at(hook.address)
        if mapping is None or "x" not in mapping.permissions:
            bad.append((hook, NOT_CODE))
        elif hook.function.endswith((".cold", "[clone .cold]")) or hook.function == "_start":
            bad.append((hook, NOT_CALLED))
        else:
            good.append(Wanted(hook.address, min(hook.size, mapping.end - hook.address), hook))
    return good, bad


async def _ask_agent(visit: Visit, wanted: list[Wanted]) -> Prepared:
    wanted = sorted(wanted, key=lambda one: one.address)
    meta, block = await visit.call("prepare", len(wanted), pack(wanted), bound_s=PREPARE_S)
    return unpack(wanted, meta, block)


def _merge(first: Prepared, second: Prepared, again: set[int]) -> Prepared:
    kept = [row for row in first.refused if row[0].address not in again]
    return Prepared(first.writes + second.writes, first.patches + second.patches, kept + second.refused)


def finish(pid: int, preparation: Preparation) -> PrepareReply:
    """The reply, once Frida has left: what was prepared from a file must be what stands there now. Errors: PROCESS_EXITED."""
    patches, refused = _check(pid, preparation.prepared)
    failed = [(one.hook, why) for one, _, why in refused if one.hook is not None] + preparation.misplaced
    return PrepareReply(
        writes=preparation.prepared.writes,
        patches=patches,
        refused=[Refused(function=hook.function, module=hook.module, reason=why) for hook, why in failed],
        refused_ids=[hook.id for hook, _ in failed],
        recorder="native",
        arm_address=preparation.loaded.arm,
        remote_address=preparation.loaded.remote,
        internals=preparation.loaded.internals,
        sees_loading=any(one.internal is not None and one.internal.symbol == LOADING for one, _ in preparation.prepared.patches),
        detail=_unseen(refused),
    )


def _check(pid: int, prepared: Prepared) -> tuple[list[Patch], list[tuple[Wanted, int, str]]]:
    patches: list[Patch] = []
    refused = list(prepared.refused)
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise gone(pid) from None
    try:
        for one, patch in prepared.patches:
            if not one.source or is_as_expected(memory, patch):
                patches.append(patch)
            else:
                reason = ALREADY if hooked_already(memory, patch) else FOREIGN
                refused.append((one, reason, REASONS[reason]))
    finally:
        os.close(memory)
    return patches, refused


def _unseen(refused: Sequence[tuple[Wanted, int, str]]) -> str | None:
    """In words: which functions the recorder wanted to see and cannot. Those it sees since an earlier visit are no news."""
    missing = [f"{one.internal.symbol} ({why})" for one, reason, why in refused if one.internal and reason != ALREADY]
    return "not seen by the recorder: " + ", ".join(missing) if missing else None
