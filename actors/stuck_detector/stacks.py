"""Stacks of threads with function names and source lines: registers and stack bytes here, frames by the indexer; of Python by py-spy where it is."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from actors.stuck_detector.look import Seen, see, seen_at
from actors.stuck_detector.sample import Thread
from strobe.errors import StrobeError
from strobe.model.probe import Frame, Module
from strobe.model.stuck import ThreadStack
from strobe.modules import mapped_modules
from strobe.protocol.base import Ask
from strobe.protocol.indexer import FramesReply, Symbolise, Unwind
from strobe.ptrace import run_as_tracer

Asker = Callable[..., Awaitable[Any]]
THREADS_MAX: Final = 24
UNWIND_S: Final = 4.0  # a library that is met for the first time has to be indexed; later it takes some ms
PY_SPY_S: Final = 3.0


class Stacks:
    """Of the threads that matter, the first ones first. `of` fills the rest."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask
        self.stacks: list[ThreadStack] = []
        self.notes: list[str] = []
        self.modules: dict[int, list[Module]] = {}
        self.seen: dict[int, Seen] = {}
        self._culprits: dict[int, int] = {}  # tid → which of its frames a reader looks at first

    async def of(self, threads: Sequence[Thread], runtimes: dict[int, str]) -> None:
        taken = list(threads)[:THREADS_MAX]
        if len(threads) > len(taken):
            self.notes.append(f"Stacks of {len(taken)} of {len(threads)} threads.")
        for pid in {thread.pid for thread in taken}:
            try:
                self.modules[pid] = await asyncio.to_thread(mapped_modules, pid)
            except (StrobeError, OSError) as error:
                self.notes.append(f"Process {pid}: its files could not be read ({error}).")
        await asyncio.to_thread(self._see, taken)
        self.stacks = list(await asyncio.gather(*(self._unwound(thread) for thread in taken)))
        for pid in {thread.pid for thread in taken if runtimes.get(thread.pid) == "python"}:
            await self._python(pid)

    def _see(self, threads: Sequence[Thread]) -> None:
        for thread in threads:
            try:
                self.seen[thread.tid] = run_as_tracer(lambda thread=thread: see(thread.pid, thread.tid))  # type: ignore[misc]
            except (OSError, TimeoutError):
                if thread.pc:
                    self.seen[thread.tid] = seen_at(thread.pid, dict.fromkeys(range(17), 0) | {7: thread.sp, 16: thread.pc})

    async def _unwound(self, thread: Thread) -> ThreadStack:
        frames: list[Frame] = []
        note = None
        seen = self.seen.get(thread.tid)
        if seen is None or thread.pid not in self.modules:
            note = "it could not be looked at"
        else:
            ask = Unwind(modules=self.modules[thread.pid], regs=seen.regs, stack_base=seen.regs[7], stack=seen.stack, limit=40)
            try:
                reply: FramesReply = await self._ask("indexer", ask, deadline_s=UNWIND_S)
                frames = [frame.model_copy(update={"locals": None}) for frame in reply.frames]
                if reply.culprit is not None:
                    self._culprits[thread.tid] = reply.culprit
            except StrobeError as error:
                note = f"{error.what}"
        return ThreadStack(pid=thread.pid, tid=thread.tid, name=thread.name, state=thread.state, frames=frames, note=note)

    async def _python(self, pid: int) -> None:
        """Frames of the interpreter go first: they are what its user wrote."""
        spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
        if spy is None:
            self.notes.append(f"Process {pid} is Python; with py-spy installed its own frames would be told.")
            return
        try:
            command = [spy, "dump", "--json", "--nonblocking", "--pid", str(pid)]
            run = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=PY_SPY_S, stdin=subprocess.DEVNULL, check=True)
            found = {one["os_thread_id"]: one["frames"] for one in json.loads(run.stdout)}
        except (subprocess.SubprocessError, ValueError, KeyError) as error:
            self.notes.append(f"py-spy could not read process {pid}: {type(error).__name__}.")
            return
        for index, stack in enumerate(self.stacks):
            if stack.pid == pid and stack.tid in found:
                own = [Frame(address=0, function=one["name"], module=None, file=one["filename"], line=one["line"]) for one in found[stack.tid]]
                if own:
                    self._culprits[stack.tid] = next((at for at, frame in enumerate(own) if "/lib/python" not in (frame.file or "")), 0)
                self.stacks[index] = stack.model_copy(update={"frames": own or stack.frames, "note": None if own else stack.note})

    def places(self) -> dict[int, tuple[str, str]]:
        """tid → (`transfer, bank.c:41`, `transfer`) of the innermost frame of the program's own."""
        found = {}
        for stack in self.stacks:
            own = stack.frames[self._culprits[stack.tid]] if stack.tid in self._culprits else None
            if own is not None and own.function:
                found[stack.tid] = (place_of(own), own.function)
        return found

    async def place_pcs(self, pids: dict[int, int], pcs: dict[int, int]) -> dict[int, tuple[str, str]]:
        """The same, of threads that compute: by where they were."""
        found = {}
        for tid, pc in pcs.items():
            pid = pids[tid]
            try:
                modules = self.modules[pid] if pid in self.modules else await asyncio.to_thread(mapped_modules, pid)
                ask: Ask = Symbolise(modules=modules, addresses=[pc])
                where: FramesReply = await self._ask("indexer", ask, deadline_s=UNWIND_S)
            except (StrobeError, OSError):
                continue
            if where.frames and where.frames[0].function:
                found[tid] = (place_of(where.frames[0]), where.frames[0].function)
        return found


def place_of(frame: Frame) -> str:
    file = f", {Path(frame.file).name}:{frame.line}" if frame.file and frame.line else ""
    return f"{frame.function}{file}"
