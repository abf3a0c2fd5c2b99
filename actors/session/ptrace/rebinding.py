"""A recorder that an earlier session left gets the pool of this one (agent/native/recorder_rebind.c)."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Final

from actors.session.ptrace.attempts import until_done
from actors.session.ptrace.call import CallFailed
from actors.session.ptrace.memory import Memory
from actors.session.ptrace.remote import Order, Remote
from actors.session.ptrace.world import NotStopped, StoppedWorld
from strobe.errors import Code, StrobeError

GIVE_UP_S: Final = 2.0  # a thread that seems to be in the middle of a record for so long has left it for good (longjmp out of a handler)


def bind_pool(pid: int, remote: int, recorder: tuple[int, int], pool: Path) -> None:
    """`remote`: address of strobe_remote; `recorder`: of its mappings. Errors: TIMEOUT, PROCESS_EXITED, FRIDA_ATTACH_FAILED."""
    text = os.fsencode(pool) + b"\0"
    began = time.monotonic()
    start, end = recorder

    def attempt() -> bool:
        with StoppedWorld(pid) as world:
            inside = next((one.tid for one in world.tracees.values() if start <= one.registers.rip < end), None)
            if inside is not None:
                raise NotStopped(f"thread {inside} is inside the recorder")
            asked = Remote(world, memory, remote)
            desk = asked.ask(Order.DESK, len(text))
            if not desk:
                raise StrobeError(Code.LIMIT_EXCEEDED, f"Process {pid} has no memory left.", "Attach once it has.", value=pid)
            memory.write(desk, text)
            refusal = _signed(asked.ask(Order.REBIND, desk, int(time.monotonic() - began > GIVE_UP_S)))
        if refusal == -errno.EAGAIN:
            raise NotStopped("a thread is inside the recorder")
        if refusal:
            what = f"The recorder in process {pid} cannot use {pool}: {os.strerror(-refusal)}."
            raise StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Start the process anew, then attach.", value=pid)
        return True

    with Memory(pid) as memory:
        try:
            until_done(pid, attempt)
        except CallFailed as failure:
            what = f"The recorder in process {pid} did not answer: {failure}."
            raise StrobeError(Code.FRIDA_ATTACH_FAILED, what, "Start the process anew, then attach.", value=pid) from None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
