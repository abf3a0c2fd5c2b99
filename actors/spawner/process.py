"""What /proc tells about a target (proc(5)): enough to know who holds it and who is in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from strobe.errors import Code, StrobeError

AGENT_MAPPING = "frida-agent"


def gone(pid: int) -> StrobeError:
    return StrobeError(Code.PROCESS_EXITED, f"Process {pid} has ended.", "Launch it again; its output and exit status are kept.", value=pid)


@dataclass(frozen=True, slots=True)
class Mapping:
    start: int
    end: int
    permissions: str
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class TargetProcess:
    """One process by pid. Everything raises PROCESS_EXITED once it is gone or a zombie."""

    pid: int

    def _read(self, name: str) -> str:
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text(errors="surrogateescape")
        except (FileNotFoundError, ProcessLookupError):
            raise gone(self.pid) from None

    def state(self) -> str:
        """R, S, D, T, t …"""
        state = self._read("stat").rpartition(")")[2].split()[0]
        if state in "ZX":
            raise gone(self.pid)
        return state

    def status(self, key: str) -> str:
        found = re.search(rf"^{key}:\s*(.*)$", self._read("status"), re.MULTILINE)
        if found is None:
            raise gone(self.pid)
        return found[1]

    def tracer(self) -> int:
        return int(self.status("TracerPid"))

    def program_counter(self) -> int | None:
        """The main thread's, or None while it runs."""
        try:
            words = self._read("syscall").split()
        except PermissionError:
            return None
        return int(words[-1], 16) if len(words) > 1 else None

    def threads(self) -> frozenset[int]:
        try:
            return frozenset(int(name) for name in os.listdir(f"/proc/{self.pid}/task"))  # noqa: PTH208 (asked for often)
        except FileNotFoundError:
            raise gone(self.pid) from None

    def mappings(self) -> list[Mapping]:
        found = []
        for line in self._read("maps").splitlines():
            parts = line.split(maxsplit=5)
            start, end = parts[0].split("-")
            found.append(Mapping(int(start, 16), int(end, 16), parts[1], int(parts[2], 16), parts[5] if len(parts) > 5 else ""))
        if not found:
            raise gone(self.pid)
        return found

    def injected_mappings(self) -> frozenset[int]:
        """Starts of the mappings that an attached Frida has: its agent's, and any anonymous one that is writable and executable."""
        return frozenset(m.start for m in self.mappings() if AGENT_MAPPING in m.path or (m.permissions.startswith("rwx") and not m.path))


def describe(pid: int) -> str:
    """`gdb (pid 123)`."""
    try:
        return f"{Path(f'/proc/{pid}/comm').read_text().strip()} (pid {pid})"
    except OSError:
        return f"pid {pid}"
