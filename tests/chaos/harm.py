"""What is done to a process of the node, and how long until the node is whole again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strobe.errors import StrobeError
from strobe.supervisor.restarts import DEATHS_MAX, WINDOW_S
from tests.harness.load import pids

WAYS: Final = ("kill", "kill", "stop", "starve")  # kill twice as often
STOPS_S: Final = (0.2, 1.0, 7.0)  # shorter and longer than it takes until a process counts as hung
STARVED_S: Final = 2.0
WHOLE_S: Final = 60.0
WANTED: Final = ("supervisor", "store", "gateway", "indexer", "stuck_detector")


@dataclass
class Recovery:
    """Of one kill: seconds until a process of that name runs again and answers."""

    victim: str
    way: str
    seconds: float


@dataclass
class Harm:
    """`allowed`: when a role was killed last; what dies too often within the window rests, which is another test's subject."""

    home: Path
    dice: random.Random
    kills: dict[str, deque[float]] = field(default_factory=dict)

    async def one(self) -> Recovery:
        """Errors: AssertionError where the node is not whole again after WHOLE_S."""
        running = await self._pids()
        victim = self.dice.choice(sorted(name for name in running if "warm" not in name))
        way = self.dice.choice(WAYS)
        role = victim.partition(":")[0]
        killed = self.kills.setdefault(victim if role in ("session", "spawner") else role, deque(maxlen=DEATHS_MAX - 1))
        if way == "kill" and len(killed) == killed.maxlen and time.monotonic() - killed[0] < WINDOW_S + 1:
            way = "starve"
        pid = running[victim]
        began = time.monotonic()
        with suppress(ProcessLookupError):  # a session's processes end with it
            if way == "kill":
                killed.append(began)
                os.kill(pid, signal.SIGKILL)
            elif way == "stop":
                await self._stopped(pid, self.dice.choice(STOPS_S))
            else:
                until = time.monotonic() + STARVED_S
                while time.monotonic() < until:
                    await self._stopped(pid, 0.05)
                    await asyncio.sleep(0.05)
        if way != "kill":
            began = time.monotonic()
        await self._whole(victim, pid if way == "kill" else None)
        return Recovery(victim.partition(":")[0], way, time.monotonic() - began)

    async def _stopped(self, pid: int, seconds: float) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    async def _pids(self, *, ready: bool = False) -> dict[str, int]:
        deadline = time.monotonic() + WHOLE_S
        while True:
            try:
                return await pids(self.home, ready=ready)
            except StrobeError:
                assert time.monotonic() < deadline, f"no supervisor after {WHOLE_S} s"
                await asyncio.sleep(0.02)

    async def _whole(self, victim: str, killed: int | None) -> None:
        """All that every node has runs, the victim under another pid. A session whose target has ended meanwhile, and its spawner, may be gone."""
        deadline = time.monotonic() + WHOLE_S
        while True:
            running = await self._pids(ready=True)
            back = all(name in running for name in WANTED) and (killed is None or running.get(victim) != killed)
            if back and (killed is None or victim in running or victim not in WANTED):
                return
            assert time.monotonic() < deadline, f"{victim} is not back after {WHOLE_S} s: {running}"
            await asyncio.sleep(0.02)
