"""`top`: the busiest functions, sessions and processes, now."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from strobe.client import Client
from strobe.ctl.output import AsJson, command, show_json, show_line, show_table
from strobe.errors import Code, StrobeError
from strobe.protocol.supervisor import ActorStatus, Status, StatusReply
from strobe.protocol.upkeep import Activity, ActivityReply, BusySession
from strobe.render.values import byte_count

INTERVAL_LEAST_S: Final = 0.1
INTERVAL_MOST_S: Final = 3_600.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """`used`: processor seconds and bytes resident, by actor."""

    at: float
    activity: ActivityReply
    actors: list[ActorStatus]
    used: dict[str, tuple[float, int]]


@command
async def top(
    once: Annotated[bool, typer.Option("--once", help="One interval, then end.")] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks, 0.1 to 3600.")] = 1.0,
    rows: Annotated[int, typer.Option(help="Rows of each table, 1 to 200.")] = 10,
    as_json: AsJson = False,
) -> None:
    """The busiest functions, sessions and processes of the node, live (JSON: one document a look, one a line without --once)."""
    if not INTERVAL_LEAST_S <= interval <= INTERVAL_MOST_S or not 1 <= rows <= 200:
        what = f"--interval is {interval:g} and --rows {rows}."
        raise StrobeError(Code.VALIDATION_ERROR, what, "--interval takes 0.1 to 3600 seconds, --rows 1 to 200.", value=interval)
    async with Client() as client:
        before = await _sample(client)
        live = Live(console=Console(), auto_refresh=False) if sys.stdout.isatty() and not (once or as_json) else None
        if live is not None:
            live.start()
        try:
            while True:
                await asyncio.sleep(interval)
                now = await _sample(client)
                _show(rates(before, now, rows), live, once=once, as_json=as_json)
                if once:
                    return
                before = now
        finally:
            if live is not None:
                live.stop()


async def _sample(client: Client) -> Sample:
    node: StatusReply = await client.ask("supervisor", Status())
    activity: ActivityReply = await client.ask("store", Activity())
    supervisor = ActorStatus(name="supervisor", role="supervisor", pid=node.pid, generation=0, state="ready", uptime_s=node.uptime_s, restarts=0)
    actors = [supervisor, *(actor for actor in node.actors if actor.pid is not None)]
    used = {f"{actor.name} {actor.pid}": found for actor in actors if actor.pid is not None and (found := _used(actor.pid)) is not None}
    return Sample(time.monotonic(), activity, actors, used)


def _used(pid: int) -> tuple[float, int] | None:
    """Processor seconds and resident bytes of a process, proc_pid_stat(5); None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE


def rates(before: Sample, now: Sample, rows: int) -> dict[str, Any]:
    """Each list the busiest first. A session or process that is new in this interval counts from nothing."""
    seconds = max(now.at - before.at, 1e-6)
    known = {one.session_id: one for one in before.activity.sessions}
    sessions: list[dict[str, Any]] = []
    functions: list[dict[str, Any]] = []
    for one in now.activity.sessions:
        older = known.get(one.session_id)
        events = max(0, one.events - (older.events if older else 0))
        facts = {"sessionId": one.session_id, "state": one.state, "pid": one.pid}
        sessions.append({**facts, "eventsPerSecond": round(events / seconds), "events": one.events, "bytes": one.bytes, "dropped": one.dropped})
        totals, earlier = _calls(one), _calls(older) if older else Counter()
        functions += [
            {"function": name, "sessionId": one.session_id, "callsPerSecond": round(max(0, total - earlier[name]) / seconds), "calls": total}
            for name, total in totals.items()
        ]
    return {
        "seconds": round(seconds, 3),
        "functions": sorted(functions, key=lambda row: (-row["callsPerSecond"], -row["calls"]))[:rows],
        "sessions": sorted(sessions, key=lambda row: (-row["eventsPerSecond"], -row["events"]))[:rows],
        "actors": _actors(before, now, seconds)[:rows],
    }


def _calls(session: BusySession) -> Counter[str]:
    """By function, which may have several hooks (copies, libraries)."""
    found: Counter[str] = Counter()
    for call in session.calls:
        found[call.function] += call.calls
    return found


def _actors(before: Sample, now: Sample, seconds: float) -> list[dict[str, Any]]:
    rows = []
    for actor in now.actors:
        key = f"{actor.name} {actor.pid}"
        if (used := now.used.get(key)) is None:
            continue
        busy = used[0] - before.used.get(key, (used[0], 0))[0]
        rows.append({"name": actor.name, "pid": actor.pid, "state": actor.state, "cpuPercent": round(100 * busy / seconds, 1), "residentBytes": used[1]})
    return sorted(rows, key=lambda row: (-row["cpuPercent"], -row["residentBytes"]))


def _tables(found: dict[str, Any]) -> list[tuple[tuple[str, ...], list[tuple[Any, ...]], str]]:
    functions = [(f"{row['callsPerSecond']:,}", f"{row['calls']:,}", row["function"], row["sessionId"]) for row in found["functions"]]
    sessions = [
        (f"{row['eventsPerSecond']:,}", f"{row['events']:,}", byte_count(row["bytes"]), f"{row['dropped']:,}", row["state"], row["sessionId"])
        for row in found["sessions"]
    ]
    actors = [(f"{row['cpuPercent']:.1f}", byte_count(row["residentBytes"]), row["pid"], row["state"], row["name"]) for row in found["actors"]]
    return [
        (("calls/s", "calls", "function", "session"), functions, "No calls are recorded."),
        (("events/s", "events", "size", "dropped", "state", "session"), sessions, "No session runs."),
        (("cpu %", "memory", "pid", "state", "process"), actors, ""),
    ]


def _show(found: dict[str, Any], live: Live | None, *, once: bool, as_json: bool) -> None:
    if as_json:
        show_json(found) if once else show_line(found)
        return
    if live is None:
        for columns, rows, empty in _tables(found):
            show_table(columns, rows, empty=empty)
            print()
        return
    parts: list[Table | Text] = []
    for columns, rows, empty in _tables(found):
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(Text(str(cell)) for cell in row))
        parts += [table if rows else Text(empty), Text("")]
    live.update(Group(*parts), refresh=True)
