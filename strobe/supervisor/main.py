"""`strobe node --foreground`: takes the lock, runs the supervisor, lets the lock go."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import signal
import sys
from typing import Final

from strobe import paths
from strobe.runtime.log import open_log
from strobe.supervisor.lock import NodeLock
from strobe.supervisor.supervisor import Supervisor
from strobe.supervisor.topology import Role, topology

PR_SET_CHILD_SUBREAPER: Final = 36
EX_TEMPFAIL: Final = 75


def run_node(roles: tuple[Role, ...] | None = None) -> int:
    """Runs `roles` (all of topology.py) until shutdown. Exit status: 0 after an orderly end, 75 when another node runs, 70 on a failure."""
    lock = NodeLock(paths.run_folder())
    if not lock.take():
        print(f"strobe: a node already runs for {paths.home()} (pid {lock.holder()}).", file=sys.stderr)  # noqa: T201
        return EX_TEMPFAIL
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    status = asyncio.run(_live(topology() if roles is None else roles, lock))
    sys.stderr.flush()
    os._exit(status)  # the lock goes with the process: the successor binds when nothing of this one is left


async def _live(roles: tuple[Role, ...], lock: NodeLock) -> int:
    log, _ = open_log(paths.logs_folder() / "supervisor.jsonl", actor="supervisor")
    log.info("node starts", pid=os.getpid(), home=str(paths.home()))
    return await Supervisor(log, roles, lock).live()
