"""`python -m tests.soak [--minutes 10 | --sessions 50] [--clients 4]`: exit status 0 when every session told what its own program did and nothing grew.

Each client launches programs one after the other, each with a text of its own on stdin; what Strobe tells of each is held against what the program must
have printed and called. Meanwhile memory, open files and disk of the node are looked at. The last line is the result as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import node, targets
from tests.harness.mcp import Strobe, strobe_mcp
from tests.soak.growth import Growth

TICKS, TICK_MS = 12, 10
PATTERNS = ["tick", "weight", "label"]


@dataclass
class Work:
    """One client's. `over`: the session in hand is the last."""

    strobe: Strobe
    name: str
    over: asyncio.Event
    sessions: int = 0
    launch_s: list[float] = field(default_factory=list)

    async def run(self, sessions: int | None) -> None:
        program = targets.program("ticks.c", "-O0", name=f"soak-{self.name}")
        ways = (self._to_the_end, self._traced_late, self._stopped_early, self._retained)
        while not self.over.is_set() and self.sessions != sessions:
            await ways[self.sessions % len(ways)](program, f"{self.name} says {self.sessions}")
            self.sessions += 1

    async def _launch(self, program: Path, *arguments: str, **more: Any) -> str:
        began = time.monotonic()
        session = await self.strobe.launch(program, *arguments, **more)
        self.launch_s.append(time.monotonic() - began)
        return session

    async def _to_the_end(self, program: Path, text: str) -> None:
        session = await self._launch(program, str(TICKS), str(TICK_MS), "7", trace=PATTERNS, stdin=text)
        status = await self.strobe.until_ended(session)
        assert status["exitCode"] == 7, status
        await self._is_its_own(session, text, TICKS)
        calls = await self.strobe.call("debug_query", sessionId=session, eventType="function_exit", limit=1)
        assert calls["totalCount"] + sum(calls.get("eventsDropped", {}).values()) == 3 * TICKS - 1, calls  # `label` is not called for the second
        await self.strobe.call("debug_session", action="stop", sessionId=session)

    async def _traced_late(self, program: Path, text: str) -> None:
        session = await self._launch(program, "400", str(TICK_MS), stdin=text)
        await self.strobe.call("debug_trace", sessionId=session, add=["tick"])

        async def seen() -> bool:
            found = await self.strobe.call("debug_query", sessionId=session, eventType="function_exit", function={"equals": "tick"}, limit=1)
            return bool(found["totalCount"])

        await node.until(seen, within_s=30)
        await self.strobe.call("debug_trace", sessionId=session, remove=["tick"])
        await self.strobe.call("debug_session", action="stop", sessionId=session, kill=True)

    async def _stopped_early(self, program: Path, text: str) -> None:
        session = await self._launch(program, "100000", str(TICK_MS), trace=PATTERNS, stdin=text)

        async def printed() -> bool:
            return f"in: {text}" in (await self.strobe.output(session))[0].decode()

        await node.until(printed, within_s=30)
        await self.strobe.call("debug_session", action="stop", sessionId=session, kill=True)

    async def _retained(self, program: Path, text: str) -> None:
        session = await self._launch(program, str(TICKS), str(TICK_MS), "crash", trace=PATTERNS, stdin=text)
        status = await self.strobe.until_ended(session)
        assert status["status"] == "crashed", status
        await self.strobe.call("debug_session", action="stop", sessionId=session, retain=True)
        await self._is_its_own(session, text, TICKS)
        await self.strobe.call("debug_session", action="delete", sessionId=session)

    async def _is_its_own(self, session: str, text: str, ticks: int) -> None:
        stdout = (await self.strobe.output(session))[0].decode()
        lines = stdout.splitlines()
        assert lines[0].startswith(f"in: {text}"), f"{session} has another's output: {stdout[:200]!r}, not {text!r}"
        assert stdout.count("tick ") == ticks, f"{session}: {stdout!r}"


async def soak(home: Path, clients: int, minutes: float | None, sessions: int | None, growth: Growth) -> list[Work]:
    """Errors: AssertionError for what is not as it should be."""
    over, works = asyncio.Event(), list[Work]()

    async def client(number: int) -> None:
        async with strobe_mcp(home, keep_node=True) as strobe:
            works.append(work := Work(strobe, f"client-{number}", over))
            await work.run(sessions)

    async def watched() -> None:
        while True:
            await growth.look()
            await asyncio.sleep(1)

    watcher = asyncio.create_task(watched())
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(client(number))
            if minutes is not None:
                await asyncio.sleep(minutes * 60)
                over.set()
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    return works


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--sessions", type=int, help="of each client; instead of --minutes")
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    minutes = options.minutes if options.sessions else options.minutes or 10.0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strobe-soak-") as folder:
        home = Path(folder) / "home"
        growth = Growth(home)

        async def whole() -> list[Work]:
            try:
                return await soak(home, options.clients, minutes, options.sessions, growth)
            finally:
                with node.environment(home, None, {}):
                    await node.stop(home)

        works = asyncio.run(whole())
        node.assert_nothing_left(home)
    launches = sorted(second for work in works for second in work.launch_s)
    result = {
        "clients": len(works),
        "sessions": sum(work.sessions for work in works),
        "launchS": {"median": round(launches[len(launches) // 2], 3), "most": round(launches[-1], 3)},
        "growth": growth.told(),
        "tookS": round(time.monotonic() - began, 1),
    }
    print(json.dumps(result))
    assert not growth.grown(), f"grew: {growth.grown()}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
