"""A process that runs already, before anyone attaches to it: what /proc tells about it (proc(5)), and why it may not be attached to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

PF_KTHREAD: Final = 0x00200000  # include/linux/sched.h
CAP_SYS_PTRACE: Final = 19
YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_OURS: Final = b"STROBE_IDENTITY="  # in the environment of every actor, and of no target
_KEEPER: Final = "strobe-keeper"
_ANCESTORS_MAX: Final = 64


@dataclass(frozen=True)
class Running:
    """`program`: of its executable, as far as it may be seen. `uids`: real, effective, saved, file system's."""

    pid: int
    name: str
    state: str
    start_ticks: int
    uids: tuple[int, ...]
    program: str
    cwd: str
    command: tuple[str, ...]
    group: int  # the process it is a thread of; itself
    threads: int
    tracer: int
    kernel: bool
    same_namespace: bool  # of pids, and sees this one's files
    ours: bool  # a process of Strobe's own


def look_at(pid: int) -> Running:
    """Errors: PROCESS_EXITED when there is no such process; FRIDA_ATTACH_FAILED when it may not be looked at (hidepid of proc(5))."""
    folder = Path(f"/proc/{pid}")
    try:
        head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
        fields = rest.split()
        status = dict(line.split(":\t", 1) for line in (folder / "status").read_text(errors="replace").splitlines() if ":\t" in line)
        command = (folder / "cmdline").read_bytes()
        threads = len(list((folder / "task").iterdir()))
    except PermissionError:
        raise refused(pid, "it may not be looked at: it is another user's", "Run Strobe as that user, or start the program as yourself.") from None
    except (FileNotFoundError, ProcessLookupError):
        raise StrobeError(Code.PROCESS_EXITED, f"There is no process {pid}.", "Find its pid anew: it may have ended.", value=pid) from None
    program = _link(folder / "exe")
    return Running(
        pid=pid,
        name=head.partition("(")[2],
        state=fields[0],
        start_ticks=int(fields[19]),
        uids=tuple(int(uid) for uid in status["Uid"].split()),
        program=program.removesuffix(" (deleted)"),
        cwd=os.fsencode(_link(folder / "cwd")).decode(errors="replace"),
        command=tuple(part.decode(errors="replace") for part in command.rstrip(b"\0").split(b"\0")) if command else (),
        group=int(status["Tgid"]),
        threads=threads,
        tracer=int(status["TracerPid"]),
        kernel=bool(int(fields[6]) & PF_KTHREAD),
        same_namespace=_same_namespace(folder, program),
        ours=pid in _ancestors() or Path(program).name == _KEEPER or _is_actor(folder),
    )


def check_attachable(it: Running, uid: int) -> None:
    """`uid`: of who wants to attach. Errors: FRIDA_ATTACH_FAILED, PROCESS_EXITED; the process is not touched."""
    if it.state == "Z" and it.threads > 1:
        raise refused(it.pid, "its main thread has ended, and there is no other way in", "Launch it with `command` to have the recorder in it before.")
    if it.state in "ZX":
        step = "Its exit status is for its parent to take; start it again to debug it."
        raise StrobeError(Code.PROCESS_EXITED, f"Process {it.pid} ({it.name}) has ended: it is a zombie.", step, value=it.pid)
    if it.kernel:
        raise refused(it.pid, "it is a thread of the kernel", "Choose a process that runs a program.")
    if it.group != it.pid:
        raise refused(it.pid, f"it is a thread of process {it.group}", f"Attach to {it.group}: all its threads come along.")
    if it.ours:
        raise refused(it.pid, "it is a process of Strobe's own", "Attach to the program that you want to debug.")
    if set(it.uids) != {uid}:
        owner = next(one for one in it.uids if one != uid)
        raise refused(it.pid, f"it runs as user {owner}, not as you", "Run Strobe as that user, or start the program as yourself.")
    if it.tracer:
        raise refused(it.pid, f"{_described(it.tracer)} is debugging it already", "Detach that debugger, then attach again. Both were left alone.")
    if not it.same_namespace:
        raise refused(it.pid, "it runs in a container (another pid or mount namespace)", "Run Strobe in the same container.")
    if not _is_text(it.program):
        raise refused(it.pid, f"the path of its program is no UTF-8 text: {it.program!r}", "Start it from a folder with another name.")


def check_permitted(pid: int, scope: int | None, privileged: bool) -> StrobeError:
    """Why the kernel has refused to let us trace a process of our own user, by Yama's setting (None: there is no Yama) and CAP_SYS_PTRACE."""
    sysctl = f"kernel.yama.ptrace_scope is {scope}"
    if scope == 3:
        return refused(pid, f"{sysctl}, which forbids attaching to anyone until the machine is started anew", "Launch the program with `command`.")
    if scope == 2 and not privileged:
        step = "Launch it with `command`, or as root: sysctl kernel.yama.ptrace_scope=0"
        return refused(pid, f"{sysctl}, which lets only processes with CAP_SYS_PTRACE attach", step)
    if scope == 1 and not privileged:
        step = "Launch it with `command`, or as root: sysctl kernel.yama.ptrace_scope=0"
        return refused(pid, f"{sysctl}, which lets a process trace its own descendants alone", step)
    return refused(pid, "ptrace is not permitted (the process protects itself, or this container lacks SYS_PTRACE)", "Launch it with `command`.")


def refused(pid: int, why: str, step: str) -> StrobeError:
    return StrobeError(Code.FRIDA_ATTACH_FAILED, f"Process {pid} can't be attached to: {why}.", step, value=pid)


def yama_scope() -> int | None:
    try:
        return int(YAMA.read_text())
    except (OSError, ValueError):
        return None


def may_trace_all(status: str) -> bool:
    """CAP_SYS_PTRACE, by the text of a process's /proc/PID/status."""
    words = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(words) and bool(int(words[0], 16) >> CAP_SYS_PTRACE & 1)


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # of another user, or the kernel's
        return ""


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _same_namespace(folder: Path, program: str) -> bool:
    """What is not to be seen counts as the same: other checks tell about it."""
    own = Path("/proc/self")
    for name in ("ns/pid", "ns/user"):
        theirs = _link(folder / name)
        if theirs and theirs != _link(own / name):
            return False
    if not program or _link(folder / "ns/mnt") in ("", _link(own / "ns/mnt")):
        return True
    try:  # a mount namespace of its own may still show the same files
        return all(os.path.samestat((folder / "root" / name).stat(), Path("/", name).stat()) for name in ("", "dev/shm", __file__.lstrip("/")))
    except OSError:
        return False


def _ancestors() -> set[int]:
    """This process and those above it that are Strobe's: the node."""
    found, pid = set(), os.getpid()
    for _ in range(_ANCESTORS_MAX):
        found.add(pid)
        if not _is_actor(Path(f"/proc/{pid}")):
            break
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def _is_actor(folder: Path) -> bool:
    try:
        return any(item.startswith(_OURS) for item in (folder / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _described(pid: int) -> str:
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()} (pid {pid})"
    except OSError:
        return f"process {pid}"
