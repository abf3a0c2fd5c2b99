"""A target that the kernel kills for want of memory, in a real memory cgroup, and one that somebody else kills there: only the first is told as that."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.harness import node
from tests.harness.mcp import strobe_mcp
from tests.harness.targets import program

pytestmark = pytest.mark.anyio
LIMIT_BYTES: Final = 128 << 20
ROOTS: Final = {Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes", Path("/sys/fs/cgroup"): "memory.max"}  # version 1, version 2


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory cgroup with a small limit."""
    for root, limit in ROOTS.items():
        folder = root / f"strobe-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / limit).exists():
            break
        folder.rmdir()
    else:
        pytest.skip("no memory cgroup can be made here")
    try:
        (folder / limit).write_text(str(LIMIT_BYTES))
        yield folder
    finally:
        folder.rmdir()


@pytest.fixture
def eater(group: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Waits for a line in the group, and then takes memory until it is ended."""
    command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$1"', str(group), str(program("eater.c", "-O0"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"hungry\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("killed_by", ["kernel", "somebody"])
async def test_only_what_the_cgroup_counted_was_for_want_of_memory(home: Path, eater: subprocess.Popen[bytes], killed_by: str) -> None:
    async with strobe_mcp(home) as strobe:
        launched = await strobe.call("debug_launch", pid=eater.pid, projectRoot=str(home.parent))
        session = launched["sessionId"]
        if killed_by == "kernel":
            assert eater.stdin is not None
            eater.stdin.write(b"\n")
            eater.stdin.flush()
        else:
            os.kill(eater.pid, signal.SIGKILL)
        await node.until(lambda: _ended(eater), within_s=60)
        status = await strobe.until_ended(session)
        (crash,) = await strobe.events(session, eventType="crash")
        await strobe.call("debug_session", action="stop", sessionId=session)
    assert status["signal"] == signal.SIGKILL
    if killed_by == "kernel":
        assert "out of memory: the oom_kill count of its cgroup rose from 0 to 1" in crash["text"]
    else:
        assert "sender unknown" in crash["text"]


async def _ended(process: subprocess.Popen[bytes]) -> bool:
    """It stays a zombie: its exit status is read from that."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
