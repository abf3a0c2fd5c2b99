"""Trying until a target could be held in a state that allows a change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from actors.session.ptrace.world import NotStopped
from strobe.errors import Code, StrobeError
from strobe.ptrace import run_as_tracer

RETRY_S: Final = 5.0
PAUSE_S: Final = 0.002
PAUSE_S_MAX: Final = 0.050


def until_done(pid: int, attempt: Callable[[], bool]) -> None:
    """Calls `attempt`, as a tracer, until it answers True. It raises NotStopped when another try may help. Errors: TIMEOUT, and what it raises."""
    deadline = time.monotonic() + RETRY_S
    pause_s = PAUSE_S
    while True:
        try:
            if run_as_tracer(attempt):
                return
        except (NotStopped, ProcessLookupError) as reason:
            if time.monotonic() > deadline:
                what = f"Process {pid} could not be stopped for a change: {reason}."
                raise StrobeError(Code.TIMEOUT, what, "Try again once the thread has come out of its uninterruptible wait (vfork, disk).", value=pid) from None
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_S_MAX)
