"""What /proc says of a process tree: each thread's state, wait channel, system call and CPU time (proc(5)). Stops nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from strobe.errors import Code, StrobeError
from strobe.protocol.stuck_detector import DiagnoseReply

WINDOW_S: Final = 0.25
THREADS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Thread:
    pid: int
    tid: int
    name: str
    state: str  # R, S, D, T, t, Z …
    wchan: str  # kernel function it sleeps in; "" when running or not shown
    syscall: int | None  # number, None when not in one or not permitted
    cpu_ns: int

    def to_wire(self) -> dict[str, Any]:
        return {"pid": self.pid, "tid": self.tid, "name": self.name, "state": self.state, "wchan": self.wchan, "syscall": self.syscall, "cpuNs": self.cpu_ns}


def sample_tree(root: int) -> DiagnoseReply:
    """Raises StrobeError(PROCESS_EXITED) when there is no such process."""
    first, began = threads_of(tree(root)), time.monotonic()
    time.sleep(WINDOW_S)
    second, ended = threads_of(tree(root)), time.monotonic()
    before = {thread.tid: thread.cpu_ns for thread in first}
    used_ns = sum(thread.cpu_ns - before.get(thread.tid, thread.cpu_ns) for thread in second)
    idle_ms = 0 if used_ns else round((ended - began) * 1000)
    return DiagnoseReply(threads=[thread.to_wire() for thread in second], cpu_share=used_ns / 1e9 / (ended - began), idle_ms=idle_ms)


def tree(root: int) -> list[int]:
    """`root` and its descendants."""
    try:
        process = psutil.Process(root)
        return [root, *(child.pid for child in process.children(recursive=True))]
    except psutil.NoSuchProcess:
        raise StrobeError(Code.PROCESS_EXITED, f"There is no process {root}.", "See debug_session status for its exit.", value=root) from None


def threads_of(pids: list[int]) -> list[Thread]:
    """Threads that end while they are read are left out. At most 2,000."""
    found: list[Thread] = []
    for pid in pids:
        try:
            tasks = sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            continue
        for tid in tasks:
            if len(found) == THREADS_MAX:
                return found
            if (thread := read_thread(pid, tid)) is not None:
                found.append(thread)
    return found


def read_thread(pid: int, tid: int) -> Thread | None:
    folder = Path(f"/proc/{pid}/task/{tid}")
    try:
        stat = (folder / "stat").read_text(errors="replace")
        cpu_ns = int((folder / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    wchan = _optional(folder / "wchan")
    return Thread(pid, tid, name, rest.split()[0], "" if wchan == "0" else wchan, _syscall(_optional(folder / "syscall")), cpu_ns)


def _optional(file: Path) -> str:
    """Its text; empty where the kernel does not show it to us, or the thread has just gone."""
    try:
        return file.read_text().strip()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return ""


def _syscall(text: str) -> int | None:
    first = text.split(" ", 1)[0]
    return int(first) if first.isdigit() else None
