"""What goes wrong by the caller's doing: each with its code, the value at fault and the next step, and nothing left behind (SPEC §4)."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from strobe.client import Client
from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.node import status, until
from tests.harness.targets import TARGETS, program, require

pytestmark = pytest.mark.anyio
ENDS_S = 30.0
E_MACHINE = 18  # offset in the ELF header, elf(5)
EM_AARCH64 = 183


@pytest.fixture(scope="module")
async def strobe(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One client and node for all tests of this file."""
    async with strobe_mcp(tmp_path_factory.mktemp("errors") / "home") as connected:
        yield connected


async def refused(strobe: Strobe, tool: str, code: str, **arguments: Any) -> dict[str, Any]:
    """The error's content, after checking what every error must have."""
    with pytest.raises(ToolError) as raised:
        await strobe.call(tool, **arguments)
    content = dict(raised.value.content)
    assert content["code"] == code, content
    assert content["what"]
    assert content["nextStep"]
    assert "Traceback" not in str(content)
    assert ".py" not in content["what"]
    return content


async def launch_refused(strobe: Strobe, command: Path | str, code: str = "VALIDATION_ERROR", **more: Any) -> dict[str, Any]:
    content = await refused(strobe, "debug_launch", code, command=str(command), projectRoot=str(TARGETS), **more)
    assert (await strobe.call("debug_session", action="list"))["sessions"] == []
    return content


@pytest.fixture
async def stopped(strobe: Strobe) -> Any:
    """Launches; what is still there at the end is stopped."""
    started: list[str] = []

    async def launch(command: Path | str, *args: str, **more: Any) -> dict[str, Any]:
        reply = await strobe.call("debug_launch", command=str(command), args=list(args), projectRoot=str(TARGETS), **more)
        started.append(reply["sessionId"])
        return reply

    yield launch
    for session in started:
        await strobe.call("debug_session", action="stop", sessionId=session, kill=True)


async def test_missing_file(strobe: Strobe) -> None:
    content = await launch_refused(strobe, TARGETS / "no" / "such" / "program")
    assert "does not exist" in content["what"]
    assert str(TARGETS / "no" / "such" / "program") in content["value"]
    assert f"{TARGETS} exists, but has no 'no'" in content["nextStep"]


async def test_name_that_is_nowhere(strobe: Strobe) -> None:
    content = await launch_refused(strobe, "no-such-program-anywhere")
    assert content["value"] == "no-such-program-anywhere"
    assert "PATH" in content["what"]


