"""One visit to a target at a time, whoever makes it: a host may still be leaving it while the next one, of an actor that took over, wants in."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from typing import Final

from actors.spawner.refusal import attach_failed

WAIT_S: Final = 12.0  # a visit in hand ends in less
POLL_S: Final = 0.01


class Claim:
    """An flock on the target's pool: the kernel lets it go with its holder."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    async def take(cls, pid: int, pool_path: str) -> Claim | None:
        """None where the pool is gone: the recorder will say so. Errors: FRIDA_ATTACH_FAILED."""
        try:
            descriptor = os.open(pool_path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        claim = cls(descriptor)
        deadline = time.monotonic() + WAIT_S
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return claim
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise attach_failed(pid, f"another process of Strobe's has been in it for {WAIT_S:g} s", "Try again.") from None
                await asyncio.sleep(POLL_S)
        except BaseException:
            claim.release()
            raise

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
