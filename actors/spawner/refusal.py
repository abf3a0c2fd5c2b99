"""Why Frida cannot, or could not, enter a process: found out, and said in words that lead somewhere."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from actors.spawner.process import TargetProcess, describe
from strobe.errors import Code, StrobeError

DYING_S: Final = 0.5
POLL_S: Final = 0.005
HOST: Final = b"\0actors.spawner.host\0"
YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")


def attach_failed(pid: int, why: str, next_step: str) -> StrobeError:
    return StrobeError(Code.FRIDA_ATTACH_FAILED, f"Process {pid} cannot be entered: {why}.", next_step, value=pid)


def check_free(target: TargetProcess) -> None:
    """Errors: PROCESS_EXITED; FRIDA_ATTACH_FAILED when another debugger holds it (Frida would wait 10 s to find out)."""
    target.state()
    tracer = target.tracer()
    if tracer and not _is_host(tracer):  # that lets go by itself
        raise attach_failed(target.pid, f"{describe(tracer)} traces it already", "Detach that debugger, then try again.")


def _is_host(tracer: int) -> bool:
    """A thread of Frida's, in this process or in one whose actor is gone."""
    try:
        return Path(f"/proc/self/task/{tracer}").exists() or HOST in Path(f"/proc/{tracer}/cmdline").read_bytes()
    except OSError:
        return False


async def explain(target: TargetProcess, error: Exception) -> StrobeError:
    """The error to reply when a step of a visit failed with `error`. A target that is dying gets the time to be dead."""
    deadline = time.monotonic() + DYING_S
    while time.monotonic() < deadline:
        try:
            check_free(target)
        except StrobeError as found:
            return found
        await asyncio.sleep(POLL_S)
    words = str(error).strip().rstrip(".") or "it took too long"
    if type(error).__name__ == "PermissionDeniedError":
        return attach_failed(target.pid, f"ptrace is not permitted ({words}){_yama()}", _permission_step(target))
    return attach_failed(target.pid, words, "It runs on untraced. Check that it is a glibc program that nothing else instruments (`strobe-ctl doctor`).")


def _yama() -> str:
    try:
        scope = YAMA.read_text().strip()
    except OSError:
        return ""
    return f", kernel.yama.ptrace_scope is {scope}" if scope != "0" else ""


def _permission_step(target: TargetProcess) -> str:
    if _yama():
        return "Launch the program through Strobe instead of attaching to it, or as root: sysctl kernel.yama.ptrace_scope=0"
    owner = target.status("Uid").split()[1]
    return f"It runs as uid {owner}: run Strobe as that user. In a container, allow the capability SYS_PTRACE."
