"""The Frida host: enters targets one at a time, has thunks prepared, and leaves. It writes no code into a target and holds no thread of it."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import frida
import frida.aio

from actors.spawner.apart import Apart
from actors.spawner.claim import Claim
from actors.spawner.fallback import NO_RECORDER, Fallback, attach_hooks, start_fallback
from actors.spawner.preparation import Loaded, Preparation, finish, prepare_apart, prepare_hooks
from actors.spawner.process import TargetProcess
from actors.spawner.quiet import QuietDevice
from actors.spawner.refusal import attach_failed, check_free, explain
from actors.spawner.visit import FRIDA_ERRORS, STEP_S, Visit, bounded
from strobe.errors import StrobeError
from strobe.protocol.spawner import Enter, Prepare, PrepareReply

ENTERED_S: Final = 20.0  # how long a target that was entered waits for its Prepare


@dataclass(eq=False, slots=True)
class Entered:
    """A visit with the recorder loaded, or with the reason why it is not."""

    visit: Visit
    recorder: Loaded | str


class Injector:
    """`recorder` and `bundle` are the built files. One visit at a time: the kernel knows Frida's ptrace work by the thread it is done in.

    `fallback_only`: as if the recorder could not be loaded anywhere.
    """

    def __init__(self, recorder: Path, bundle: Path, *, fallback_only: bool = False) -> None:
        self._recorder = recorder
        self._agent: bytes | str = bundle.read_text()
        self._fallback_only = fallback_only
        self._residents: dict[int, Fallback] = {}
        self._device: QuietDevice | None = None
        self._apart: Apart | None = None
        self._turn = asyncio.Lock()
        self._entered: Entered | None = None
        self._guard: asyncio.Task[None] | None = None

    async def warm(self) -> None:
        """Starts Frida's helper and compiles the agent, by a visit to a process of our own: the first target then waits for neither.

        Errors: FRIDA_ATTACH_FAILED."""
        async with self._turn:
            try:
                await self._beside()
            except FRIDA_ERRORS as error:
                raise attach_failed(os.getpid(), f"not even a process of its own ({error})", "See `strobe-ctl doctor`.") from error

    async def enter(self, ask: Enter) -> None:
        """See the protocol. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED."""
        target = TargetProcess(ask.pid)
        check_free(target)
        async with self._turn:
            try:
                self._entered = await self._come_in(target, ask.pool_path)
            except FRIDA_ERRORS as error:
                raise await explain(target, error) from error
            self._guard = asyncio.get_running_loop().create_task(self._give_up(self._entered))

    async def prepare(self, ask: Prepare) -> PrepareReply:
        """See the protocol. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED."""
        target = TargetProcess(ask.pid)
        async with self._turn:
            try:
                if ask.slabs:
                    return await prepare_apart(await self._beside(), ask, str(self._recorder))
                if entered := self._take_entered(ask.pid):
                    return await self._work(entered, ask)
                check_free(target)
                resident = self._residents.get(ask.pid)
                if resident is not None and resident.is_alive:
                    return await attach_hooks(resident, ask.hooks)
                return await self._work(await self._come_in(target, ask.pool_path), ask)
            except FRIDA_ERRORS as error:
                raise await explain(target, error) from error

    async def close(self) -> None:
        """Nothing of Frida's is left here: no thread, process, socket or file. Agents that record as a fallback go on in their targets."""
        async with self._turn:
            if self._entered is not None and (entered := self._take_entered(self._entered.visit.target.pid)):
                with suppress(StrobeError, *FRIDA_ERRORS):  # its target has ended
                    await entered.visit.leave()
            for resident in self._residents.values():
                with suppress(frida.InvalidOperationError):  # its target has ended
                    await resident.visit.eternalize()
            self._residents.clear()
            if self._apart is not None:
                await self._apart.close()
                self._apart = None
            if self._device is not None:
                await bounded(self._device.close(), STEP_S, "shutdown")
                self._device = None

    async def _local(self) -> frida.aio.Device:
        if self._device is None:
            self._device = await bounded(QuietDevice.open(), STEP_S, "start")
        return self._device.device

    async def _beside(self) -> Apart:
        """The process in which thunks are worked out; a new one where it has been ended."""
        if self._apart is not None and not self._apart.is_alive:
            await self._apart.close()
            self._apart = None
        if self._apart is None:
            self._apart = await Apart.begin(await self._local(), self._agent)
            self._agent = self._apart.agent
        return self._apart

    async def _come_in(self, target: TargetProcess, pool_path: str) -> Entered:
        device = await self._local()
        claim = await Claim.take(target.pid, pool_path)
        try:
            visit = await Visit.enter(device, target, self._agent, claim)
        except BaseException:
            if claim is not None:
                claim.release()
            raise
        try:
            return Entered(visit, await self._load(visit, pool_path))
        except NotLoaded as reason:
            return Entered(visit, str(reason))
        except BaseException:
            await visit.leave()
            raise

    def _take_entered(self, pid: int) -> Entered | None:
        """The visit that waits for the Prepare of `pid`; from here on it is the caller's to end."""
        entered = self._entered
        if entered is None or entered.visit.target.pid != pid:
            return None
        self._entered = None
        if self._guard is not None:
            self._guard.cancel()
        return entered

    async def _give_up(self, entered: Entered) -> None:
        """Nobody asked for more: who had it entered is gone."""
        await asyncio.sleep(ENTERED_S)
        async with self._turn:
            if self._entered is entered:
                self._entered = None
                with suppress(StrobeError, *FRIDA_ERRORS):  # its target has ended
                    await entered.visit.leave()

    async def _work(self, entered: Entered, ask: Prepare) -> PrepareReply:
        """By the recorder; else by the fallback, which stays; else a reply that says why neither can record. Ends the visit."""
        visit = entered.visit
        outcome: Preparation | Fallback | PrepareReply | None = None
        try:
            if isinstance(entered.recorder, str):
                outcome = await start_fallback(visit, ask, entered.recorder)
            else:
                outcome = await prepare_hooks(visit, entered.recorder, ask.hooks, str(self._recorder))
        finally:
            await (visit.stay() if isinstance(outcome, Fallback) else visit.leave())
        if isinstance(outcome, Preparation):
            return finish(visit.target.pid, outcome)
        if isinstance(outcome, Fallback):
            self._residents[visit.target.pid] = outcome
            return outcome.first
        assert outcome is not None  # else its exception has left here
        return outcome

    async def _load(self, visit: Visit, pool_path: str) -> Loaded:
        if self._fallback_only:
            raise NotLoaded(NO_RECORDER)
        try:
            row = await visit.call("load", str(self._recorder), pool_path)
        except frida.aio.RPCException as error:
            raise NotLoaded(str(error).splitlines()[0]) from error
        loaded = Loaded.from_agent(row)
        if loaded.status:
            raise NotLoaded(f"it cannot map {pool_path}: {os.strerror(-loaded.status)}")
        return loaded


class NotLoaded(Exception):
    """Why the recorder could not be loaded into a target."""
