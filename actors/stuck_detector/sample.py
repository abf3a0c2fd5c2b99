"""What /proc says of a process tree: each thread's state, wait channel, system call and CPU time (proc(5)). Stops nothing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from strobe.errors import Code, StrobeError

THREADS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Wait:
    """What a sleeping thread waits for. `wakers`: threads of the tree, by tid, any of which can end it; `outside`: something else can too."""

    kind: str
    timed: bool = False
    address: int = 0
    wakers: frozenset[int] = frozenset()
    owner: int = 0  # the one thread that can end it, where it is known
    outside: str = ""  # timer, network, stdin, signal, disk, pipe …
    what: str = ""  # in words


@dataclass(frozen=True, slots=True)
class Thread:
    pid: int
    tid: int
    name: str
    state: str  # R, S, D, T, t, Z …
    wchan: str  # kernel function it sleeps in; "" when running or not shown
    syscall: int | None  # number, None when not in one or not permitted
    cpu_ns: int
    args: tuple[int, ...] = ()
    sp: int = 0
    pc: int = 0
    wait: Wait | None = None

    def to_wire(self) -> dict[str, Any]:
        return {"pid": self.pid, "tid": self.tid, "name": self.name, "state": self.state, "wchan": self.wchan, "syscall": self.syscall, "cpuNs": self.cpu_ns}

    @property
    def place(self) -> tuple[Any, ...]:
        """Equal in two samples, with no CPU used: it has not moved."""
        return self.pid, self.tid, self.syscall, self.args, self.sp, self.pc, self.cpu_ns


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    name: str
    tracer: int
    moved_bytes: int  # read and written so far, by any means
    runtime: str = ""  # go, python, node


@dataclass(frozen=True)
class Tree:
    at: float  # time.monotonic()
    threads: list[Thread]
    processes: dict[int, Process] = field(default_factory=dict)

    @property
    def cpu(self) -> dict[int, int]:
        return {thread.tid: thread.cpu_ns for thread in self.threads}


def tree(root: int) -> list[int]:
    """`root` and its descendants."""
    try:
        process = psutil.Process(root)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise psutil.NoSuchProcess(root)
        return [root, *(child.pid for child in process.children(recursive=True))]
    except psutil.NoSuchProcess:
        raise StrobeError(Code.PROCESS_EXITED, f"There is no process {root}.", "See debug_session status for its exit.", value=root) from None


def take(pids: list[int]) -> Tree:
    return Tree(time.monotonic(), threads_of(pids), {pid: found for pid in pids if (found := read_process(pid)) is not None})


def tids_of(pid: int) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208  (a Path per thread costs more than the reading)
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_of(pids: list[int]) -> dict[int, int]:
    """CPU time in ns by tid: the cheapest sign that something moved."""
    found: dict[int, int] = {}
    for pid in pids:
        for tid in tids_of(pid)[: THREADS_MAX - len(found)]:
            if text := read(f"/proc/{pid}/task/{tid}/schedstat"):
                found[tid] = int(text.split()[0])
    return found


def threads_of(pids: list[int]) -> list[Thread]:
    """Threads that end while they are read are left out. At most 2,000."""
    found: list[Thread] = []
    for pid in pids:
        for tid in tids_of(pid):
            if len(found) == THREADS_MAX:
                return found
            if (thread := read_thread(pid, tid)) is not None:
                found.append(thread)
    return found


def read_thread(pid: int, tid: int) -> Thread | None:
    folder = f"/proc/{pid}/task/{tid}/"
    stat, cpu = read(folder + "stat"), read(folder + "schedstat")
    if not stat or not cpu:
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    state = rest.split(maxsplit=1)[0]
    number, args, sp, pc = (None, (), 0, 0) if state in "RZX" else _syscall(read(folder + "syscall"))
    wchan = "" if state in "RZX" else read(folder + "wchan")
    return Thread(pid, tid, name, state, "" if wchan == "0" else wchan, number, int(cpu.split()[0]), args, sp, pc)


def read_process(pid: int) -> Process | None:
    status, moved = read(f"/proc/{pid}/status"), read(f"/proc/{pid}/io")
    if not status:
        return None
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    total = sum(int(line.split()[1]) for line in moved.splitlines() if line.startswith(("rchar", "wchar")))
    return Process(pid, int(facts["PPid"]), facts["Name"].strip(), int(facts["TracerPid"]), total, runtime_of(pid))


_RUNTIMES: dict[tuple[int, int, int], str] = {}
_RUNTIMES_MAX: Final = 256
_GO_MARK: Final = b"\xff Go buildinf:"


def runtime_of(pid: int) -> str:
    """go, python, node or "", by the executable."""
    try:
        facts = Path(f"/proc/{pid}/exe").stat()
        key = (facts.st_dev, facts.st_ino, facts.st_mtime_ns)
        if key not in _RUNTIMES:
            if len(_RUNTIMES) >= _RUNTIMES_MAX:
                _RUNTIMES.clear()
            _RUNTIMES[key] = _runtime(pid)
        return _RUNTIMES[key]
    except OSError:
        return ""


def _runtime(pid: int) -> str:
    exe = Path(f"/proc/{pid}/exe")
    name = exe.readlink().name
    if name.startswith(("python", "pypy")):
        return "python"
    if name in ("node", "nodejs"):
        return "node"
    with exe.open("rb") as file:
        while chunk := file.read(1 << 20):
            if _GO_MARK in chunk:
                return "go"
            if file.tell() > 32 << 20:
                break
    return ""


def read(path: str) -> str:
    """Its text; empty where the kernel does not show it to us, or the thread has just gone."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(number, 1 << 16).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(number)


def _syscall(text: str) -> tuple[int | None, tuple[int, ...], int, int]:
    """Number, arguments, SP and PC (proc(5), /proc/PID/syscall); -1: blocked, but in no system call."""
    parts = text.split()
    if len(parts) == 9:
        return int(parts[0]), tuple(int(part, 16) for part in parts[1:7]), int(parts[7], 16), int(parts[8], 16)
    return None, (), *((int(parts[1], 16), int(parts[2], 16)) if len(parts) == 3 else (0, 0))
