"""Whether a node is still the one that it was: no process of it died, and none has grown."""

from __future__ import annotations

from pathlib import Path

from strobe.client import Client
from tests.harness.node import status

GROWTH_BYTES = 96 << 20  # far above what caches and allocators take in a short while; a leak of one message in ten would be more


async def generations(client: Client) -> dict[str, tuple[int | None, int]]:
    """Name → (pid, generation) of all that run."""
    return {row.name: (row.pid, row.generation) for row in (await status(client)).actors if row.pid}


def resident(pids: list[int | None]) -> dict[int, int]:
    """Bytes by pid."""
    found = {}
    for pid in pids:
        if pid is not None:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            found[pid] = pages * 4096
    return found


def grown(before: dict[int, int], after: dict[int, int]) -> dict[int, int]:
    return {pid: after[pid] - size for pid, size in before.items() if after.get(pid, 0) - size > GROWTH_BYTES}
