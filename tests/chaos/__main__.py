"""`python -m tests.chaos [--rounds 50] [--seed 1] [--clients 3]`: exit status 0 when nothing was lost, doubled or left behind.

Each client launches a target that prints and calls a known sequence, again and again, and holds against it what Strobe tells: every byte of output, every
call recorded once or counted as dropped, the exit status. Meanwhile, once a round, a random process of the node is killed, stopped or starved. Afterwards
nothing may be left: no process, socket, shared memory. The last line is the result as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from statistics import median

from mcp import MCPError

from strobe import paths
from tests.chaos.harm import Harm, Recovery
from tests.harness import node
from tests.harness.load import PATTERNS, check_calls, check_output, numbers, patient, told
from tests.harness.mcp import Strobe, ToolError, strobe_mcp

SETTINGS = {"events.maxPerSession": 50_000_000, "sampling.callsPerSecond": 1_000_000_000}
PAUSE_S = (0.0, 1.5)
LAUNCH_S = 120.0  # each try meets one or two of the rounds


class Load:
    """One client's work. `over`: set when the last session is to be the last."""

    def __init__(self, strobe: Strobe, name: str, over: asyncio.Event) -> None:
        self._strobe = strobe
        self._name = name
        self._over = over
        self.sessions = self.calls = self.launches_failed = 0

    async def run(self) -> None:
        while not self._over.is_set():
            await self._one()

    async def _one(self) -> None:
        session = await self._launched()
        result = await told(self._strobe, session, LAUNCH_S)
        moment = f"of {session} for {self._name}, whose status is {result.status},"
        check_output(result.stdout, [], moment)
        check_calls(result, moment)
        self.sessions += 1
        self.calls += result.exits + result.dropped
        await self._end(session)

    async def _launched(self) -> str:
        """A launch that met a killed process says so; what came of it all the same is stopped."""
        program, arguments = numbers(self._name)  # one of its own: all clients' sessions are listed
        deadline = time.monotonic() + LAUNCH_S
        while True:
            await patient(self._strobe, "debug_trace", add=PATTERNS)
            began = time.monotonic()
            try:
                return await self._strobe.launch(program, *arguments)
            except ToolError as error:
                assert error.code in ("ACTOR_UNAVAILABLE", "TIMEOUT", "SESSION_EXISTS", "FRIDA_ATTACH_FAILED", "PROCESS_EXITED"), error
                print(f"{self._name}: no launch after {time.monotonic() - began:.1f} s: {error.content['what']}", file=sys.stderr)
                assert time.monotonic() < deadline, f"no launch for {LAUNCH_S} s: {error}"
            except MCPError as error:
                assert error.code == -32000, error
            self.launches_failed += 1
            mine = [one for one in (await patient(self._strobe, "debug_session", action="list"))["sessions"] if one["binaryPath"] == str(program)]
            for one in mine:
                if one["status"] == "running":
                    await self._end(one["sessionId"])
            print(f"{self._name}: what there was of it: {[(one['sessionId'], one['status'], one.get('pid')) for one in mine]}", file=sys.stderr)
            await asyncio.sleep(0.2)

    async def _end(self, session: str) -> None:
        """It may be gone: by a failed launch that has undone it meanwhile, or by a stop whose answer died with the gateway."""
        try:
            await patient(self._strobe, "debug_session", action="stop", sessionId=session, kill=True)
        except AssertionError as refused:
            if "SESSION_NOT_FOUND" not in str(refused):
                raise
            print(f"{self._name}: {refused}", file=sys.stderr)


async def chaos(home: Path, rounds: int, seed: int, clients: int) -> tuple[list[Recovery], list[Load]]:
    """Errors: AssertionError for what is not as it should be."""
    dice, over = random.Random(seed), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        ready: list[asyncio.Future[Load]] = [asyncio.get_running_loop().create_future() for _ in range(clients)]

        async def client(number: int) -> None:
            async with strobe_mcp(home, keep_node=True) as strobe:
                ready[number].set_result(load := Load(strobe, f"client-{number}", over))
                await load.run()

        for number in range(clients):
            group.create_task(client(number))
        loads = list(await asyncio.gather(*ready))
        harm, recoveries = Harm(home, dice), []
        with node.environment(home, None, {}):
            for _ in range(rounds):
                await asyncio.sleep(dice.uniform(*PAUSE_S))
                recoveries.append(await harm.one())
                print(f"{len(recoveries)} {recoveries[-1].way} {recoveries[-1].victim}: {recoveries[-1].seconds:.2f} s", file=sys.stderr)
        over.set()
    return recoveries, loads


def end_what_waits(home: Path) -> None:
    """Where a run failed in the middle of a launch, its target waits under its keeper for the next node, which never comes: `home` goes."""
    keepers = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and f"strobe-keeper\0{home}/" in _command(one)]
    for keeper in keepers:
        for target in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(target), signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
    if keepers:
        for pool in Path("/dev/shm").glob(f"{paths.pool_path('x').name[:-1]}*"):
            pool.unlink()


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def report(recoveries: list[Recovery], loads: list[Load], took_s: float) -> dict[str, object]:
    kills = sorted(one.seconds for one in recoveries if one.way == "kill")
    slowest = max((one for one in recoveries if one.way == "kill"), key=lambda one: one.seconds, default=None)
    return {
        "rounds": len(recoveries),
        "ways": dict(Counter(f"{one.way} {one.victim}" for one in recoveries)),
        "sessions": sum(load.sessions for load in loads),
        "calls": sum(load.calls for load in loads),
        "launchesFailed": sum(load.launches_failed for load in loads),
        "recoveryS": {"median": round(median(kills), 3), "most": round(kills[-1], 3), "of": slowest.victim} if kills and slowest else None,
        "tookS": round(took_s, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--logs", type=Path, help="a new folder, for the node's logs where something was not as it should be")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strobe-chaos-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "settings.json").write_text(json.dumps(SETTINGS))

        async def whole() -> tuple[list[Recovery], list[Load]]:
            try:
                return await chaos(home, options.rounds, options.seed, options.clients)
            finally:
                with node.environment(home, None, {}):
                    await node.stop(home)

        try:
            recoveries, loads = asyncio.run(whole())
        except BaseException:
            with node.environment(home, None, {}):
                end_what_waits(home)
            if options.logs:
                shutil.copytree(home / "logs", options.logs)
            raise
        node.assert_nothing_left(home)
    print(json.dumps(report(recoveries, loads, time.monotonic() - began)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
