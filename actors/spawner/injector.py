"""The Frida host: enters targets one at a time, has thunks prepared, and leaves. It writes no code into a target and holds no thread of it."""

from __future__ import annotations

import asyncio
import bisect
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import frida
import frida.aio

from actors.spawner.items import ALREADY, Wanted, pack, unpack
from actors.spawner.process import Mapping, TargetProcess
from actors.spawner.refusal import check_free, explain
from actors.spawner.symbols import Internal, find_internals
from actors.spawner.visit import FRIDA_ERRORS, PREPARE_S, STEP_S, Visit, bounded
from strobe.model.probe import Refused
from strobe.protocol.spawner import HookSpec, Prepare, PrepareReply

NOT_CODE: Final = "its address is not in executable memory"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the agent says about the recorder it loaded. `status`: 0, or -errno of mapping the pool."""

    status: int
    internals: list[Internal]
    arm: int


class Injector:
    """`recorder` and `bundle` are the built files. One visit at a time: Frida's helper is one process wide thing."""

    def __init__(self, recorder: Path, bundle: Path) -> None:
        self._recorder = recorder
        self._agent: bytes | str = bundle.read_text()
        self._device: frida.aio.Device | None = None
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
            self._device = await bounded(frida.aio.get_local_device(), STEP_S, "start")
        return self._device

    async def _visit(self, target: TargetProcess, ask: Prepare) -> PrepareReply:
        visit = await Visit.enter(await self._local(), target, self._agent, held=ask.held)
        try:
            return await self._work(visit, ask)
        finally:
            await visit.leave()

    async def _work(self, visit: Visit, ask: Prepare) -> PrepareReply:
        row = await visit.call("load", str(self._recorder), ask.pool_path)
        loaded = Loaded(row["status"], [Internal.from_agent(item) for item in row["internals"]], int(row["arm"], 16))
        mappings = visit.target.mappings()
        wanted, misplaced = select(ask.hooks, mappings)
        wanted += find_internals(loaded.internals, mappings, str(self._recorder))
        wanted.sort(key=lambda one: one.address)
        meta, block = await visit.call("prepare", len(wanted), pack(wanted), bound_s=PREPARE_S)
        prepared = unpack(wanted, meta, block)
        refused = [(one.hook, why) for one, _, why in prepared.refused if one.hook is not None] + [(hook, NOT_CODE) for hook in misplaced]
        return PrepareReply(
            writes=prepared.writes,
            patches=prepared.patches,
            refused=[Refused(function=hook.function, module=hook.module, reason=why) for hook, why in refused],
            refused_ids=[hook.id for hook, _ in refused],
            recorder="native",
            arm_address=loaded.arm,
            detail=unseen(prepared.refused, loaded.internals),
        )


def select(hooks: Sequence[HookSpec], mappings: Sequence[Mapping]) -> tuple[list[Wanted], list[HookSpec]]:
    """Hooks whose whole function lies in executable memory, and the others: the agent reads what it is given."""
    starts = [mapping.start for mapping in mappings]
    good: list[Wanted] = []
    bad: list[HookSpec] = []
    for hook in hooks:
        at = bisect.bisect_right(starts, hook.address) - 1
        if at >= 0 and "x" in mappings[at].permissions and hook.address < mappings[at].end:
            good.append(Wanted(hook.address, min(hook.size, mappings[at].end - hook.address), hook))
        else:
            bad.append(hook)
    return good, bad


def unseen(refused: Sequence[tuple[Wanted, int, str]], internals: Sequence[Internal]) -> str | None:
    """In words: which functions the recorder wanted to see and cannot. Those it sees since an earlier visit are no news."""
    missing = [f"{internals[one.internal - 1].symbol} ({why})" for one, reason, why in refused if one.internal and reason != ALREADY]
    return "not seen by the recorder: " + ", ".join(missing) if missing else None
