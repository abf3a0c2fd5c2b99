"""What a process that was attached to prints: its own bytes, whatever else it writes, and where."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.foreign import foreign
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
LINES_S = 15.0
LINES = 20


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(tmp_path / "home") as connected:
        yield connected


async def test_writes_to_other_files_and_failed_ones_are_not_taken_for_output(one: Strobe) -> None:
    """They come from the same call, so that only what they are tells them apart."""
    with foreign(str(program("two_files.c", "-O1"))) as process:
        process.until_said(b"line 1\n")
        session = (await one.call("debug_launch", pid=process.pid, projectRoot=str(TARGETS)))["sessionId"]
        deadline = time.monotonic() + LINES_S
        while (await one.output(session))[0].count(b"\n") < LINES:
            assert time.monotonic() < deadline, f"less than {LINES} lines within {LINES_S:g} s"
            await asyncio.sleep(0.02)
        printed, _, returncode = process.end()
        await one.until_ended(session)
        out, err = await one.output(session)
        assert out.endswith(b"\ndone\n") and printed.encode().endswith(out), out[:200]
        assert (err, returncode) == (b"", 0)