async def test_not_executable(strobe: Strobe, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("hello")
    content = await launch_refused(strobe, tmp_path / "data")
    assert "not executable" in content["what"]
    assert "chmod +x" in content["nextStep"]


async def test_a_folder(strobe: Strobe, tmp_path: Path) -> None:
    content = await launch_refused(strobe, tmp_path)
    assert "folder" in content["what"] or "directory" in content["what"]


async def test_neither_program_nor_script(strobe: Strobe, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\x01\x02\x03 no program")
    (tmp_path / "noise").chmod(0o755)
    assert "neither" in (await launch_refused(strobe, tmp_path / "noise"))["what"]


async def test_wrong_architecture(strobe: Strobe, tmp_path: Path) -> None:
    image = bytearray(program("ticks.c", "-O0").read_bytes())
    struct.pack_into("<H", image, E_MACHINE, EM_AARCH64)
    (tmp_path / "arm").write_bytes(image)
    (tmp_path / "arm").chmod(0o755)
    content = await launch_refused(strobe, tmp_path / "arm")
    assert "aarch64" in content["what"]


async def test_missing_folders(strobe: Strobe, tmp_path: Path) -> None:
    content = await refused(strobe, "debug_launch", "VALIDATION_ERROR", command="/bin/true", projectRoot=str(tmp_path / "none"))
    assert str(tmp_path / "none") in content["value"]
    content = await refused(strobe, "debug_launch", "VALIDATION_ERROR", command="/bin/true", projectRoot="relative/path")
    assert content["value"] == "relative/path"
    content = await launch_refused(strobe, "/bin/true", cwd=str(tmp_path / "none"))
    assert "cwd" in content["what"]


async def test_what_comes_later_is_refused_by_name(strobe: Strobe) -> None:
    content = await refused(strobe, "debug_launch", "VALIDATION_ERROR", projectRoot=str(TARGETS), channels=[])
    assert content["value"] == "channels"
    several = {"command": "/bin/true", "pid": 1 << 22, "coreFile": "/tmp/core"}
    for given in ((), ("command", "pid"), ("command", "coreFile"), ("pid", "coreFile")):
        await refused(strobe, "debug_launch", "VALIDATION_ERROR", projectRoot=str(TARGETS), **{name: several[name] for name in given})
    content = await refused(strobe, "debug_trace", "VALIDATION_ERROR", budget={"eventsPerSecond": 0})
    assert "eventsPerSecond" in content["value"]


async def test_watches_that_cannot_be(strobe: Strobe) -> None:
    """Before anything runs: what the text alone tells."""
    for expr, words in (("a ->", "offset 4"), ("a + 1", "more than a path"), ("a->b->c->d->e->f", "follows 5 pointers"), ("x" * 257, "")):
        code = "WATCH_FAILED" if words else "VALIDATION_ERROR"
        content = await refused(strobe, "debug_trace", code, watches={"add": [{"expr": expr}]})
        assert words in content["what"], content
    for watch in ({}, {"variable": "x", "expr": "y"}, {"address": "0x10"}, {"address": "zz", "type": "i32"}):
        await refused(strobe, "debug_trace", "VALIDATION_ERROR", watches={"add": [watch]})
    await refused(strobe, "debug_trace", "VALIDATION_ERROR", watches={"add": [{"expr": "a", "label": "same"}, {"expr": "b", "label": "same"}]})


async def test_a_script_runs_and_tells_its_capabilities(strobe: Strobe, stopped: Any, tmp_path: Path) -> None:
    script = tmp_path / "greet.sh"
    script.write_text('#!/bin/sh\necho "hello $1"\nexit 3\n')
    script.chmod(0o755)
    reply = await stopped(script, "world")
    assert reply["capabilities"]["functionTracing"] == "none"
    assert reply["capabilities"]["outputCapture"] == "full"
    assert any("script" in text for text in reply["capabilities"]["limitations"])
    status = await strobe.until_ended(reply["sessionId"], within_s=ENDS_S)
    assert (status["status"], status["exitCode"]) == ("exited", 3)
    events = await strobe.events(reply["sessionId"])
    assert [(event["eventType"], event["text"]) for event in events] == [("stdout", "hello world\n")]


async def test_a_python_script_is_unbuffered(strobe: Strobe, stopped: Any, tmp_path: Path) -> None:
    script = tmp_path / "wait.py"
    script.write_text("#!/usr/bin/env python3\nimport sys\nprint('before')\nsys.stdin.read()\n")
    script.chmod(0o755)
    reply = await stopped(script, stdin={"open": True})
    assert reply["capabilities"]["runtime"] in ("python", "script")  # by way of env, its interpreter is not known before it runs
    session = reply["sessionId"]
    for _ in range(200):
        if (await strobe.call("debug_query", sessionId=session, eventType="stdout"))["events"]:
            break
    assert "".join(event["text"] for event in await strobe.events(session, eventType="stdout")) == "before\n"
    assert (await strobe.status(session))["status"] == "running"


async def test_no_debug_info(strobe: Strobe, stopped: Any) -> None:
    """Symbols alone: functions are found by name, their values are raw registers."""
    reply = await stopped(program("ticks.c", "-O0", "-g0"), "400", "20")
    traced = await strobe.call("debug_trace", sessionId=reply["sessionId"], add=["tick"])
    assert traced["hookedFunctions"] == 1
    none = await strobe.call("debug_trace", sessionId=reply["sessionId"], add=["@usercode"])
    assert any("debug info" in text for text in none["warnings"]), none


async def test_stripped(strobe: Strobe, stopped: Any, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([require("strip"), "-o", bare, program("ticks.c", "-O0")], check=True)
    reply = await stopped(bare, "400", "20")
    assert any("stripped" in text for text in reply["capabilities"]["limitations"])
    traced = await strobe.call("debug_trace", sessionId=reply["sessionId"], add=["tick"])
    assert traced["hookedFunctions"] == 0
    assert any("stripped" in text for text in traced["warnings"]), traced


async def test_32_bit(strobe: Strobe, stopped: Any, tmp_path: Path) -> None:
    """Not injected; where this kernel runs such programs its exit status is told, else why it could not start."""
    source = tmp_path / "tiny.c"
    source.write_text('void _start(void) { __asm__ volatile("movl $1, %eax; movl $7, %ebx; int $0x80"); }\n')
    tiny = tmp_path / "tiny"
    subprocess.run([require("gcc"), "-m32", "-nostdlib", "-static", "-ffreestanding", "-o", tiny, source], check=True)
    try:
        expected: int | None = subprocess.run([tiny], check=False).returncode
    except OSError:
        expected = None
    if expected is None:
        await launch_refused(strobe, tiny)
        return
    reply = await stopped(tiny)
    assert reply["capabilities"]["functionTracing"] == "none"
    assert any("32-bit" in text for text in reply["capabilities"]["limitations"])
    assert (await strobe.until_ended(reply["sessionId"], within_s=ENDS_S))["exitCode"] == expected


async def test_unknown_session(strobe: Strobe) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("debug_query", {}),
        ("debug_query", {"sql": "SELECT 1"}),
        ("debug_trace", {"add": ["main"]}),
        *(("debug_session", {"action": action}) for action in ("status", "stop", "delete")),
        ("debug_stop", {}),
    ]
    for tool, arguments in calls:
        content = await refused(strobe, tool, "SESSION_NOT_FOUND", sessionId="nothing-2020-01-01-00h00", **arguments)
        assert "nothing-2020-01-01-00h00" in str(content["value"])


async def test_names_cannot_leave_their_folder(strobe: Strobe) -> None:
    for name in ("../../etc/passwd", "..", "a/b", "x" * 300, ""):
        with pytest.raises(ToolError) as raised:
            await strobe.call("debug_query", sessionId=name)
        assert raised.value.code in ("SESSION_NOT_FOUND", "VALIDATION_ERROR")


async def test_bad_queries(strobe: Strobe, stopped: Any) -> None:
    session = (await stopped(program("ticks.c", "-O0"), "2", "1"))["sessionId"]
    await strobe.until_ended(session, within_s=ENDS_S)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"function": {"matches": "("}}, "("),
        ({"function": {"matches": "a(?=b)"}}, "a(?=b)"),
        ({"timeFrom": "-5x"}, "timeFrom"),
        ({"timeTo": "yesterday"}, "timeTo"),
        ({"limit": 0}, "limit"),
        ({"limit": 501}, "limit"),
        ({"limit": "10"}, "limit"),
        ({"eventType": "function_entry"}, "eventType"),
        ({"function": {}}, "function"),
        ({"function": {"eqals": "x"}}, "function.eqals"),
        ({"cursor": "no cursor"}, "no cursor"),
        ({"afterEventId": "another-session-5"}, "another-session-5"),
        ({"sql": "SELECT * FROM nowhere"}, ""),
        ({"sql": "SELECT 1", "eventType": "stdout"}, "eventType"),
        ({"sessionID": session}, "sessionID"),
    ]
    for arguments, value in bad:
        content = await refused(strobe, "debug_query", "VALIDATION_ERROR", **{"sessionId": session, **arguments})
        assert value in str(content["value"]), (arguments, content)


