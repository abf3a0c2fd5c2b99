"""Whether the kernel killed for want of memory: the target's own cgroup counts it (cgroup-v2 memory.events; v1 memory.oom_control)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_FILES_BYTES_MAX: Final = 4096


def oom_file(pid: int, root: Path = _ROOT, proc: Path = Path("/proc")) -> Path | None:
    """The file that counts kills in the cgroup of `pid`; None where there is none that can be read."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = path.lstrip("/")
        tries = [root / below / "memory.events"] if not controllers else []
        if "memory" in controllers.split(","):
            tries = [root / "memory" / below / "memory.oom_control"]
        found = next((file for file in tries if oom_kills(file) is not None), None)
        if found is not None:
            return found
    return None


def oom_kills(file: Path | None) -> int | None:
    """How many were killed so far; None: not known."""
    if file is None:
        return None
    try:
        text = file.read_text(errors="replace")[:_FILES_BYTES_MAX]
    except OSError:
        return None
    return next((int(words[1]) for line in text.splitlines() if (words := line.split())[:1] == ["oom_kill"] and words[1].isdigit()), None)
