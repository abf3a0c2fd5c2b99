"""Core dumps through `debug_launch {coreFile}`: the same crash as the live event's, the other threads, memory, and what is refused."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.foreign import foreign
from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program, require

pytestmark = pytest.mark.anyio
WAIT_S = 30.0


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("cores") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def one(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)


def gdb(*arguments: str) -> None:
    subprocess.run([require("gdb"), "-q", "-nx", "-batch", *arguments], check=True, capture_output=True, timeout=WAIT_S)


def dumped(folder: Path, *argv: str) -> Path:
    """The core that a program leaves when it crashes: the kernel's where it writes files into the working directory, else gdb's."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern:
        steps = ["set confirm off", "run", f"generate-core-file {folder / 'core'}", "kill", "quit"]
        gdb(*(word for step in steps for word in ("-ex", step)), "--args", *argv)
    else:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        done = subprocess.run(argv, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited), capture_output=True, timeout=WAIT_S)
        assert done.returncode < 0
    return next(folder.glob("core*"))


async def opened(strobe: Strobe, core: Path) -> dict[str, Any]:
    return await strobe.call("debug_launch", coreFile=str(core), projectRoot=str(TARGETS))


async def crash_of(strobe: Strobe, session: str) -> dict[str, Any]:
    """The crash event's data, whole."""
    summary = (await strobe.call("debug_query", sessionId=session))["crash"]
    reply = await strobe.call("debug_query", sessionId=session, eventId=summary["id"], maxTokens=50_000)
    data: dict[str, Any] = reply["value"] if isinstance(reply.get("value"), dict) else reply["events"][0]["data"]
    return data


def comparable(data: dict[str, Any]) -> Any:
    """What does not depend on where things were loaded."""
    frames = [{key: frame.get(key) for key in ("function", "file", "line", "arguments", "locals", "inlined")} for frame in data["frames"] if frame.get("file")]
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", repr(frames))
    return data["signal"], data["code"], data["cause"], data.get("faultAddress"), data["function"], data["file"], data["line"], text


async def test_it_is_the_crash_of_the_living_program(one: Strobe, tmp_path: Path) -> None:
    ticks = program("ticks.c", "-O0")
    live = await one.launch(ticks, "2", "1", "crash", root=TARGETS)
    assert (await one.until_ended(live))["status"] == "crashed"
    launched = await opened(one, dumped(tmp_path, str(ticks), "2", "1", "crash"))
    session = launched["sessionId"]
    assert launched["capabilities"]["functionTracing"] == "none"
    status = await one.status(session)
    assert (status["status"], status["signal"]) == ("crashed", signal.SIGSEGV)
    data = await crash_of(one, session)
    assert comparable(data) == comparable(await crash_of(one, live))
    code = {"address": data["frames"][0]["address"], "size": 16}  # the kernel saves no code: it is read from the file
    shown = (await one.call("debug_memory", action="read", sessionId=session, targets=[code]))["results"][0]
    assert "error" not in shown, shown
    with pytest.raises(ToolError) as refused:
        await one.call("debug_trace", sessionId=session, add=["tick"])
    assert refused.value.code == "PROCESS_EXITED" and "core dump" in refused.value.content["what"]
    with pytest.raises(ToolError):
        await one.call("debug_memory", action="write", sessionId=session, targets=[{"address": "0x10", "type": "i32", "value": 1}])
    stopped = await one.call("debug_session", action="stop", sessionId=session)
    assert stopped["status"] == "crashed"


async def test_a_stack_that_overflowed_is_told_as_of_the_living_program(one: Strobe, tmp_path: Path) -> None:
    """Below the stack pointer there is nothing then."""
    deaths = program("deaths.c", "-O0")
    live = await one.launch(deaths, "overflow", root=TARGETS)
    assert (await one.until_ended(live))["status"] == "crashed"
    expected = await crash_of(one, live)
    session = (await opened(one, dumped(tmp_path, str(deaths), "overflow")))["sessionId"]
    data = await crash_of(one, session)
    assert (data["cause"], data["function"]) == (expected["cause"], expected["function"]) == ("stack overflow", "overflow")
    assert len(data["frames"]) == len(expected["frames"]) > 2


async def test_names_of_files_need_not_be_text(one: Strobe, tmp_path: Path) -> None:
    """Linux allows any bytes in them."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xe4d"))
    folder.mkdir()
    shutil.copy(program("ticks.c", "-O0"), folder / "ticks")
    launched = await opened(one, dumped(tmp_path, str(folder / "ticks"), "2", "1", "crash"))
    assert any("/b\ufffdd/ticks: there is no such file here" in text for text in launched["warnings"])
    status = await one.status(launched["sessionId"])
    assert (status["status"], status["signal"]) == ("crashed", signal.SIGSEGV)


async def test_threads_and_memory_of_a_core_that_gdb_saved(one: Strobe, tmp_path: Path) -> None:
    with foreign(str(program("attached.c", "-O1")), "2", "300", "0") as process:
        process.until_said(b"step 3 ")
        core = tmp_path / "saved"
        gdb("-p", str(process.pid), "-ex", f"generate-core-file {core}")
        process.end()
    launched = await opened(one, core)
    session = launched["sessionId"]
    data = await crash_of(one, session)
    assert len(data["threads"]) == 3
    functions = [[frame.get("function") for frame in thread["frames"]] for thread in data["threads"]]
    assert any("wait_for_input" in names for names in functions)
    assert sum("worker" in names for names in functions) == 2
    read = await one.call("debug_memory", action="read", sessionId=session, targets=[{"variable": "gSteps"}, {"address": "0x10", "type": "i32"}])
    assert read["results"][0]["value"] >= 3
    assert "error" in read["results"][1]


async def test_a_program_that_was_built_anew_is_told(one: Strobe, tmp_path: Path) -> None:
    copy = tmp_path / "ticks"
    shutil.copy(program("ticks.c", "-O0"), copy)
    (tmp_path / "dump").mkdir()
    core = dumped(tmp_path / "dump", str(copy), "2", "1", "crash")
    copy.unlink()
    shutil.copy(program("ticks.c", "-O2"), copy)
    launched = await opened(one, core)
    assert any(str(copy) in text and "another build" in text for text in launched["warnings"])
    status = await one.status(launched["sessionId"])
    assert (status["status"], status["signal"]) == ("crashed", signal.SIGSEGV)


@pytest.mark.parametrize("content", [b"", b"not a core", b"\x7fELF" + bytes(60)])
async def test_what_is_no_core_dump_is_refused(one: Strobe, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "core"
    file.write_bytes(content)
    for path in (file, tmp_path / "missing", program("ticks.c", "-O0")):
        with pytest.raises(ToolError) as refused:
            await opened(one, path)
        assert refused.value.code == "VALIDATION_ERROR"
        assert str(path) in refused.value.content["what"]