async def test_sql_reaches_nothing_but_the_session(strobe: Strobe, stopped: Any, tmp_path: Path) -> None:
    session = (await stopped(program("ticks.c", "-O0"), "2", "1"))["sessionId"]
    await strobe.until_ended(session, within_s=ENDS_S)
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    for sql in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "DROP TABLE output",
        "DELETE FROM points",
        "INSTALL httpfs",
        "ATTACH 'x.db'",
        "SELECT 1; SELECT 2",
        "SELECT getenv('HOME')",
        "PRAGMA database_list",
        "SET memory_limit='1GB'",
    ):
        await refused(strobe, "debug_query", "VALIDATION_ERROR", sessionId=session, sql=sql)
    assert not (tmp_path / "out.csv").exists()
    assert (await strobe.call("debug_query", sessionId=session, eventType="stdout"))["totalCount"] > 0


async def test_bad_patterns(strobe: Strobe, stopped: Any) -> None:
    session = (await stopped(program("ticks.c", "-O0"), "400", "20"))["sessionId"]
    for where in ({}, {"sessionId": session}):
        for pattern in ("", "  ", "@file:", "@nowhere", "a[b"):
            try:
                reply = await strobe.call("debug_trace", add=[pattern], **where)
            except ToolError as error:
                assert error.code == "INVALID_PATTERN"
                assert error.content["nextStep"]
            else:
                assert pattern == "a[b", (pattern, reply)  # a legal character in some languages' names
                await strobe.call("debug_trace", remove=[pattern], **where)
    assert (await strobe.call("debug_trace"))["activePatterns"] == []
    assert (await strobe.call("debug_trace", sessionId=session))["activePatterns"] == []


