"""Test runs that hang, through a real client: what is said while they run, and what they hung on once they are ended. Real frameworks, real deadlocks."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.all_suites import CARGO, CATCH2, PYTEST
from tests.harness.mcp import Strobe, strobe_mcp
from tests.harness.suites import Suite, bench
from tests.harness.targets import require
from tests.system.test_debug_test import HANGS, all_pids, ended, processes_in, progress, project, quick, run

pytestmark = pytest.mark.anyio
SUSPECTED_S: Final = 40.0
KILL_S: Final = 12.0 + 5.0  # a diagnosis may take so long, and a busy machine


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    async with strobe_mcp(quick(tmp_path_factory.mktemp("stuck") / "home")) as connected:
        yield connected


def suite_with(suite: Suite, role: str, *files: str) -> Suite:
    return replace(suite, sets={**suite.sets, role: files})


async def suspected(strobe: Strobe, run_id: str) -> dict[str, Any]:
    """The first warning while the run goes on."""
    deadline = time.monotonic() + SUSPECTED_S
    while True:
        reply = await strobe.call("debug_test", action="status", testRunId=run_id)
        if warnings := reply.get("progress", {}).get("warnings"):
            found: dict[str, Any] = warnings[0]
            return found
        assert time.monotonic() < deadline and reply["status"] == "running", reply


async def test_two_mutexes(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(suite_with(CATCH2, "deadlock", "deadlock.cpp"), tmp_path, "deadlock")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=12_000)
    warning = await suspected(strobe, begun["testRunId"])
    assert warning["testName"] == "transfers both ways" and warning["diagnosis"].startswith("deadlock, proven:"), warning
    result = (await ended(strobe, begun))["result"]
    assert result["summary"] | {"durationMs": 0} == {"passed": 1, "failed": 0, "skipped": 0, "stuck": 1, "durationMs": 0}
    (stuck,) = result["stuck"]
    assert stuck["name"] == "transfers both ways" and stuck["kind"] == "deadlock" and stuck["elapsedMs"] >= 12_000
    assert any("transfer" in name for name in stuck["suggestedTraces"]), stuck
    assert {edge["name"] for edge in stuck["waitGraph"]["edges"] if edge["kind"] == "mutex"} == {"accounts", "journal"}, stuck["waitGraph"]
    assert sum(any(frame.startswith("transfer") and "deadlock.cpp:" in frame for frame in thread["stack"]) for thread in stuck["threads"]) == 2
    assert not processes_in(at.root)


async def test_python_locks(strobe: Strobe, tmp_path: Path) -> None:
    at = bench(suite_with(PYTEST, "deadlock", "test_deadlock.py"), tmp_path, "deadlock")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=12_000, env={"PATH": at.path})
    warning = await suspected(strobe, begun["testRunId"])
    assert warning["testName"].endswith("test_transfers_both_ways") and warning["diagnosis"].startswith("deadlock"), warning
    (stuck,) = (await ended(strobe, begun))["result"]["stuck"]
    assert stuck["kind"] == "deadlock" and len(stuck["threads"]) == 2


async def test_a_loop_in_rust(strobe: Strobe, tmp_path: Path) -> None:
    require("cargo")
    at = bench(suite_with(CARGO, "loop", "loop.rs as src/lib.rs"), tmp_path, "loop")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=20_000)
    warning = await suspected(strobe, begun["testRunId"])
    assert warning["testName"] == "loops" and warning["diagnosis"].startswith("infinite loop"), warning
    result = (await ended(strobe, begun))["result"]
    (stuck,) = result["stuck"]
    assert (stuck["name"], stuck["kind"], result["summary"]["passed"]) == ("loops", "infinite_loop", 1), result
    assert any("collatz_without_end" in frame for thread in stuck["threads"] for frame in thread["stack"]), stuck["threads"]


async def test_what_never_settles(strobe: Strobe, tmp_path: Path) -> None:
    """A timer that comes again and again looks like honest waiting: nothing is claimed while it runs, and the end says what it waited for."""
    require("node")
    root = project(tmp_path, hang=HANGS)
    begun = await strobe.call("debug_test", projectRoot=str(root), timeout=6000)
    reply = begun
    while reply["status"] == "running":
        assert not reply["progress"].get("warnings"), reply
        reply = await strobe.call("debug_test", action="status", testRunId=begun["testRunId"])
    (stuck,) = reply["result"]["stuck"]
    assert "never ends" in stuck["name"] and stuck["kind"] not in ("deadlock", "infinite_loop") and stuck["threads"], stuck
    assert not processes_in(root)


async def test_slow_and_honest(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(suite_with(CATCH2, "slow", "slow.cpp"), tmp_path, "slow")
    reply = await strobe.call("debug_test", projectRoot=str(at.root), timeout=60_000)
    deadline = time.monotonic() + 90
    while reply["status"] == "running":
        assert not reply["progress"].get("warnings") and time.monotonic() < deadline, reply
        reply = await strobe.call("debug_test", action="status", testRunId=reply["testRunId"])
    assert reply["result"]["summary"]["passed"] == 3, reply


async def test_a_detector_that_does_not_answer_holds_up_nothing(tmp_path: Path) -> None:
    """It is stopped, then killed: a run goes on, and its limit is kept to in both cases."""
    require("node")
    root = project(tmp_path, hang=HANGS)
    async with strobe_mcp(quick(tmp_path / "home")) as strobe:
        begun = await strobe.call("debug_test", projectRoot=str(root), timeout=2000)
        await progress(strobe, begun["testRunId"], "never ends")
        detector = _detector(tmp_path / "home")
        os.kill(detector, signal.SIGSTOP)
        try:
            since = time.monotonic()
            (stuck,) = (await ended(strobe, begun))["result"]["stuck"]
            assert time.monotonic() - since < KILL_S + 2 and stuck["diagnosis"].startswith("not known"), stuck
        finally:
            os.kill(detector, signal.SIGKILL)
        assert not processes_in(root)
        (root / "hang.test.mjs").unlink()
        shutil.copy(Path(__file__).parents[1] / "targets/frameworks/node_test/suite.test.mjs", root)
        assert (await run(strobe, root))["result"]["summary"]["passed"]


async def test_a_successor_of_the_session_tells_what_it_hung_on(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(suite_with(CATCH2, "deadlock", "deadlock.cpp"), tmp_path, "deadlock")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=15_000)
    await suspected(strobe, begun["testRunId"])
    session = next(pid for pid in all_pids() if _runs(pid, "actors.session") and any(begun["testRunId"] in one for one in _open_files(pid)))
    os.kill(session, signal.SIGKILL)
    deadline = time.monotonic() + SUSPECTED_S
    while True:
        reply = await strobe.client.call_tool("debug_test", {"action": "status", "testRunId": begun["testRunId"]})
        content = reply.structured_content or {}
        if content.get("status") not in (None, "running"):
            break
        assert time.monotonic() < deadline, content
    (stuck,) = content["result"]["stuck"]
    assert stuck["kind"] == "deadlock" and content["result"]["summary"]["stuck"] == 1, content
    assert not processes_in(at.root)


def _detector(home: Path) -> int:
    found = [pid for pid in all_pids() if _runs(pid, "actors.stuck_detector") and f"STROBE_HOME={home}".encode() in _environment(pid)]
    (pid,) = found
    return pid


def _runs(pid: int, module: str) -> bool:
    try:
        return module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _open_files(pid: int) -> list[str]:
    try:
        return [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
