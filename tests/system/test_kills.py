"""kill -9 of every process of Strobe while a target records and prints: the target never notices, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from strobe.client import Client
from strobe.protocol.store import RunSql
from strobe.supervisor.restarts import DEATHS_MAX, WINDOW_S
from tests.harness import node, targets
from tests.harness.load import LINES, PATTERNS, THREADS, Told, check_calls, check_output, events, numbers, patient, pids, told
from tests.harness.mcp import Strobe, strobe_mcp

SITTING = ["throw", "longjmp", "fork", "crash"]  # how a thread leaves the traced frames that it sat in at the kill
LEFT_WITH = 42
VICTIMS = ["store", "session", "spawner", "gateway", "indexer", "stuck_detector", "supervisor"]
LAUNCH_S = 5.0  # at most, from a round's start to its kill


def process_name(role: str, session_id: str) -> str:
    return f"{role}:{session_id}" if role in ("session", "spawner") else role


async def killed_once(strobe: Strobe, role: str, after_s: float, sitting: str | None = None) -> None:
    """One kill. `sitting`: while a thread sits in traced frames, which it leaves in that way."""
    if sitting:
        program, arguments = targets.program("sitting.cpp", "-O2"), [sitting, str(LINES)]
    else:
        program, arguments = numbers()
    session_id = await strobe.launch(program, *arguments, trace=[*PATTERNS, "sit", "sit_deeper"] if sitting else PATTERNS)
    await asyncio.sleep(after_s)  # the seeded instant
    before = await pids(strobe.home)
    os.kill(before[process_name(role, session_id)], signal.SIGKILL)
    result = await told(strobe, session_id)
    moment = f"after kill of {role} at {after_s:.3f} s{f' with a thread to {sitting}' if sitting else ''}"
    check_output(result.stdout, [f"left by {sitting}: {LEFT_WITH}\n"] if sitting not in (None, "crash") else [], moment)
    if sitting == "crash":
        await check_crash(strobe, session_id, result, moment)
    else:
        check_calls(result, moment)
    if role != "supervisor":
        after = await pids(strobe.home)
        for name in ("supervisor", "store", "gateway", "indexer", "stuck_detector"):
            assert (after[name] == before[name]) == (name != role), f"{name} {moment}: pid {before[name]}, then {after[name]}"
    await patient(strobe, "debug_session", action="stop", sessionId=session_id)


async def check_crash(strobe: Strobe, session_id: str, result: Told, moment: str) -> None:
    """It died by its own signal, told once; of the calls only those that were open then may have no exit."""
    assert (result.status["status"], result.status.get("signal")) == ("crashed", signal.SIGSEGV), f"{moment}: {result.status}"
    crashes = await events(strobe, session_id, eventType="crash")
    assert [(crash["function"], crash["text"].split()[0]) for crash in crashes] == [("sit_deeper", "SIGSEGV")], f"{moment}: {crashes}"
    open_at_the_end = {"sit": 1, "sit_deeper": 1, "chain": THREADS, "middle": THREADS, "leaf": THREADS, "numbered_line": 0}
    dropped = await drops(strobe.home, session_id)
    for function, most in open_at_the_end.items():
        enters, exits = [
            (await patient(strobe, "debug_query", sessionId=session_id, function={"equals": function}, eventType=kind, limit=1))["totalCount"]
            for kind in ("function_enter", "function_exit")
        ]
        lost = dropped.get(function, 0)
        told_of = f"{function}: enters {enters} exits {exits} dropped {lost} {moment}"
        assert enters - most - lost <= exits <= enters, told_of  # an exit that finds no room is dropped, too
        assert function != "numbered_line" or exits + lost == LINES, f"{exits} lines {moment}"


async def drops(home: Path, session_id: str) -> dict[str, int]:
    """What the session lost, by function."""
    async with Client(home) as client:
        sql = "SELECT h.function, sum(l.lost)::BIGINT FROM losses l JOIN hooks h ON h.id = l.hook GROUP BY 1"
        return dict((await client.ask("store", RunSql(session_id=session_id, sql=sql))).rows)


async def kill_rounds(strobe: Strobe, role: str, rounds: int, sittings: list[str], seed: int) -> None:
    dice = random.Random(f"{seed}-{role}")
    await patient(strobe, "debug_session", action="list")  # the node is up
    with node.environment(strobe.home, None, {}):
        kills: deque[float] = deque(maxlen=DEATHS_MAX)
        for sitting in [None] * rounds + sittings:
            if len(kills) == DEATHS_MAX and role not in ("session", "spawner"):  # one death more within the window, and Strobe lets it rest
                await asyncio.sleep(max(0.0, kills[0] + WINDOW_S + LAUNCH_S - time.monotonic()))
            kills.append(time.monotonic())
            await killed_once(strobe, role, dice.uniform(0.0, 1.0), sitting)


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One node that loses every part of it, one after another. All is recorded and nothing evicted: a target calls more in a second than is kept."""
    async with strobe_mcp(with_settings(tmp_path_factory, {"sampling.callsPerSecond": 1_000_000_000})) as connected:
        yield connected


@pytest.fixture
async def sampling(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with strobe_mcp(with_settings(tmp_path_factory, {"sampling.callsPerSecond": 20_000})) as connected:
        yield connected


def with_settings(folders: pytest.TempPathFactory, settings: dict[str, Any]) -> Path:
    home = folders.mktemp("kills") / "home"
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text(json.dumps({"events.maxPerSession": 50_000_000, **settings}))
    return home


@pytest.mark.parametrize(("role", "sitting"), [*((role, SITTING[at % len(SITTING)]) for at, role in enumerate(VICTIMS)), ("supervisor", "crash")])
async def test_kill(strobe: Strobe, role: str, sitting: str) -> None:
    await kill_rounds(strobe, role, 1, [sitting], seed=2026)


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.parametrize("role", VICTIMS)
async def test_kill_often(strobe: Strobe, role: str) -> None:
    await kill_rounds(strobe, role, 20, SITTING, seed=int(os.environ.get("STROBE_SEED", "1")))


async def test_calls_that_are_only_counted_survive_kills(sampling: Strobe) -> None:
    for role in ("session", "store"):
        await kill_rounds(sampling, role, 1, [], seed=7)
