"""Visits of the Injector to real targets: hosts, a busy target, and whether every call of it was counted."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from actors.spawner.injector import Injector
from strobe.artifacts import artifact
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import HookSpec, Prepare, PrepareReply
from tests.harness.hooking import symbols
from tests.harness.recording import check_calls, read_recording
from tests.harness.targets import program

WAIT_S = 30.0


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


@asynccontextmanager
async def injector(*, recorder: Path | None = None, fallback_only: bool = False) -> AsyncIterator[Injector]:
    made = Injector(recorder or artifact("strobe-recorder.so"), artifact("agent.js"), fallback_only=fallback_only)
    try:
        await made.warm()
        yield made
    finally:
        await made.close()


async def prepare(host: Injector, pid: int, pool: Pool, hooks: list[HookSpec]) -> PrepareReply:
    return await host.prepare(Prepare(pid=pid, pool_path=str(pool.path), hooks=hooks))


class Busy:
    """tests/targets/busy.c, running: four threads call 2000 functions."""

    def __init__(self) -> None:
        self.path = program("busy.c", "-O2")
        self.process = subprocess.Popen([str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.line() == "ready 2000\n"
        self.names = sorted(name for name in symbols(self.path) if name.startswith("f_"))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        assert self.line() == f"done {command}\n", f"it died: {self.process.poll()}"

    def quit(self) -> None:
        out, _ = self.process.communicate("quit\n", timeout=WAIT_S)
        assert (out, self.process.returncode) == ("bye\n", 0)


@contextmanager
def busy() -> Iterator[Busy]:
    made = Busy()
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def assert_counted(pool: Pool, hooked: set[int], calls: int) -> None:
    """Every call of every hooked function is there as an enter and an exit, or counted as dropped."""
    recording = read_recording(pool.path)
    entries = recording.all
    assert not sum(recording.dropped_by_kind)
    for kind in (Kind.ENTER, Kind.EXIT):
        counts = np.bincount(entries["hook"][entries["kind"] == kind], minlength=len(pool.hooks))
        wrong = {hook: int(counts[hook]) for hook in hooked if counts[hook] != calls}
        assert not wrong, (kind, len(wrong), wrong)
    for thread in recording.threads.values():
        check_calls(thread)
