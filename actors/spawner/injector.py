"""The Frida host: enters targets one at a time, has thunks prepared, and leaves. It writes no code into a target and holds no thread of it."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import frida
import frida.aio

from actors.spawner.fallback import NO_RECORDER, Fallback, attach_hooks, start_fallback
from actors.spawner.preparation import Loaded, Preparation, finish, prepare_hooks
from actors.spawner.process import TargetProcess
from actors.spawner.quiet import QuietDevice
from actors.spawner.refusal import check_free, explain
from actors.spawner.visit import FRIDA_ERRORS, QUIETLY, STEP_S, Visit, bounded
from strobe.protocol.spawner import Prepare, PrepareReply


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
        self._turn = asyncio.Lock()

    async def warm(self) -> None:
        """Starts Frida's helper and compiles the agent, by a visit to a process of our own: the first target then waits for neither."""
        async with self._turn:
            if isinstance(self._agent, bytes):
                return
            with _guinea_pig() as process:
                if not await asyncio.to_thread(_ready, process):
                    raise TimeoutError(f"{sys.executable} did not start in {STEP_S:g} s")
                session = await bounded((await self._local()).attach(process.pid, **QUIETLY), STEP_S * 3, "attach")
                self._agent = await bounded(session.compile_script(str(self._agent), name="strobe", runtime="qjs"), STEP_S, "compile")
                await bounded(session.detach(), STEP_S, "detach")

    async def prepare(self, ask: Prepare) -> PrepareReply:
        """See the protocol. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED."""
        target = TargetProcess(ask.pid)
        check_free(target)
        async with self._turn:
            try:
                resident = self._residents.get(ask.pid)
                if resident is not None and resident.is_alive:
                    return await attach_hooks(resident, ask.hooks)
                return await self._visit(target, ask)
            except FRIDA_ERRORS as error:
                raise await explain(target, error) from error

    async def close(self) -> None:
        """Nothing of Frida's is left here: no thread, process, socket or file. Agents that record as a fallback go on in their targets."""
        async with self._turn:
            for resident in self._residents.values():
                with suppress(frida.InvalidOperationError):  # its target has ended
                    await resident.visit.eternalize()
            self._residents.clear()
            if self._device is not None:
                await bounded(self._device.close(), STEP_S, "shutdown")
                self._device = None

    async def _local(self) -> frida.aio.Device:
        if self._device is None:
            self._device = await bounded(QuietDevice.open(), STEP_S, "start")
        return self._device.device

    async def _visit(self, target: TargetProcess, ask: Prepare) -> PrepareReply:
        visit = await Visit.enter(await self._local(), target, self._agent)
        stays = False
        try:
            outcome = await self._work(visit, ask)
            stays = isinstance(outcome, Fallback)
        finally:
            await (visit.stay() if stays else visit.leave())
        if isinstance(outcome, Preparation):
            return finish(target.pid, outcome)
        if isinstance(outcome, Fallback):
            self._residents[target.pid] = outcome
            return outcome.first
        return outcome

    async def _work(self, visit: Visit, ask: Prepare) -> Preparation | Fallback | PrepareReply:
        """By the recorder; else by the fallback; else a reply that says why neither can record."""
        try:
            if self._fallback_only:
                raise NotLoaded(NO_RECORDER)
            loaded = await self._load(visit, ask.pool_path)
        except NotLoaded as reason:
            return await start_fallback(visit, ask, str(reason))
        return await prepare_hooks(visit, loaded, ask.hooks, str(self._recorder))

    async def _load(self, visit: Visit, pool_path: str) -> Loaded:
        try:
            row = await visit.call("load", str(self._recorder), pool_path)
        except frida.aio.RPCException as error:
            raise NotLoaded(str(error).splitlines()[0]) from error
        loaded = Loaded.from_agent(row)
        if loaded.status:
            raise NotLoaded(f"it cannot map {pool_path}: {os.strerror(-loaded.status)}")
        return loaded


@contextmanager
def _guinea_pig() -> Iterator[subprocess.Popen[bytes]]:
    """A process to attach to that is not the user's; it ends with us, whatever happens: its standard input does."""
    command = [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _ready(process: subprocess.Popen[bytes]) -> bool:
    """It has said so: attaching to a process that is still being loaded may kill it."""
    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], STEP_S)[0]) and bool(process.stdout.read(1))


class NotLoaded(Exception):
    """Why the recorder could not be loaded into a target."""
