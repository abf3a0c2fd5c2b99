"""What the demo needs of the machine, and the one thing that would help where it is not there."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

PTRACE_ATTACH: Final = 16  # sys/ptrace.h
PTRACE_DETACH: Final = 17
PR_SET_PTRACER: Final = 0x59616D61  # linux/prctl.h
PR_SET_PTRACER_ANY: Final = ctypes.c_ulong(-1).value
_YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_C_FLAGS: Final = ("-std=c11", "-D_GNU_SOURCE", "-g", "-O0", "-Wall", "-Wextra")


@dataclass(frozen=True)
class Missing:
    """`what` is not possible here; `help` is the one thing that would change that."""

    what: str
    help: str


def tracing_missing() -> Missing | None:
    """None: this user may trace processes of their own. Tried on a child."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
        signal.pause()
        os._exit(0)
    try:
        error = _attach_error(child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None if error is None else _explained(error)


def _attach_error(pid: int) -> int | None:
    """errno of PTRACE_ATTACH; None when it works."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) != 0:
        return ctypes.get_errno()
    os.waitpid(pid, 0)
    libc.ptrace(PTRACE_DETACH, pid, None, None)
    return None


def _explained(error: int) -> Missing:
    what = f"This machine does not let a process trace another one (ptrace: {os.strerror(error)})."
    scope = _YAMA.read_text().strip() if _YAMA.exists() else "0"
    if scope in ("2", "3"):
        return Missing(what, "Allow it: sudo sysctl kernel.yama.ptrace_scope=1 (a value of 3 needs a reboot first).")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return Missing(what, "Start the container with --cap-add=SYS_PTRACE.")
    return Missing(what, "Allow ptrace for your user: seccomp or a security module of this machine forbids it.")


def compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def build_ledger(folder: Path) -> Path:
    """The program, built in `folder` next to a copy of its source. Raises VALIDATION_ERROR when there is no compiler or it refuses."""
    cc = compiler()
    if cc is None:
        raise StrobeError(
            Code.VALIDATION_ERROR, "There is no C compiler (cc, gcc or clang) on PATH.", "Install one: apt-get install gcc libc6-dev.", value="cc"
        )
    source = folder / "ledger.c"
    shutil.copyfile(Path(__file__).with_name("ledger.c"), source)
    done = subprocess.run([cc, *_C_FLAGS, "-o", str(folder / "ledger"), str(source)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        next_step = "Install the C library's headers too: apt-get install libc6-dev." if "stdio.h" in done.stderr else "Check the compiler."
        raise StrobeError(Code.VALIDATION_ERROR, f"{cc} could not build the demo program:\n{done.stderr.strip()}", next_step, value=cc)
    return folder / "ledger"
