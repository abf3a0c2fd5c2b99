"""Events per second from call to queryable with nothing lost, over 10 s, with the CPU share of target, session and store; and bytes per stored event.

A target calls one function (two int arguments and an int result recorded) at a steady rate. Rates are tried upwards until events are lost or the timeline
falls behind; the figure is the highest that was kept up with: every event in the timeline, the last one at most LATE_S after the target's end.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.client import Client
from tests.bench.figure import Figure
from tests.bench.options import Options, live_node
from tests.harness.mcp import Strobe
from tests.harness.node import status
from tests.harness.targets import TARGETS, program

RATES: Final = (500_000, 1_000_000, 1_500_000, 2_050_000, 2_500_000, 3_000_000, 4_000_000)  # events per second
GOAL: Final = 2_000_000
LATE_S: Final = 1.0
TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Trial:
    """One run at one rate. CPU shares are of one core, from launch until the last event was there."""

    wanted: int
    events: int
    seconds: float
    stored: int
    dropped: int
    late_s: float
    cpu: dict[str, float]
    bytes_per_event: float

    @property
    def kept_up(self) -> bool:
        return self.stored == self.events and not self.dropped and self.late_s <= LATE_S

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class Cpu:
    """CPU seconds of processes since the start, as last seen while they lived: a session's process ends once all of it is stored."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._first = {name: _cpu_s(pid) for name, pid in pids.items()}
        self._last = dict(self._first)

    def look(self, name: str) -> bool:
        """Notes the process's CPU seconds; False once it is gone."""
        seconds = _cpu_s(self._pids[name])
        if seconds >= 0:
            self._last[name] = seconds
        return seconds >= 0

    def seconds(self) -> dict[str, float]:
        return {name: self._last[name] - self._first[name] for name in self._pids}


def run(options: Options) -> list[Figure]:
    return asyncio.run(_measure(2.0 if options.quick else 10.0, RATES[:2] if options.quick else RATES))


async def _measure(seconds: float, rates: tuple[int, ...]) -> list[Figure]:
    trials: list[Trial] = []
    for rate in rates:
        trial = await _trial(rate, seconds)
        trials.append(trial)
        if not trial.kept_up:
            break
    best = next((trial for trial in reversed(trials) if trial.kept_up), None)
    story = "; ".join(f"{t.rate / 1e6:.2f} M/s: {'kept up' if t.kept_up else f'{t.dropped:,} dropped'}, {t.late_s:.2f} s late" for t in trials)
    shown = best or trials[-1]
    cpu = ", ".join(f"{name} {share:.0f} %" for name, share in shown.cpu.items())
    return [
        Figure("events/s from call to queryable, nothing lost", best.rate if best else 0, "events/s", GOAL, at_least=True, note=f"{story}; CPU then: {cpu}"),
        Figure("bytes per stored event", shown.bytes_per_event, "bytes", 24, note="two int arguments and an int result; the session's file after its end"),
    ]


async def _trial(rate: int, seconds: float) -> Trial:
    path = program("bench_rate.c", "-O2")
    async with live_node({"events.maxPerSession": 100_000_000}) as strobe:
        session_id = await strobe.launch(path, str(rate // 2), str(seconds), root=TARGETS, trace=["work"])
        pids = await _pids(strobe, session_id)
        cpu_used = Cpu(pids)
        started = time.monotonic()
        while cpu_used.look("target"):
            cpu_used.look("session")
            await asyncio.sleep(0.05)
        ended = time.monotonic()
        calls, took = await _result(strobe, session_id)
        stored, dropped = await _until_stored(strobe, session_id, 2 * calls, cpu_used)
        late = time.monotonic() - ended
        cpu_used.look("store")
        wall = time.monotonic() - started
        cpu = {name: 100 * seconds / wall for name, seconds in cpu_used.seconds().items()}
        await strobe.call("debug_session", action="stop", sessionId=session_id, retain=True)
        size = await _settled_size(strobe.home / "sessions" / f"{session_id}.duckdb")
    return Trial(rate, 2 * calls, took, stored, dropped, late, cpu, size / max(1, stored))


async def _pids(strobe: Strobe, session_id: str) -> dict[str, int]:
    async with Client(strobe.home) as client:
        rows = {row.name: row.pid for row in (await status(client)).actors}
    target = (await strobe.status(session_id))["pid"]
    found = {"target": target, "session": rows[f"session:{session_id}"], "store": rows["store"]}
    return {name: pid for name, pid in found.items() if pid is not None}


async def _until_stored(strobe: Strobe, session_id: str, wanted: int, cpu: Cpu, *, within_s: float = 60.0) -> tuple[int, int]:
    """(events in the timeline, calls dropped): a call that finds no room is counted once, and loses both its events."""
    deadline = time.monotonic() + within_s
    while True:
        reply = await strobe.call("debug_query", sessionId=session_id, function={"equals": "work"}, limit=1)
        stored, dropped = reply["totalCount"], sum(reply.get("eventsDropped", {}).values())
        cpu.look("session")
        if stored + 2 * dropped >= wanted or time.monotonic() > deadline:
            return stored, dropped
        await asyncio.sleep(0.02)


async def _result(strobe: Strobe, session_id: str, *, within_s: float = 60.0) -> tuple[int, float]:
    """What the target printed of itself at its end: calls made, seconds taken. Its output may still be on its way."""
    deadline = time.monotonic() + within_s
    while True:
        stdout, _ = await strobe.output(session_id)
        found = re.search(rb"calls (\d+) seconds ([0-9.]+)\n", stdout)
        if found:
            return int(found[1]), float(found[2])
        if time.monotonic() > deadline:
            raise RuntimeError(f"the target said nothing of its calls: {stdout!r}")
        await asyncio.sleep(0.02)


async def _settled_size(path: Path, *, within_s: float = 30.0) -> int:
    """Size of the session's file once its write-ahead log is merged into it."""
    deadline = time.monotonic() + within_s
    log = path.with_name(path.name + ".wal")
    while log.exists() and log.stat().st_size and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _cpu_s(pid: int) -> float:
    """CPU seconds that `pid` used, all its threads; -1 once it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1.0
    return -1.0 if fields[0] in "ZX" else (int(fields[11]) + int(fields[12])) / TICK
