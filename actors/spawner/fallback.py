"""Recording where the recorder cannot be loaded: Frida's Interceptor in the target, for the target's life."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from actors.spawner.items import pack
from actors.spawner.preparation import select
from actors.spawner.sources import AddressSpace
from actors.spawner.visit import PREPARE_S, Visit
from strobe.model.probe import Refused
from strobe.protocol.spawner import HookSpec, Prepare, PrepareReply

NO_RECORDER: Final = "the fallback was asked for"
LIMITS: Final = "arguments in vector registers are not captured"
NO_EXITS: Final = "returns are not recorded, because exceptions could not pass through them"


@dataclass(slots=True)
class Fallback:
    """An agent that stays. `first`: the reply to the ask that brought it in; `detail`: what is less than usual, in words."""

    visit: Visit
    first: PrepareReply
    detail: str

    @property
    def is_alive(self) -> bool:
        return not self.visit.script.is_destroyed


async def start_fallback(visit: Visit, ask: Prepare, why: str) -> Fallback | PrepareReply:
    """Installs `ask.hooks`. A plain reply (`recorder` "none") when the pool cannot be mapped either: then nothing can be recorded."""
    detail = f"The recorder was not loaded: {why}."
    started = await visit.call("fallback", ask.pool_path)
    if started["status"]:
        return _reply("none", [], f"{detail} The pool {ask.pool_path} cannot be mapped: {os.strerror(-started['status'])}. Nothing is recorded.")
    limits = LIMITS if started["exits"] else f"{LIMITS}, {NO_EXITS}"
    resident = Fallback(visit, _reply("fallback", [], None), f"{detail} Frida's Interceptor records in its place; {limits}.")
    resident.first = await attach_hooks(resident, ask.hooks)
    return resident


async def attach_hooks(resident: Fallback, hooks: Sequence[HookSpec]) -> PrepareReply:
    """They are installed, and record, when this returns."""
    wanted, misplaced = select(hooks, AddressSpace(resident.visit.target.mappings()))
    failed = dict(await resident.visit.call("attach", len(wanted), pack(wanted), bound_s=PREPARE_S))
    refused = misplaced + [(one.hook, f"Frida: {failed[one.hook.id]}") for one in wanted if one.hook is not None and one.hook.id in failed]
    return _reply("fallback", refused, resident.detail)


def _reply(recorder: str, refused: Sequence[tuple[HookSpec, str]], detail: str | None) -> PrepareReply:
    return PrepareReply(
        writes=[],
        patches=[],
        refused=[Refused(function=hook.function, module=hook.module, reason=why) for hook, why in refused],
        refused_ids=[hook.id for hook, _ in refused],
        recorder=recorder,
        arm_address=None,
        detail=detail,
    )