async def test_a_target_that_exits_at_once(strobe: Strobe, stopped: Any) -> None:
    for command, code in (("/bin/true", 0), ("/bin/false", 1)):
        reply = await stopped(command)
        session = reply["sessionId"]
        status = await strobe.until_ended(session, within_s=ENDS_S)
        assert (status["status"], status["exitCode"]) == ("exited", code)
        content = await refused(strobe, "debug_trace", "PROCESS_EXITED", sessionId=session, add=["main"])
        assert content["value"] == session
        assert "debug_query" in content["nextStep"]
        assert (await strobe.call("debug_trace", sessionId=session))["hookedFunctions"] == 0


async def test_a_live_session_is_not_deleted(strobe: Strobe, stopped: Any) -> None:
    session = (await stopped(program("ticks.c", "-O0"), "400", "20"))["sessionId"]
    content = await refused(strobe, "debug_session", "VALIDATION_ERROR", action="delete", sessionId=session)
    assert "stop" in content["nextStep"]


async def test_bad_settings_warn_and_do_no_harm(strobe: Strobe, tmp_path: Path) -> None:
    settings = strobe.home / "settings.json"
    settings.write_text('{"events.maxPerSession": 0, "no.such": 1}')
    try:
        reply = await strobe.call("debug_session", action="list")
        assert any("events.maxPerSession" in text for text in reply["warnings"])
        assert any("no.such" in text for text in reply["warnings"])
        settings.write_text("{")
        assert any("JSON" in text for text in (await strobe.call("debug_trace"))["warnings"])
    finally:
        settings.unlink()
    project = tmp_path / "project"
    (project / ".strobe").mkdir(parents=True)
    (project / ".strobe" / "settings.json").write_text('{"events.maxPerSession": 12345}')
    assert (await strobe.call("debug_trace", projectRoot=str(project)))["eventLimit"] == 12345
    shutil.rmtree(project)


async def test_unknown_tool_is_a_protocol_error(strobe: Strobe) -> None:
    from mcp import MCPError  # the SDK's class, only here

    with pytest.raises(MCPError) as raised:
        await strobe.client.call_tool("debug_everything", {})
    assert raised.value.error.code == -32602


async def test_a_cancelled_launch_leaves_no_session_without_a_process(strobe: Strobe) -> None:
    """Cancelled at instants spread over the whole launch; at first faster than pairs of processes get ready, so that the next takes the same id."""
    path = program("stopping.c")

    async def cancelled(after_ms: float) -> None:
        launching = asyncio.ensure_future(strobe.call("debug_launch", command=str(path), args=["waits"], stdin={"open": True}, projectRoot=str(TARGETS)))
        await asyncio.sleep(after_ms / 1000)  # the instant
        launching.cancel()
        await asyncio.gather(launching, return_exceptions=True)

    for _ in range(4):
        await cancelled(40)
    for after_ms in (0, 3, 8, 15, 30, 60, 120, 200):
        await cancelled(after_ms)
        async with asyncio.timeout(ENDS_S):
            while sessions := (await strobe.call("debug_session", action="list"))["sessions"]:
                # A launch that was over before it was cancelled is a session like any other.
                for session in [session for session in sessions if session.get("pid") and session["status"] == "running"]:
                    await strobe.call("debug_session", action="stop", sessionId=session["sessionId"], kill=True)
                await asyncio.sleep(0.02)

    async def one_spare_pair_is_left() -> bool:
        async with Client(strobe.home) as client:
            rows = (await status(client)).actors
        return sorted(row.name.partition("-")[0] for row in rows if row.name.startswith(("session:", "spawner:"))) in ([], ["session:warm", "spawner:warm"])

    await until(one_spare_pair_is_left, within_s=ENDS_S)
