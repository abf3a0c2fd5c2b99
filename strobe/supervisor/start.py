"""Starting the node, detached. Standard library only: the shim uses it too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import strobe
from strobe import paths
from strobe.errors import Code, StrobeError
from strobe.supervisor.lock import NodeLock
from strobe.supervisor.private import open_private

START_S: Final = 15.0
OF_ACTORS: Final = ("STROBE_BUS", "STROBE_IDENTITY", "STROBE_GENERATION", "STROBE_SUPERVISOR", "STROBE_FELL")  # where one of them starts it
HOLDER_S: Final = 2.0  # a new node writes its pid microseconds after it took the lock


def node_pid(home: Path | None = None) -> int | None:
    """pid of the running node; None: none runs. Raises StrobeError(ACTOR_UNAVAILABLE) when somebody else holds its lock."""
    lock = NodeLock(paths.run_folder(home))
    until = time.monotonic() + HOLDER_S
    try:
        while lock.is_held():
            if (pid := lock.holder()) is not None:
                return pid
            if time.monotonic() > until:
                text = f"{lock.path} is locked by a process that is no node of Strobe's."
                raise StrobeError(Code.ACTOR_UNAVAILABLE, text, "End that process (see /proc/locks).", value=str(lock.path))
            time.sleep(0.005)
        return None
    finally:
        lock.close()


def spawn_node() -> subprocess.Popen[bytes]:
    """Starts `strobe node --foreground` in a session of its own. One that finds another node running exits with 75 by itself."""
    source = str(Path(strobe.__file__).resolve().parent.parent)
    search = [source, *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != source)]
    own = {name: value for name, value in os.environ.items() if name not in OF_ACTORS}
    environment = own | {"STROBE_HOME": str(paths.home()), "PYTHONPATH": os.pathsep.join(search)}
    command = [sys.executable, "-P", "-m", "strobe.cli", "node", "--foreground"]
    with open_private(paths.logs_folder() / "supervisor.stderr") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=paths.private_folder(paths.home()), env=environment
        )


def ensure_node() -> int:
    """pid of the node, started if need be and holding its lock. Raises StrobeError(ACTOR_UNAVAILABLE)."""
    if (pid := node_pid()) is not None:
        return pid
    child = spawn_node()
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if (pid := node_pid()) is not None:
            return pid
        if child.poll() not in (None, 75):
            break
        time.sleep(0.02)
    text = f"The node does not start (exit status {child.poll()})."
    raise StrobeError(Code.ACTOR_UNAVAILABLE, text, f"See {paths.logs_folder() / 'supervisor.stderr'}.", value=str(paths.home()))
