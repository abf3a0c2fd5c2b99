"""What `doctor` looks at: one function a check, each answers one Finding or several."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import strobe
from strobe import artifacts, paths
from strobe.config import load_settings
from strobe.demo.machine import tracing_missing
from strobe.errors import StrobeError
from strobe.render.values import byte_count
from strobe.supervisor.scratch import sweep

FREE_BYTES_MIN: Final = 1 << 30
SHM_BYTES_MIN: Final = 64 << 20  # two sessions' pools
FRIDA_S: Final = 20.0
# In a child: a machine where Frida crashes is what this looks for. The child's child is attached to, as a target would be.
_FRIDA_TRIAL: Final = """
import subprocess, frida
target = subprocess.Popen(["sleep", "20"])
try:
    frida.attach(target.pid).detach()
    print(frida.__version__)
finally:
    target.kill()
    target.wait()
"""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: Literal["ok", "warning", "failed"]
    detail: str
    next_step: str = ""


def check_versions() -> Finding:
    detail = f"strobe {strobe.__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()}"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return Finding("versions", "failed", detail, "Only Linux on x86-64 is supported here yet.")
    return Finding("versions", "ok", detail)


def check_home() -> Finding:
    home = paths.private_folder(paths.home())
    free = shutil.disk_usage(home).free
    detail = f"{home}, {byte_count(free)} free, sockets in {paths.run_folder()}"
    if free < FREE_BYTES_MIN:
        return Finding("home", "warning", detail, "Recordings need room: free some, or set STROBE_HOME to a larger disk.")
    return Finding("home", "ok", detail)


def check_settings() -> Finding:
    warnings = load_settings().warnings
    if warnings:
        return Finding("settings", "warning", " ".join(warnings), "Correct the file; until then the defaults are used.")
    return Finding("settings", "ok", "no complaints")


def check_parts() -> Finding:
    try:
        found = [artifacts.artifact(name) for name in ("strobe-keeper", "strobe-recorder.so", "agent.js")]
    except StrobeError as error:
        return Finding("built parts", "failed", error.what, error.next_step)
    return Finding("built parts", "ok", ", ".join(str(path) for path in found))


def check_ptrace() -> Finding:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    yama = f"ptrace_scope {scope.read_text().strip()}" if scope.exists() else "no Yama"
    missing = tracing_missing()
    if missing is not None:
        return Finding("ptrace", "failed", f"{missing.what} ({yama})", missing.help)
    return Finding("ptrace", "ok", f"allowed ({yama})")


def check_shared_memory() -> Finding:
    facts = os.statvfs("/dev/shm")
    free, size = facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize
    detail = f"/dev/shm: {byte_count(free)} of {byte_count(size)} free"
    if facts.f_flag & os.ST_NOEXEC:
        detail += ", noexec (nothing of Strobe's is executed there)"
    if free < SHM_BYTES_MIN:
        return Finding("shared memory", "warning", detail, "A session wants 32 MiB: free some, or start the container with --shm-size=256m.")
    return Finding("shared memory", "ok", detail)


def check_frida() -> Finding:
    folder = tempfile.mkdtemp(prefix="strobe-doctor-")
    try:
        trial = subprocess.run(
            [sys.executable, "-c", _FRIDA_TRIAL], capture_output=True, text=True, timeout=FRIDA_S, check=False, env={**os.environ, "TMPDIR": folder}
        )
    except subprocess.TimeoutExpired:
        return Finding("frida", "failed", f"attaching to a child took more than {FRIDA_S:g} s", "See whether a security module stops its helper.")
    finally:
        sweep(Path(folder))
    if trial.returncode != 0:
        last = (trial.stderr.strip().splitlines() or [f"exit status {trial.returncode}"])[-1]
        return Finding("frida", "failed", last[:300], "Without it programs run and are captured, but not traced. See the ptrace check.")
    return Finding("frida", "ok", f"{trial.stdout.strip()}, attached to a child and left it")


CHECKS: Final[tuple[Callable[[], Finding], ...]] = (
    check_versions, check_home, check_settings, check_parts, check_ptrace, check_shared_memory, check_frida,
)  # fmt: skip
