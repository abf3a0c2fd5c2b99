"""The Frida host: enters targets one at a time, has thunks prepared, and leaves. It writes no code into a target and holds no thread of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import frida.aio

from actors.spawner.preparation import Loaded, finish, prepare_hooks
from actors.spawner.process import TargetProcess
from actors.spawner.quiet import QuietDevice
from actors.spawner.refusal import check_free, explain
from actors.spawner.visit import FRIDA_ERRORS, STEP_S, Visit, bounded
from strobe.protocol.spawner import Prepare, PrepareReply


class Injector:
    """`recorder` and `bundle` are the built files. One visit at a time: Frida's helper is one process wide thing."""

    def __init__(self, recorder: Path, bundle: Path) -> None:
        self._recorder = recorder
        self._agent: bytes | str = bundle.read_text()
        self._device: QuietDevice | None = None
        self._turn = asyncio.Lock()

    async def warm(self) -> None:
        """Starts Frida's helper and compiles the agent, by a visit to a process of our own: the first target then waits for neither."""
        async with self._turn:
            if isinstance(self._agent, bytes):
                return
            command = [sys.executable, "-I", "-S", "-c", "input()"]
            guinea = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                session = await bounded((await self._local()).attach(guinea.pid), STEP_S * 3, "attach")
                self._agent = await bounded(session.compile_script(str(self._agent), name="strobe", runtime="qjs"), STEP_S, "compile")
                await bounded(session.detach(), STEP_S, "detach")
            finally:
                guinea.kill()
                guinea.wait()

    async def prepare(self, ask: Prepare) -> PrepareReply:
        """See the protocol. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED."""
        target = TargetProcess(ask.pid)
        check_free(target)
        async with self._turn:
            try:
                return await self._visit(target, ask)
            except FRIDA_ERRORS as error:
                raise explain(target, error) from error

    async def _local(self) -> frida.aio.Device:
        if self._device is None:
            self._device = await bounded(QuietDevice.open(), STEP_S, "start")
        return self._device.device

    async def close(self) -> None:
        """Nothing of Frida's is left: no thread, process, socket or file."""
        async with self._turn:
            if self._device is not None:
                await bounded(self._device.close(), STEP_S, "shutdown")
                self._device = None

    async def _visit(self, target: TargetProcess, ask: Prepare) -> PrepareReply:
        visit = await Visit.enter(await self._local(), target, self._agent, held=ask.held)
        try:
            loaded = Loaded.from_agent(await visit.call("load", str(self._recorder), ask.pool_path))
            preparation = await prepare_hooks(visit, loaded, ask.hooks, str(self._recorder))
        finally:
            await visit.leave()
        return finish(target.pid, preparation)
