"""Leaving a process that has nothing to do: no thread of Frida's may be overtaken by the unmapping of its code."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.session.ptrace.threads import tracer_of
from actors.spawner.apart import COMMAND, _end, _wait_loaded
from actors.spawner.leave import wait_left
from actors.spawner.process import TargetProcess
from actors.spawner.quiet import QuietDevice
from actors.spawner.unloading import Unloading, find_loader
from actors.spawner.visit import Presence


@contextmanager
def busy_processors() -> Iterator[None]:
    """Twice as many busy processes as processors."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 2))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.communicate()


async def visit(device: QuietDevice, *, look: bool = False) -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    await asyncio.to_thread(_wait_loaded, process)
    try:
        target = TargetProcess(process.pid)
        presence = await Presence.begin(device.device, target)
        if look:
            loader = find_loader(target, presence.own, presence.brought)
            assert loader is not None
            assert loader in target.threads() - presence.own
            unloading = Unloading.begin(target, presence.own, presence.brought)
            assert unloading is not None and Path(f"/proc/self/task/{tracer_of(target.pid, loader)}").exists()
            await presence.session.detach()
            await asyncio.to_thread(unloading.join)
            assert await wait_left(target, presence.brought)
        else:
            await presence.end()
        assert target.threads() == presence.own == {target.pid}
        out, _ = process.communicate(b"\n", timeout=30)
        assert (out, process.returncode) == (b"", 0)
    finally:
        _end(process)


def test_the_loaders_thread_is_traced_until_it_is_the_last() -> None:
    async def work() -> None:
        device = await QuietDevice.open()
        try:
            await visit(device, look=True)
        finally:
            await device.close()

    asyncio.run(work())


@pytest.mark.alone
@pytest.mark.full
def test_a_hundred_visits_on_a_busy_machine() -> None:
    async def work() -> None:
        device = await QuietDevice.open()
        try:
            for _ in range(100):
                await visit(device)
        finally:
            await device.close()

    with busy_processors():
        asyncio.run(asyncio.wait_for(work(), 500))
