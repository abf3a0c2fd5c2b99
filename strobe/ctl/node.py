"""`status`, `actors`, `stop`: the node itself."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from strobe import paths
from strobe.client import Client
from strobe.ctl.output import AsJson, age, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.protocol.store import StoreStatus, StoreStatusReply
from strobe.protocol.supervisor import Shutdown, Status, StatusReply
from strobe.render.values import byte_count
from strobe.supervisor.process import start_ticks
from strobe.supervisor.start import node_pid
from strobe.supervisor.table import Table

STOP_S: Final = 90.0
TERM_S: Final = 5.0


@command
async def status(as_json: AsJson = False) -> None:
    """Is the node up, since when, how busy."""
    async with Client() as client:
        node: StatusReply = await client.ask("supervisor", Status())
        store = await _store(client)
    if as_json:
        show_json({**node.model_dump(by_alias=True), "store": store.model_dump(by_alias=True) if store else None})
        return
    states = [actor.state for actor in node.actors]
    rows = [
        ("node", f"pid {node.pid}, version {node.version}, up {age(node.uptime_s)}, idle {age(node.idle_s)}"),
        ("home", node.home),
        ("clients", node.clients),
        ("actors", ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))),
    ]
    if store is not None:
        rows.append(("store", f"{store.sessions} sessions, {store.events:,} events, {byte_count(store.bytes)}, {store.ingest_lag_ms:.0f} ms behind"))
    show_table(("", ""), rows, empty="")


async def _store(client: Client) -> StoreStatusReply | None:
    """None when the store does not answer: the node's state is shown all the same, and says so."""
    try:
        reply: StoreStatusReply = await client.ask("store", StoreStatus(), deadline_s=3)
    except StrobeError:
        return None
    return reply


@command
async def actors(as_json: AsJson = False) -> None:
    """Every process of the node."""
    async with Client() as client:
        node: StatusReply = await client.ask("supervisor", Status())
    if as_json:
        show_json([actor.model_dump(by_alias=True) for actor in node.actors])
        return
    rows = [(a.name, a.state, a.pid, a.generation, a.restarts, age(a.uptime_s) if a.pid else "", (a.last_error or "")[:200]) for a in node.actors]
    show_table(("actor", "state", "pid", "generation", "restarts", "up", "last error"), rows, empty="No actors.")


@command
async def stop(
    force: Annotated[bool, typer.Option("--force", help="By signal, for a node that does not answer. Targets live on.")] = False, as_json: AsJson = False
) -> None:
    """End the node in order. Sessions leave their targets, the store commits."""
    pid = node_pid()
    if pid is None:
        _told(as_json, "No node runs.", None)
        return
    if force:
        await _kill(pid)
    else:
        async with Client() as client:
            await client.ask("supervisor", Shutdown(reason="strobe-ctl stop"))
        await _gone(pid, STOP_S, "It still ends its sessions; `strobe-ctl stop --force` does not wait.")
    _told(as_json, f"Stopped the node (pid {pid}).", pid)


def _told(as_json: bool, text: str, pid: int | None) -> None:
    show_json({"stopped": pid}) if as_json else print(text)


async def _gone(pid: int, bound_s: float, next_step: str) -> None:
    """Raises TIMEOUT when the node still holds its lock after `bound_s`."""
    until = time.monotonic() + bound_s
    while node_pid() is not None:
        if time.monotonic() > until:
            raise StrobeError(Code.TIMEOUT, f"The node (pid {pid}) has not ended within {bound_s:g} s.", next_step, value=pid)
        await asyncio.sleep(0.05)


async def _kill(pid: int) -> None:
    """TERM, then KILL for it and every actor it left. pids are checked against their start times: none is anyone else's."""
    rows = Table.saved(paths.run_folder() / "actors.json")
    _signal(pid, signal.SIGTERM)
    try:
        await _gone(pid, TERM_S, "")
    except StrobeError:
        _signal(pid, signal.SIGKILL)
        await _gone(pid, TERM_S, f"Process {pid} cannot be killed: it waits in the kernel.")
    for row in rows:
        if row["pid"] is not None and row["startTicks"] and start_ticks(row["pid"]) == row["startTicks"]:
            _signal(row["pid"], signal.SIGKILL)
    for actor in _started_by(pid):  # one that it had started and not written down yet
        _signal(actor, signal.SIGKILL)


def _started_by(supervisor: int) -> list[int]:
    """pids of actors that have it in their environment; none where that belongs to another home's."""
    wanted = {f"STROBE_SUPERVISOR={supervisor}".encode(), f"STROBE_HOME={paths.home()}".encode()}
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # gone meanwhile, or another user's
                is_actor = b"--name" in (folder / "cmdline").read_bytes().split(b"\0")  # and no host of Frida, which may be in a target
                if is_actor and wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                    found.append(int(folder.name))
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
