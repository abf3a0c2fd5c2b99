"""What a node holds while it works: memory and open files of each of its processes that stay, and what its home and shared memory take on disk."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from strobe import paths
from strobe.client import Client
from strobe.errors import StrobeError
from tests.harness import node

LEAST: Final = 12  # looks, below which nothing is said
SLACK: Final = {"rssMiB": 12.0, "fds": 4.0, "diskMiB": 16.0, "shmMiB": 64.0}  # beside a tenth; of shared memory: what targets that live just now have
MIB: Final = 1 << 20


@dataclass
class Growth:
    home: Path
    _looks: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def look(self) -> None:
        """The processes that every session has of its own come and go: they are not of these."""
        try:
            with node.environment(self.home, None, {}):
                async with Client(self.home) as client:
                    status = await node.status(client)
                pools = paths.pool_path("x").name[:-1]
        except StrobeError:
            return  # it is not up yet
        for name, pid in [("supervisor", status.pid), *((row.name, row.pid) for row in status.actors if ":" not in row.name)]:
            if pid:
                self._process(name, pid)
        self._looks["home diskMiB"].append(_size(self.home) / MIB)
        self._looks["pools shmMiB"].append(sum(_allocated(pool) for pool in Path("/dev/shm").glob(f"{pools}*")) / MIB)

    def _process(self, name: str, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            rss, files = process.memory_info().rss / MIB, process.num_fds()
        except psutil.NoSuchProcess:
            return
        self._looks[f"{name} rssMiB"].append(rss)
        self._looks[f"{name} fds"].append(files)

    def told(self) -> dict[str, list[float]]:
        """By what it is of: the medians of the second quarter and of the last."""
        return {name: [round(one, 1) for one in _quarters(looks)] for name, looks in self._looks.items() if len(looks) >= LEAST}

    def grown(self) -> dict[str, list[float]]:
        """Those where the last quarter is more than the second by a tenth and the slack."""
        return {name: [before, after] for name, (before, after) in self.told().items() if after > before * 1.1 + SLACK[name.rpartition(" ")[2]]}


def _quarters(looks: list[float]) -> tuple[float, float]:
    quarter = len(looks) // 4
    return statistics.median(looks[quarter : 2 * quarter]), statistics.median(looks[-quarter:])


def _size(folder: Path) -> int:
    return sum(_allocated(file) for file in folder.rglob("*"))


def _allocated(file: Path) -> int:
    try:
        return file.lstat().st_blocks * 512
    except OSError:
        return 0  # gone meanwhile
