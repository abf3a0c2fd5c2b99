"""Temporary folders of processes that may be killed: what they leave there, running programs too, is swept by whoever outlives them.

Frida unpacks a 10 MB helper into its temporary folder and starts it as a daemon of its own session; a killed spawner leaves both behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

SWEEP_S: Final = 2.0


def sweep(folder: Path) -> int:
    """Kills the programs that run from inside `folder` and removes it. Answers how many there were."""
    killed = 0
    until = time.monotonic() + SWEEP_S
    while (pids := running_from(folder)) and time.monotonic() < until:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                continue
        time.sleep(0.005)
    shutil.rmtree(folder, ignore_errors=True)
    return killed


def sweep_all(folder: Path) -> None:
    """The folders of all processes, but for hosts of Frida (actors/spawner/host.py) that are still leaving a target: they remove their own."""
    for one in list(folder.iterdir()):
        pid = one.name.removeprefix("host-")
        if not (one.name.startswith("host-") and b"\0actors.spawner.host\0" in _command(pid)):
            sweep(one)
    with suppress(OSError):  # not empty: one of those
        folder.rmdir()


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def running_from(folder: Path) -> list[int]:
    """pids of this user's processes whose program lies under `folder` (zombies have none)."""
    inside = f"{folder}/"
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                program = str(Path(f"/proc/{entry.name}/exe").readlink())
            except OSError:
                continue  # gone, another user's, or a kernel thread
            if program.startswith(inside):
                found.append(int(entry.name))
    return found
