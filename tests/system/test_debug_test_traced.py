"""debug_test with tracePatterns: the run is a session as well, with the calls of the tests' own programs, and all else is as in a plain run."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.all_suites import CARGO, CATCH2, CTEST
from tests.harness.mcp import ENDED, Strobe, ToolError, strobe_mcp
from tests.harness.suites import bench
from tests.harness.targets import program, require
from tests.system.test_debug_test import all_pids, ended, processes_in, progress, quick, run

pytestmark = pytest.mark.anyio
END_S: Final = 60.0


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Strobe]:
    async with strobe_mcp(quick(tmp_path_factory.mktemp("traced") / "home")) as connected:
        yield connected


async def calls(strobe: Strobe, session: str, name: str) -> list[dict[str, Any]]:
    return await strobe.events(session, eventType="function_enter", function={"contains": name}, verbose=True)


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """But for times and folders."""
    outcome = [(one["name"], one.get("file"), one.get("line"), one["message"]) for one in first["failures"]]
    other = [(one["name"], one.get("file"), one.get("line"), one["message"]) for one in second["failures"]]
    return first["summary"] | {"durationMs": 0} == second["summary"] | {"durationMs": 0} and outcome == other


async def test_cargo(strobe: Strobe, tmp_path: Path) -> None:
    require("cargo")
    at = bench(CARGO, tmp_path, "suite")
    plain = await run(strobe, at.root)
    reply = await run(strobe, at.root, tracePatterns=["shop::checked"])
    assert reply["status"] == "completed" and reply["sessionId"] == reply["testRunId"] and "sessionId" not in plain, reply
    assert same(plain["result"], reply["result"])
    found = await calls(strobe, reply["sessionId"], "checked")
    assert found, await strobe.status(reply["sessionId"])
    status = await strobe.until_ended(reply["sessionId"])
    assert any("target/debug/deps/" in one["command"] and one["followed"] for one in status["processes"]), status


async def test_catch2_with_what_it_prints(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(CATCH2, tmp_path, "suite")
    plain = await run(strobe, at.root)
    reply = await run(strobe, at.root, tracePatterns=["checked*"])
    assert same(plain["result"], reply["result"]), reply
    assert await calls(strobe, reply["sessionId"], "checked")


async def test_ctest_and_the_programs_that_it_starts(strobe: Strobe, tmp_path: Path) -> None:
    require("ctest")
    at = bench(CTEST, tmp_path, "suite")
    plain = await run(strobe, at.root)
    reply = await run(strobe, at.root, tracePatterns=["main"])
    assert same(plain["result"], reply["result"]), reply
    found = await calls(strobe, reply["sessionId"], "main")
    pids = {one["pid"] for one in found if one["sourceFile"] and one["sourceFile"].endswith("shop_test.c")}
    assert len(pids) > 1, found


async def test_a_command_of_a_shell(strobe: Strobe, tmp_path: Path) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    numbers = program("numbers.c", "-O0")
    reply = await run(strobe, root, command=f"{numbers} 20; {numbers} 20; exit 3", tracePatterns=["main"])
    assert reply["result"]["framework"] == "generic" and reply["result"]["summary"]["failed"] == 1, reply
    assert len({one["pid"] for one in await calls(strobe, reply["sessionId"], "main") if one["sourceFile"] and one["sourceFile"].endswith("numbers.c")}) == 2
    stdout, _ = await strobe.output(reply["sessionId"])
    assert stdout.count(stdout[: len(stdout) // 2]) == 2 and len(stdout) > 10, stdout


async def test_watches_in_each_program(strobe: Strobe, tmp_path: Path) -> None:
    """A global is read where it lies in each of several processes, an argument from each call; what can be read nowhere is told."""
    root = tmp_path / "plain"
    root.mkdir()
    numbers = program("numbers.c", "-O0")
    watches = [{"variable": "stop", "label": "stopped"}, {"expr": "args[0]", "label": "line"}, {"variable": "no_such_global", "label": "none"}]
    reply = await run(strobe, root, command=f"{numbers} 5; {numbers} 7", tracePatterns=["numbered_line"], watches={"add": watches})
    found = await calls(strobe, reply["sessionId"], "numbered_line")
    assert len(found) == 12 and len({one["pid"] for one in found}) == 2, found
    values = [one["watchValues"] for one in found]
    assert (all(one["stopped"] == 0 for one in values) and {one["line"] for one in values} == set(range(7))) or {1, 7}, values
    assert any("no_such_global" in text for text in reply["warnings"]), reply["warnings"]
    with pytest.raises(ToolError, match="tracePatterns"):
        await strobe.call("debug_test", projectRoot=str(root), command="true", watches={"add": watches})


async def test_the_limit_ends_the_tree(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(CATCH2, tmp_path, "hang")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=4000, tracePatterns=["main"])
    await progress(strobe, begun["testRunId"], "never ends")
    reply = await ended(strobe, begun)
    assert reply["result"]["summary"]["stuck"] == 1 and reply["result"]["summary"]["passed"] == 1, reply
    assert not processes_in(at.root)
    status = await strobe.until_ended(reply["sessionId"])
    assert status["status"] == "exited" and await calls(strobe, reply["sessionId"], "main")


async def test_stop_ends_the_run(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(CATCH2, tmp_path, "hang")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=60_000, tracePatterns=["main"])
    await progress(strobe, begun["testRunId"], "never ends")
    for _ in range(5):  # what holds the session open waits, and is not stuck
        assert "stuck" not in await strobe.call("debug_session", action="status", sessionId=begun["sessionId"])
        await strobe.call("debug_test", action="status", testRunId=begun["testRunId"])
    await strobe.call("debug_session", action="stop", sessionId=begun["sessionId"], retain=True)
    reply = await ended(strobe, begun)
    assert reply["status"] == "failed" and "ended before" in reply["error"], reply
    assert Path(reply["result"]["details"]).exists() and (await strobe.status(begun["sessionId"]))["status"] in ENDED
    assert not processes_in(at.root)


async def test_a_killed_session_process_goes_on(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(CATCH2, tmp_path, "hang")
    begun = await strobe.call("debug_test", projectRoot=str(at.root), timeout=8000, tracePatterns=["main"])
    await progress(strobe, begun["testRunId"], "never ends")
    session = next(pid for pid in all_pids() if _is_session(pid, begun["testRunId"]))
    os.kill(session, signal.SIGKILL)
    deadline = time.monotonic() + END_S
    content: dict[str, Any] = {}
    while content.get("status") in (None, "running"):
        assert time.monotonic() < deadline, content
        reply = await strobe.client.call_tool("debug_test", {"action": "status", "testRunId": begun["testRunId"]})
        content = reply.structured_content or {}
    assert content["result"]["summary"]["stuck"] == 1 and content["result"]["summary"]["passed"] == 1, content
    assert content["sessionId"] == begun["testRunId"] and not processes_in(at.root)
    assert (await strobe.until_ended(begun["testRunId"]))["status"] == "exited"
    assert await calls(strobe, begun["testRunId"], "main")


@pytest.mark.parametrize("wait_s", [0.0, 0.9, 1.1])
async def test_a_node_that_ends_just_after_a_run(wait_s: float, tmp_path: Path) -> None:
    """At any moment of the session's own end; the harness finds what is left."""
    require("g++")
    at = bench(CATCH2, tmp_path, "suite")
    async with strobe_mcp(tmp_path / "home") as strobe:
        reply = await run(strobe, at.root, tracePatterns=["checked*"])
        assert reply["status"] == "completed", reply
        await asyncio.sleep(wait_s)


async def test_what_matches_nothing_is_told(strobe: Strobe, tmp_path: Path) -> None:
    require("g++")
    at = bench(CATCH2, tmp_path, "suite")
    reply = await run(strobe, at.root, tracePatterns=["no_such_function_anywhere"])
    assert any("no_such_function_anywhere" in text for text in reply["warnings"]), reply
    with pytest.raises(ToolError, match="INVALID_PATTERN"):
        await strobe.call("debug_test", projectRoot=str(at.root), tracePatterns=["a::<<<"])


def _is_session(pid: int, run_id: str) -> bool:
    try:
        ours = b"actors.session" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return ours and any(run_id in str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
