"""What the stuck-detector reads of real process trees, alone and as an actor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.stuck_detector.diagnosis import Diagnosis
from actors.stuck_detector.sample import tree
from strobe.errors import Code, StrobeError
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply
from tests.harness.node import node, run

BUSY = """
import os, subprocess, sys, threading, time
child = subprocess.Popen(["sleep", "60"])
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("up", child.pid, flush=True)
while True:
    pass
"""


@pytest.fixture
def busy() -> Iterator[tuple[int, int]]:
    """(pid of a process with one spinning and one sleeping thread, pid of its sleeping child)."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    yield process.pid, child
    os.killpg(process.pid, 9)
    process.communicate()


async def nobody(*_: Any, **__: Any) -> Any:
    raise StrobeError(Code.ACTOR_UNAVAILABLE, "There is no indexer.", "", value=None)


def diagnosed(pid: int) -> DiagnoseReply:
    return run(Diagnosis(nobody).of(pid, with_stacks=False))


def test_threads_of_the_whole_tree_are_told_apart(busy: tuple[int, int]) -> None:
    root, child = busy
    reply = diagnosed(root)
    threads = {(thread["pid"], thread["tid"]): thread for thread in reply.threads}
    assert {pid for pid, _ in threads} == {root, child}
    assert sum(1 for pid, _ in threads if pid == root) == 2
    assert reply.cpu_share > 0.05 and reply.idle_ms == 0
    assert threads[(root, root)]["state"] == "R"
    asleep = threads[(child, child)]
    assert asleep["state"] == "S" and asleep["name"] == "sleep" and asleep["syscall"] in (None, 35, 230)  # nanosleep, clock_nanosleep (x86-64)


def test_idle_tree_says_so() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        until = time.monotonic() + 10
        while (reply := diagnosed(process.pid)).idle_ms == 0:
            assert time.monotonic() < until
        assert reply.cpu_share == 0 and reply.idle_ms >= 250
    finally:
        process.kill()
        process.wait()


def test_process_that_is_gone_is_an_error() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(StrobeError) as caught:
        tree(process.pid)
    assert caught.value.code is Code.PROCESS_EXITED and caught.value.value == process.pid


def test_actor_answers_diagnose(tmp_path: Path, busy: tuple[int, int]) -> None:
    async def check() -> None:
        async with node(tmp_path, roles=("stuck_detector",)) as client:
            reply: DiagnoseReply = await client.ask("stuck_detector", Diagnose(pid=busy[0]))
            assert {thread["pid"] for thread in reply.threads} == set(busy)
            with pytest.raises(StrobeError, match="PROCESS_EXITED"):
                await client.ask("stuck_detector", Diagnose(pid=2**22 + 1))

    run(check())
