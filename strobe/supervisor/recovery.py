"""What a new supervisor makes of the table its dead predecessor left (run/actors.json)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import Any, Final

from strobe.runtime.actor import OUTLIVE_SUPERVISOR
from strobe.supervisor.process import Process, State, start_ticks
from strobe.supervisor.topology import Role

HELLO_S: Final = 5.0  # a survivor says HELLO each 250 ms


def recovered(rows: Iterable[dict[str, Any]], roles: tuple[Role, ...]) -> list[Process]:
    """Entries for the new table: survivors to be greeted (their `pid` is set), sessions to be restarted (it is not).

    Survivors that nobody needs (spares, those that were leaving) are killed. Generations continue, so no late frame fits.
    """
    known = {role.name: role for role in roles}
    found = []
    for row in rows:
        role = known.get(row.get("role", ""))
        if role is None:
            continue
        alive = row.get("pid") is not None and row["startTicks"] != 0 and start_ticks(row["pid"]) == row["startTicks"]
        wanted = not row["leaving"] and (not role.per_session or row["sessionId"] is not None)
        if alive and not (wanted and role.name in OUTLIVE_SUPERVISOR):
            _kill(row["pid"])
            alive = False
        if wanted:
            found.append(_entry(row, role, alive=alive))
    return found


def _entry(row: dict[str, Any], role: Role, *, alive: bool) -> Process:
    process = Process(row["name"], role, session_id=row["sessionId"], generation=row["generation"], identity=row["identity"], recovering=True)
    if alive:
        try:
            process.took_off(row["pid"])
        except ProcessLookupError:
            process.state = State.STOPPED
    return process


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
