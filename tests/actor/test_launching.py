"""A launch that is cancelled in its first moments, while a thread makes the pool or starts the keeper, leaves neither behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from actors.session.launching import launch
from strobe import paths
from strobe.protocol.session import Launch
from tests.harness.targets import TARGETS, program

BEGINS_S = 10.0
STALE = b"of a session of that name that nobody knows any more"


class NobodyToAsk:
    """The launch is over before it asks any actor."""

    async def ask(self, *_arguments: Any, **_more: Any) -> Any:
        raise AssertionError("the launch went on")


def of(folder: Path, target: Path) -> list[psutil.Process]:
    """Those that were started with a path of this test, or run its target."""
    found = psutil.process_iter(["cmdline", "exe"])
    return [one for one in found if one.info["exe"] == str(target) or any(str(folder) in part for part in one.info["cmdline"] or [])]


@pytest.mark.parametrize("instant", ["pool", "keeper"])
async def test_cancelled(instant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path))
    folder = tmp_path / "target"
    folder.mkdir()
    target = program("stopping.c")
    ask = Launch(
        session_id="stopping-1", command=str(target), args=["waits"], cwd=str(TARGETS), project_root=str(TARGETS), env=dict(os.environ), stdin=None, pty=False,
        symbols_path=None, patterns=[],
    )  # fmt: skip
    pool = paths.pool_path(ask.session_id)

    def replaced() -> bool:
        try:
            return pool.stat().st_size > len(STALE)
        except FileNotFoundError:
            return False

    reached: dict[str, Callable[[], object]] = {"pool": replaced, "keeper": lambda: (folder / "launch").exists()}
    pool.write_bytes(STALE)
    launching = asyncio.ensure_future(launch(NobodyToAsk(), ask, folder, None))
    async with asyncio.timeout(BEGINS_S):
        while not reached[instant]():
            await asyncio.sleep(0)
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    assert not pool.exists()
    async with asyncio.timeout(BEGINS_S):
        while of(folder, target):  # a keeper whose target was killed is on its way out
            await asyncio.sleep(0.01)
