"""Programs of Debian's packages do the same under Strobe as without it: output, exit status and files; what has symbols is traced from the start."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.debian import WORKS, Work, contents, fill
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.targets import require, without_inherited_signals

pytestmark = pytest.mark.anyio
ALONE_S: Final = 60
PATTERNS: Final = ["**", "malloc", "fopen", "fwrite", "getenv", "qsort", "regexec"]  # of each program's own what it exports; and libc's
OFTEN: Final = {"sort", "perl", "python3", "gcc", "make", "sqlite3", "git hash-object", "sh -c", "tar", "xargs"}  # those in every run
ENV: Final = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    """One node for all, whose environment is that of the programs."""
    async with strobe_mcp(tmp_path_factory.mktemp("debian") / "home") as connected:
        yield connected


@pytest.mark.parametrize("work", [pytest.param(one, id=one.id, marks=[] if one.id in OFTEN else [pytest.mark.full]) for one in WORKS])
async def test_a_program_does_the_same(strobe: Strobe, work: Work, tmp_path: Path) -> None:
    if work.path is None:
        require(work.command[0])
    folder = tmp_path / "work"
    fill(folder)
    alone = await asyncio.to_thread(_alone, work, folder)
    after = contents(folder)
    fill(folder)
    patterns = PATTERNS if work.broad else PATTERNS[1:]
    await strobe.call("debug_trace", add=patterns)
    stdin: dict[str, Any] = {} if work.stdin is None else {"stdin": work.stdin}
    reply = await strobe.call(
        "debug_launch", command=str(work.path), args=list(work.command[1:]), cwd=str(folder), projectRoot=str(folder), env=ENV, **stdin
    )  # fmt: skip
    session = reply["sessionId"]
    status = await strobe.until_ended(session)
    stdout, stderr = await strobe.output(session)
    ended = -status["signal"] if status.get("signal") else status["exitCode"]
    assert (stdout, stderr, ended) == (alone.stdout, alone.stderr, alone.returncode)
    assert contents(folder) == after
    if work.id != "false":  # it calls nothing
        called = await strobe.call("debug_query", sessionId=session, eventType="function_enter", limit=1)
        assert called["totalCount"] + sum(called.get("eventsDropped", {}).values()) > 0, "nothing was traced"
    await strobe.call("debug_session", action="stop", sessionId=session)


def _alone(work: Work, folder: Path) -> subprocess.CompletedProcess[bytes]:
    stdin: dict[str, Any] = {"stdin": subprocess.DEVNULL} if work.stdin is None else {"input": work.stdin.encode()}
    command = [str(work.path), *work.command[1:]]
    return subprocess.run(
        command, capture_output=True, cwd=folder, env=os.environ | ENV, timeout=ALONE_S, check=False, preexec_fn=without_inherited_signals, **stdin
    )  # fmt: skip
