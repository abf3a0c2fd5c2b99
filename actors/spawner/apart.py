"""A process of our own with the agent in it, in which thunks for other processes are worked out."""

from __future__ import annotations

import asyncio
import select
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final

import frida.aio

from actors.spawner.process import TargetProcess
from actors.spawner.visit import FRIDA_ERRORS, PREPARE_S, STEP_S, Presence, Visit, bounded, create_script
from strobe.errors import StrobeError

# PR_SET_PDEATHSIG: were we killed while Frida is in it, it would go on with registers that are not its own, and perhaps never end.
COMMAND: Final = (sys.executable, "-I", "-S", "-c", "import ctypes; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); print(flush=True); input()")


class Apart:
    """It ends with us, whatever happens. One call at a time."""

    def __init__(self, process: subprocess.Popen[bytes], visit: Visit, agent: bytes) -> None:
        self._process = process
        self._visit = visit
        self.agent = agent  # compiled

    @classmethod
    async def begin(cls, device: frida.aio.Device, agent: bytes | str) -> Apart:
        """`agent` is the bundle, as text or compiled. Errors: Frida's, StrobeError."""
        process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # in a thread that lives as long
        try:
            await asyncio.to_thread(_wait_loaded, process)
            presence = await Presence.begin(device, TargetProcess(process.pid), STEP_S * 3)
            try:
                if isinstance(agent, str):
                    agent = await bounded(presence.session.compile_script(agent, name="strobe", runtime="qjs"), STEP_S, "compile")
                script = await bounded(create_script(presence.session, agent), STEP_S, "script creation")
                await bounded(script.load(), STEP_S, "script load")
            except BaseException:
                await presence.end()  # killed while Frida's helper is in it, it cannot be reaped for 5 s
                raise
        except BaseException:
            _end(process)
            raise
        return cls(process, Visit(presence, script), agent)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and not self._visit.script.is_destroyed

    async def prepare(self, count: int, given: int, data: bytes) -> tuple[dict[str, Any], bytes]:
        """The agent's answer to `pack(wanted, slabs)`."""
        meta, block = await self._visit.call("apart", count, given, data, bound_s=PREPARE_S)
        return meta, block

    async def close(self) -> None:
        with suppress(StrobeError, *FRIDA_ERRORS):  # somebody ended it
            await self._visit.leave()
        await asyncio.to_thread(_end, self._process)


def _wait_loaded(process: subprocess.Popen[bytes]) -> None:
    """Attaching to a process that is still being loaded may kill it."""
    assert process.stdout is not None
    if not (select.select([process.stdout], [], [], STEP_S)[0] and process.stdout.read(1)):
        raise TimeoutError(f"{sys.executable} did not start in {STEP_S:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
