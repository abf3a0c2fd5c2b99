"""debug_test through a real client: real suites of node's own runner, which every machine with node has."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, require

pytestmark = pytest.mark.anyio
SUITES = TARGETS / "frameworks" / "node_test"
END_S = 90.0


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    require("node")
    async with strobe_mcp(quick(tmp_path_factory.mktemp("tests") / "home")) as connected:
        yield connected


def quick(home: Path) -> Path:
    """A status that does not wait for long: what happens meanwhile is to be seen."""
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text('{"test.statusRetryMs": 500}')
    return home


def project(tmp_path: Path, *suites: str, **more: str) -> Path:
    """A project of its own with some of the suites, and files with the given content."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("package.json", *suites):
        shutil.copy(SUITES / name, root / name)
    for name, text in more.items():
        (root / f"{name}.test.mjs").write_text(text)
    return root


async def run(strobe: Strobe, root: Path, **more: Any) -> dict[str, Any]:
    """The end of a run."""
    reply = await strobe.call("debug_test", projectRoot=str(root), **more)
    return await ended(strobe, reply)


async def ended(strobe: Strobe, reply: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + END_S
    while reply["status"] == "running":
        assert time.monotonic() < deadline, reply
        reply = await strobe.call("debug_test", action="status", testRunId=reply["testRunId"])
    return reply


async def progress(strobe: Strobe, run_id: str, name: str) -> dict[str, Any]:
    """The first progress in which a test of that name runs."""
    deadline = time.monotonic() + END_S
    while True:
        reply = await strobe.call("debug_test", action="status", testRunId=run_id)
        if any(name in one for one in reply.get("progress", {}).get("runningTests", [])):
            found: dict[str, Any] = reply["progress"]
            return found
        assert time.monotonic() < deadline and reply["status"] == "running", reply


IMPORT = "import {test} from 'node:test';\n"
HANGS = IMPORT + "test('passes first', () => {});\ntest('never ends', async () => { await new Promise(() => setInterval(() => {}, 1000)); });\n"


async def test_a_suite_is_run_and_told(strobe: Strobe, tmp_path: Path) -> None:
    root = project(tmp_path, "suite.test.mjs")
    reply = await run(strobe, root)
    assert reply["status"] == "completed", reply
    result = reply["result"]
    assert result["framework"] == "node:test"
    assert result["summary"]["passed"] and result["summary"]["failed"] and result["summary"]["skipped"]
    for failure in result["failures"]:
        assert failure["message"] and failure["file"].endswith("suite.test.mjs") and failure["line"] > 0
        assert "node" in failure["rerunCommand"]
    details = json.loads(Path(result["details"]).read_text())
    assert len(details["tests"]) == sum(result["summary"][kind] for kind in ("passed", "failed", "skipped"))
    listed = await strobe.call("debug_test", action="list")
    assert any(one["testRunId"] == reply["testRunId"] and one["status"] == "completed" for one in listed["runs"])


async def test_what_came_of_a_run_stays(strobe: Strobe, tmp_path: Path) -> None:
    """After its process has ended, too."""
    reply = await run(strobe, project(tmp_path, "suite.test.mjs"))
    deadline = time.monotonic() + END_S
    while any("tests" in one for one in (await strobe.call("debug_session", action="list"))["sessions"]):
        assert time.monotonic() < deadline
    again = await strobe.call("debug_test", action="status", testRunId=reply["testRunId"])
    assert again["result"] == reply["result"]


async def test_one_test_of_many(strobe: Strobe, tmp_path: Path) -> None:
    root = project(tmp_path, many=IMPORT + "test('alpha', () => {});\ntest('beta', () => {});\n")
    result = (await run(strobe, root, test="beta"))["result"]
    assert result["summary"]["passed"] == 1 and result["summary"]["failed"] == 0


async def test_a_hung_test_is_known_while_it_runs_and_ended_at_its_limit(strobe: Strobe, tmp_path: Path) -> None:
    root = project(tmp_path, hang=HANGS)
    begun = await strobe.call("debug_test", projectRoot=str(root), timeout=4000)
    now = await progress(strobe, begun["testRunId"], "never ends")
    assert now["currentTest"].endswith("never ends") and now["phase"] == "running"
    reply = await ended(strobe, begun)
    assert reply["result"]["summary"]["stuck"] == 1
    assert "never ends" in reply["result"]["stuck"][0]["name"]
    assert not processes_in(root)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_wait_tells_how_it_gets_on(mode: str, tmp_path: Path) -> None:
    """Notifications only where the client asked for them: numbers that grow, what runs and how many have ended, without secrets."""
    require("node")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    told: list[tuple[float, str]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((progress, message or ""))

    slow = IMPORT + "test('quick', () => {});\ntest('token=abcdefghijklmnop1234 waits', async () => { await new Promise((end) => setTimeout(end, 6000)); });\n"
    async with strobe_mcp(home, mode=mode) as strobe:
        begun = await strobe.call("debug_test", projectRoot=str(project(tmp_path, slow=slow)))
        assert not told
        arguments = {"action": "status", "testRunId": begun["testRunId"]}
        reply = await strobe.client.call_tool("debug_test", arguments, progress_callback=heard)
        await ended(strobe, reply.structured_content or {})
    assert len(told) >= 3 and all(first[0] < second[0] for first, second in itertools.pairwise(told)), told
    assert any("1 of" in words or ": 1 tests" in words for _, words in told) and any("waits, for" in words for _, words in told), told
    assert not any("abcdefghijklmnop1234" in words for _, words in told), told


async def test_two_runs_of_one_project_side_by_side(strobe: Strobe, tmp_path: Path) -> None:
    root = project(tmp_path, "suite.test.mjs")
    first, second = await asyncio.gather(run(strobe, root), run(strobe, root))
    assert first["testRunId"] != second["testRunId"]
    assert {**first["result"]["summary"], "durationMs": 0} == {**second["result"]["summary"], "durationMs": 0}


async def test_baselines_are_the_mean_of_runs_before(strobe: Strobe, tmp_path: Path) -> None:
    slow = IMPORT + "test('takes a while', async () => { await new Promise((end) => setTimeout(end, 2500)); });\n"
    root = project(tmp_path, slow=slow)
    await run(strobe, root)
    begun = await strobe.call("debug_test", projectRoot=str(root))
    now = await progress(strobe, begun["testRunId"], "takes a while")
    assert 2400 < now["currentTestBaselineMs"] < 20_000
    await ended(strobe, begun)


async def test_no_tests_is_an_answer(strobe: Strobe, tmp_path: Path) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    (root / "package.json").write_text('{"name": "empty", "version": "1.0.0"}')
    reply = await strobe.call("debug_test", projectRoot=str(root))
    assert reply["noTests"]["hint"], reply


async def test_bad_input_is_named(strobe: Strobe, tmp_path: Path) -> None:
    for arguments, word in (
        ({"projectRoot": str(tmp_path), "framework": "junit9"}, "junit9"),
        ({"projectRoot": "not/absolute"}, "not/absolute"),
        ({"action": "status"}, "testRunId"),
        ({"action": "status", "testRunId": "no-such-run"}, "no-such-run"),
        ({}, "projectRoot"),
    ):
        with pytest.raises(ToolError, match=word):
            await strobe.call("debug_test", **arguments)


async def test_a_killed_session_process_goes_on_with_the_run(strobe: Strobe, tmp_path: Path) -> None:
    slow = IMPORT + "for (let i = 0; i < 30; i++) test('part ' + i, async () => { await new Promise((end) => setTimeout(end, 150)); });\n"
    begun = await strobe.call("debug_test", projectRoot=str(project(tmp_path, slow=slow)))
    await progress(strobe, begun["testRunId"], "part")
    session = next(pid for pid in all_pids() if _owns(pid, begun["testRunId"]))
    os.kill(session, signal.SIGKILL)
    deadline = time.monotonic() + END_S
    reply: dict[str, Any] = begun
    while reply["status"] == "running":
        assert time.monotonic() < deadline
        try:
            reply = await strobe.call("debug_test", action="status", testRunId=begun["testRunId"])
        except ToolError as error:
            assert error.code in ("ACTOR_UNAVAILABLE", "TIMEOUT"), error
    assert reply["result"]["summary"]["passed"] == 30


async def test_a_run_ends_with_its_client(tmp_path: Path) -> None:
    require("node")
    root, home = project(tmp_path, hang=HANGS), quick(tmp_path / "home")
    async with strobe_mcp(home, keep_node=True) as strobe:
        begun = await strobe.call("debug_test", projectRoot=str(root), timeout=60_000)
        await progress(strobe, begun["testRunId"], "never ends")
        assert processes_in(root)
    async with strobe_mcp(home) as strobe:
        deadline = time.monotonic() + END_S
        while processes_in(root):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        reply = await strobe.call("debug_test", action="status", testRunId=begun["testRunId"])
        assert reply["status"] == "failed" and "ended before" in reply["error"]


def all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _owns(pid: int, run_id: str) -> bool:
    """Whether it is the session process that has files of the run open."""
    try:
        ours = b"actors.session" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return ours and any(run_id in str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def processes_in(root: Path) -> list[int]:
    """What runs with that folder as its own."""
    found = []
    for pid in all_pids():
        try:
            if Path(f"/proc/{pid}/cwd").readlink() == root:
                found.append(pid)
        except OSError:
            continue
    return found
