"""One supervised process and the table of them all."""

from __future__ import annotations

import asyncio
import enum
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import strobe
from strobe import paths
from strobe.runtime.child import Child
from strobe.runtime.log import log_name
from strobe.supervisor.forking import Template
from strobe.supervisor.private import open_private
from strobe.supervisor.restarts import Restarts
from strobe.supervisor.topology import Role

STDERR_BYTES_MAX: Final = 1 << 20
TAIL_BYTES: Final = 600


class State(enum.StrEnum):
    STARTING = "starting"
    READY = "ready"
    UNHEALTHY = "unhealthy"
    BACKOFF = "backoff"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(slots=True, eq=False)
class Process:
    name: str
    role: Role
    session_id: str | None = None
    generation: int = 0
    pid: int | None = None
    start_ticks: int = 0  # with the pid: this process and no later one of that number
    child: subprocess.Popen[bytes] | Child | None = None  # None: adopted from a dead supervisor
    pidfd: int | None = None
    state: State = State.STOPPED
    started_at: float = 0.0
    pong_at: float = 0.0
    fell: bool = False  # the last process of this entry died by itself
    dumped: bool = False  # its stacks were dumped since it last answered
    leaving: bool = False  # its end is wanted
    recovering: bool = False  # a process of this session died before
    rests_until: float | None = None  # while it has failed: when it is tried again
    last_error: str | None = None
    stderr: Path | None = None
    identity: str = ""
    notices: frozenset[str] = frozenset()
    restarts: Restarts = field(default_factory=Restarts)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def spawn(self, bus: str, template: Template) -> None:
        """Starts the next generation. Called on the main thread only: PDEATHSIG follows the starting thread's death."""
        self.generation += 1
        self.identity = f"{self.name}~{self.generation}"
        self.stderr = paths.logs_folder() / f"{log_name(self.name)}.stderr"
        with _fresh_log(self.stderr) as output:
            module, arguments, environment = self.role.module or f"actors.{self.role.name}", ["--name", self.name], self._environment(bus)
            self.child = template.fork(module, arguments, environment, output) if template.has(self.role) else None
            if self.child is None:
                self.child = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, *arguments],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=paths.home(), env=environment,
                )  # fmt: skip
        self.took_off(self.child.pid)

    def took_off(self, pid: int) -> None:
        """A process of this entry runs as `pid`, ours or adopted."""
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.start_ticks = start_ticks(pid) or 0
        self.state = State.STARTING
        self.started_at = self.pong_at = time.monotonic()
        self.dumped = False
        self.ready.clear()
        self.gone.clear()

    def _environment(self, bus: str) -> dict[str, str]:
        return actor_environment(bus, self.identity) | {
            "STROBE_GENERATION": str(self.generation),
            **({"STROBE_FELL": "1"} if self.fell else {}),
            **({"TMPDIR": str(paths.scratch_folder(self.identity))} if self.role.scratch else {}),
        }  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        """To the process; a KILL also to its group, where the group is not to outlive it."""
        if self.pid is None or start_ticks(self.pid) != self.start_ticks:
            return
        try:
            if number is signal.SIGKILL and not self.role.keeps_children:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return

    def is_dead(self) -> bool:
        """It has ended, though its watcher has not been called yet."""
        if self.pidfd is None:
            return True
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def kill_group(self) -> None:
        """What a dead actor left in its process group (helpers of Frida, parsing workers)."""
        if self.pid is not None and not self.role.keeps_children:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def tail(self) -> str:
        """The end of what it last said on stderr."""
        if self.stderr is None or not self.stderr.exists():
            return ""
        with self.stderr.open("rb") as file:
            file.seek(max(0, self.stderr.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace").strip()


def actor_environment(bus: str, identity: str) -> dict[str, str]:
    """What every process of the node has in its environment, by which it is known to be one."""
    source = str(Path(strobe.__file__).resolve().parent.parent)
    search = [source, *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != source)]
    return os.environ | {
        "STROBE_HOME": str(paths.home()), "STROBE_BUS": bus, "STROBE_IDENTITY": identity, "STROBE_SUPERVISOR": str(os.getpid()),
        "PYTHONPATH": os.pathsep.join(search),
    }  # fmt: skip


def _fresh_log(path: Path) -> BinaryIO:
    """stderr of a new process is appended; a file over 1 MiB starts again."""
    if path.exists() and path.stat().st_size > STDERR_BYTES_MAX:
        path.unlink()
    return open_private(path)


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc(5)); None for no such process or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
