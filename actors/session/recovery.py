"""Taking over a target whose session process died: everything needed is in its folder, the pool and the store."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from actors.session.capabilities import capabilities
from actors.session.coring import create_small, opened
from actors.session.journal import Journal
from actors.session.launching import finding_of
from actors.session.lifecycle import Started
from actors.session.ptrace.memory import Memory
from actors.session.target import TYPES_PREFIX, Asker, Target
from strobe import paths
from strobe.lanes.pool import open_pool
from strobe.launch.keeper import adopt_keeper
from strobe.preflight import inspect


async def recover(actor: Asker, folder: Path, collector_for: Any) -> Target:
    """The target as it is now. What was wanted but not installed when the process died is told as inactive, never guessed."""
    del actor
    journal = Journal.load(folder)
    ask = journal.launch
    keeper = await asyncio.to_thread(adopt_keeper, folder)
    pool = await asyncio.to_thread(open_pool if ask.core_file is None else create_small, paths.pool_path(ask.session_id))
    core = await asyncio.to_thread(opened, ask)
    if not journal.running and ask.attach is None:  # its launch was cut short: nobody would ever continue it
        await asyncio.to_thread(keeper.control.kill_tree, signal.SIGKILL)
    facts = await asyncio.to_thread(inspect, Path(ask.command), ask.env)
    can = journal.capabilities or capabilities(finding_of(facts, ask, journal.recorder, has_symbols=False))
    collector = collector_for(pool, keeper)
    target = Target(ask.session_id, folder, journal, keeper, pool, collector, can)
    target.core = core
    target.took(Started(keeper.status().pid))
    _forget_unpatched(target)
    collector.limit(target.limits())
    collector.start()
    target.announce_types({path.name.removeprefix(TYPES_PREFIX): path.read_bytes() for path in folder.glob(f"{TYPES_PREFIX}*")})
    # Announced again: the process may have died before the store had them. The store knows hooks by id.
    target.collector.announce_hooks([item.hook for item in journal.probes.installed.values()])
    target.collector.tell_session({"pid": target.life.pid, "detail": {"capabilities": target.capabilities.model_dump(by_alias=True)}})
    return target


def _forget_unpatched(target: Target) -> None:
    """Drops hooks whose jump is not in the target: the process died between preparing and patching, or their library has gone since."""
    if not target.keeper.target_alive():
        return
    probes = target.journal.probes
    with Memory(target.pid) as memory:
        for address, item in list(probes.installed.items()):
            patch = item.patch
            if patch and memory.read_some(patch.address, len(patch.data)) != patch.data:
                del probes.installed[address]
