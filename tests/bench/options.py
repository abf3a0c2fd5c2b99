"""What the command line asks of every bench, and a home for those that need a node."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.mcp import Strobe, strobe_mcp


@dataclass(frozen=True)
class Options:
    """`quick`: fewer and shorter runs."""

    quick: bool = False

    def times(self, runs: int, quick: int = 2) -> int:
        return quick if self.quick else runs


@asynccontextmanager
async def live_node(settings: Mapping[str, Any] | None = None) -> AsyncIterator[Strobe]:
    """A client of a node of its own in a temporary home with `settings`; unless these say otherwise no function is sampled."""
    with tempfile.TemporaryDirectory(prefix="strobe-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (home / "settings.json").write_text(json.dumps({"sampling.callsPerSecond": 1_000_000_000, **(settings or {})}))
        async with strobe_mcp(home) as strobe:
            yield strobe
