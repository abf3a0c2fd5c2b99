"""What is mapped where in a process, and how it may be used (proc_pid_maps(5))."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path

from strobe.modules import RECORDER


@dataclass(frozen=True, slots=True)
class Mapping:
    start: int
    end: int
    protection: str  # rwxp
    name: str  # path, [heap], "" for anonymous memory

    @property
    def writable(self) -> bool:
        return self.protection[1] == "w"

    def said(self) -> str:
        return f"{self.name or 'anonymous memory'} ({self.protection})"


class Mappings:
    """At one moment."""

    def __init__(self, text: str) -> None:
        self._all = [_parsed(line) for line in text.splitlines() if line]
        self._starts = [one.start for one in self._all]

    @classmethod
    def of(cls, pid: int) -> Mappings:
        """Raises FileNotFoundError, ProcessLookupError once the process is gone."""
        return cls(Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape"))

    def at(self, address: int) -> Mapping | None:
        index = bisect.bisect_right(self._starts, address) - 1
        return self._all[index] if index >= 0 and address < self._all[index].end else None

    def refusal(self, address: int, size: int, pool: str) -> str | None:
        """Why these bytes may not be written; None when they may. `pool`: path of Strobe's own shared memory in the target."""
        at = address
        while at < address + size:
            mapping = self.at(at)
            if mapping is None:
                return f"nothing is mapped at {at:#x}"
            if mapping.name.removesuffix(" (deleted)") == pool or Path(mapping.name).name == RECORDER:
                return f"{at:#x} is in Strobe's own memory in the target, {mapping.name}"
            if not mapping.writable:
                return f"{at:#x} is in read-only memory: {mapping.said()}"
            at = mapping.end
        return None


def _parsed(line: str) -> Mapping:
    parts = line.split(maxsplit=5)
    start, end = (int(bound, 16) for bound in parts[0].split("-"))
    return Mapping(start, end, parts[1], parts[5] if len(parts) > 5 else "")
