"""The end of a visit: waiting until nothing of Frida's is left in the target, and handing a held target over.

Frida leaves in two steps. `detach` ends its threads; then its helper enters the main thread once more by ptrace and makes it unmap the
loader (frida-core, LinuxHelperBackend.deallocate_agent). A SIGSTOP sent before that second step is over is swallowed by it, and the
target runs away. So the mappings it brought are watched: once they are gone and the main thread is back at the address where it was
held, nothing of Frida's will touch it any more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Final

import frida.aio

from actors.spawner.process import TargetProcess, gone
from actors.spawner.refusal import attach_failed

LEAVE_S: Final = 2.0
HAND_OVER_S: Final = 2.0
POLL_S: Final = 0.0005


async def wait_until(condition: Callable[[], bool], bound_s: float) -> bool:
    deadline = time.monotonic() + bound_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def wait_left(target: TargetProcess, brought: frozenset[int]) -> bool:
    """True once the mappings that Frida brought are gone and nobody traces the target."""
    return await wait_until(lambda: not brought & target.injected_mappings() and target.tracer() == 0, LEAVE_S)


async def hand_over(device: frida.aio.Device, target: TargetProcess, brought: frozenset[int], held_at: int) -> None:
    """Leaves a target that Frida holds at `held_at` group-stopped there, traced by nobody. FRIDA_ATTACH_FAILED when that cannot be reached."""

    def settled() -> bool:
        return not brought & target.injected_mappings() and target.state() == "t" and target.program_counter() == held_at

    def stopped() -> bool:
        return target.state() == "T" and target.tracer() == 0

    if not await wait_until(settled, LEAVE_S):
        raise attach_failed(target.pid, "Frida did not leave it", "Launch it again.")
    try:
        os.kill(target.pid, signal.SIGSTOP)  # stays pending while Frida holds the thread, takes effect as it lets go
    except ProcessLookupError:
        raise gone(target.pid) from None
    async with asyncio.timeout(HAND_OVER_S):
        await device.resume(target.pid)
    if not await wait_until(stopped, HAND_OVER_S) or target.program_counter() != held_at:
        raise attach_failed(target.pid, f"it did not stay where it was held (state {target.state()})", "Launch it again.")
