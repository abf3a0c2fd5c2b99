"""One visit to a target: attach, run the agent, leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import frida
import frida.aio

from actors.spawner.claim import Claim
from actors.spawner.leave import hand_over, wait_left
from actors.spawner.process import TargetProcess
from actors.spawner.unloading import Unloading

ATTACH_S: Final = 15.0
STEP_S: Final = 5.0
PREPARE_S: Final = 20.0
FRIDA_ERRORS: Final = (
    frida.ProcessNotFoundError, frida.ProcessNotRespondingError, frida.PermissionDeniedError, frida.NotSupportedError, frida.InvalidArgumentError,
    frida.InvalidOperationError, frida.ProtocolError, frida.TransportError, frida.TimedOutError, frida.ServerNotRunningError, frida.OperationCancelledError,
    frida.aio.RPCException, TimeoutError,
)  # fmt: skip

# What Frida would hook for itself (signals, exit, thread suspension, the unwinder) it hooks while the target's threads run and takes away again
# on leaving. None of it is needed here. With all of it 3 of about 370 visits to a busy target killed it (the one looked into: a null listener
# called in Frida's agent); without, none of 240.
QUIETLY: Final[dict[str, Any]] = {"exceptor": "off", "exit_monitor": False, "thread_suspend_monitor": False, "unwind_broker": False}

T = TypeVar("T")


async def bounded(step: Awaitable[T], bound_s: float, name: str) -> T:
    """`step`, or a TimeoutError that names it. Cancelling reaches into Frida."""
    try:
        async with asyncio.timeout(bound_s):
            return await step
    except TimeoutError:
        raise TimeoutError(f"Frida's {name} took longer than {bound_s:g} s") from None


@dataclass(slots=True)
class Presence:
    """Frida in a target. `brought`: starts of the mappings that came with it; `own`: the threads that were there before;
    `held_at`: where it holds the main thread, None when that runs."""

    device: frida.aio.Device
    target: TargetProcess
    session: frida.aio.Session
    brought: frozenset[int]
    own: frozenset[int]
    held_at: int | None

    @classmethod
    async def begin(cls, device: frida.aio.Device, target: TargetProcess, bound_s: float = ATTACH_S) -> Presence:
        """A target stopped at exec is run up to its entry point and held there; any other that was stopped is held where it was."""
        before, own = target.injected_mappings(), target.threads()
        session = await bounded(device.attach(target.pid, **QUIETLY), bound_s, "attach")
        brought = target.injected_mappings() - before
        held_at = target.program_counter() if target.state() == "t" else None
        return cls(device, target, session, brought, own, held_at)

    async def end(self) -> None:
        """A target that was held stays stopped where it was, traced by nobody."""
        unloading = await asyncio.to_thread(Unloading.begin, self.target, self.own, self.brought)
        await bounded(self.session.detach(), STEP_S, "detach")
        if unloading is not None:
            await asyncio.to_thread(unloading.join)
        if self.held_at is None:
            await wait_left(self.target, self.brought)
        else:
            await hand_over(self.device, self.target, self.brought, self.held_at)


@dataclass(slots=True)
class Visit:
    """An agent in a target."""

    presence: Presence
    script: frida.aio.Script
    claim: Claim | None = None

    @classmethod
    async def enter(cls, device: frida.aio.Device, target: TargetProcess, agent: bytes | str, claim: Claim | None = None) -> Visit:
        """`agent` is the bundle, as text or compiled; `claim` is let go with the visit."""
        presence = await Presence.begin(device, target)
        try:
            script = await bounded(create_script(presence.session, agent), STEP_S, "script creation")
            await bounded(script.load(), STEP_S, "script load")
        except BaseException:
            await presence.end()
            raise
        return cls(presence, script, claim)

    @property
    def target(self) -> TargetProcess:
        return self.presence.target

    async def call(self, name: str, *arguments: Any, bound_s: float = STEP_S) -> Any:
        """An export of the agent's; its error is an RPCException with the agent's words."""
        return await bounded(getattr(self.script.exports, name)(*arguments), bound_s, name)

    async def stay(self) -> None:
        """The agent stays in the target; one that was held stays stopped where it was, traced by nobody."""
        presence = self.presence
        if presence.held_at is not None:
            await hand_over(presence.device, presence.target, frozenset(), presence.held_at)
            presence.held_at = None
        if self.claim is not None:
            self.claim.release()

    async def eternalize(self) -> None:
        """The agent stays although this process goes."""
        await bounded(self.script.eternalize(), STEP_S, "eternalize")

    async def leave(self) -> None:
        """The agent goes, and Frida with it."""
        try:
            await bounded(self.script.unload(), STEP_S, "unload")
        finally:
            try:
                await self.presence.end()
            finally:
                if self.claim is not None:
                    self.claim.release()


async def create_script(session: frida.aio.Session, agent: bytes | str) -> frida.aio.Script:
    if isinstance(agent, bytes):
        return await session.create_script_from_bytes(agent, runtime="qjs")
    return await session.create_script(agent, name="strobe", runtime="qjs")
