"""Attaching to processes that run already, through `strobe mcp`: busy ones, stopped ones, those that may not be touched; and leaving them as they were."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from strobe import paths
from strobe.supervisor.start import node_pid
from tests.harness.code_bytes import functions_changed
from tests.harness.foreign import Foreign, foreign
from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.node import environment, processes_of
from tests.harness.targets import TARGETS, program, require

pytestmark = pytest.mark.anyio
EVENT_S = 15.0


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("attach") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def one(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"])


def attached(threads: int = 1, code: int = 7, *more: str) -> AbstractContextManager[Foreign]:
    """tests/targets/attached.c, which ends by SIGUSR1."""
    return foreign(str(program("attached.c", "-O1")), str(threads), "300", str(code), *more)


def as_without_strobe(process: Foreign, threads: int = 1, code: int = 7) -> None:
    """It ends, and has printed, in that order, what it would have."""
    out, err, returncode = process.end()
    lines = out.splitlines()
    assert lines == [*(f"step {n} sum {3 * n + 2}" for n in range(1, len(lines))), f"done {threads}"]
    assert err == "note even\n" * ((len(lines) - 1) // 10)
    assert returncode == code


async def attach(strobe: Strobe, pid: int, *patterns: str) -> dict[str, Any]:
    if patterns:
        await strobe.call("debug_trace", add=list(patterns))
    return await strobe.call("debug_launch", pid=pid, projectRoot=str(TARGETS))


async def stop(strobe: Strobe, session: str, **more: Any) -> None:
    await strobe.call("debug_session", action="stop", sessionId=session, **more)


async def eventually(strobe: Strobe, session: str, kind: str, function: str | None = None) -> dict[str, Any]:
    """The first event of the kind."""
    filters = {"function": {"equals": function}} if function else {}
    deadline = time.monotonic() + EVENT_S
    while not (found := (await strobe.call("debug_query", sessionId=session, eventType=kind, verbose=True, **filters))["events"]):
        assert time.monotonic() < deadline, f"no {kind} {function or ''} within {EVENT_S:g} s"
        await asyncio.sleep(0.02)
    first: dict[str, Any] = found[0]
    return first


async def test_a_busy_process_is_traced_and_left_as_it_was(one: Strobe) -> None:
    with attached(threads=2) as process:
        process.until_said(b"step 1 ")
        launched = await attach(one, process.pid)
        session = launched["sessionId"]
        assert launched["pid"] == process.pid
        assert (launched["capabilities"]["functionTracing"], launched["capabilities"]["outputCapture"]) == ("full", "partial")
        assert (await one.call("debug_trace", sessionId=session, add=["step", "weigh", "work"]))["hookedFunctions"] == 3

        call = await eventually(one, session, "function_exit", "step")
        arguments = {item["name"]: item["value"] for item in call["arguments"]}
        assert arguments["label"] == ("odd" if arguments["number"] % 2 else "even")
        assert call["returnValue"] == 3 * arguments["number"] + 2
        assert call["threadId"] == call["pid"] == process.pid
        assert (await eventually(one, session, "function_enter", "work"))["threadName"] == "worker"
        assert (await eventually(one, session, "stdout"))["text"].startswith("step ")
        assert (await eventually(one, session, "stderr"))["text"] == "note even\n"
        value = await one.call("debug_memory", action="read", sessionId=session, targets=[{"variable": "gSteps"}])
        assert value["results"][0]["value"] > 0

        assert functions_changed(process.pid) == {"step", "weigh", "work"}
        await stop(one, session)
        assert functions_changed(process.pid) == set()
        as_without_strobe(process, threads=2)


@pytest.mark.parametrize("turns", [3, pytest.param(10, marks=pytest.mark.full)])
async def test_again_and_again(one: Strobe, turns: int) -> None:
    """Each time it is traced anew, and left as its file has it. The recorder stays, and serves every session."""
    with attached() as process:
        process.until_said(b"step 1 ")
        for turn in range(turns):
            patterns = ["step", "work"] if turn % 2 else ["step"]
            launched = await attach(one, process.pid, *patterns)
            assert launched["pendingPatternsApplied"] == len(patterns)
            session = launched["sessionId"]
            call = await eventually(one, session, "function_exit", "step")
            number = next(item["value"] for item in call["arguments"] if item["name"] == "number")
            assert call["returnValue"] == 3 * number + 2
            assert (await eventually(one, session, "stdout"))["text"].startswith("step ")
            await eventually(one, session, "function_exit", patterns[-1])
            assert await one.rows(session, "SELECT DISTINCT function FROM calls ORDER BY function") == [[name] for name in patterns]
            assert functions_changed(process.pid) == set(patterns)
            await stop(one, session)
            assert functions_changed(process.pid) == set()
        as_without_strobe(process)


async def test_its_end_is_seen_with_its_status_and_last_words(one: Strobe) -> None:
    with attached(code=9) as process:
        process.until_said(b"step 1 ")
        session = (await attach(one, process.pid))["sessionId"]
        await eventually(one, session, "stdout")
        as_without_strobe(process, code=9)
        status = await one.until_ended(session)
        assert (status["status"], status["exitCode"]) == ("exited", 9)
        out, err = await one.output(session)
        assert out.endswith(b"\ndone 1\n") and process.out.endswith(out)
        assert process.err.endswith(err)
        assert not status.get("losses")


async def test_a_crash_after_attaching_is_told_with_its_stack(one: Strobe) -> None:
    with attached(1, 0, "crash") as process:
        process.until_said(b"step 1 ")
        session = (await attach(one, process.pid))["sessionId"]
        assert process.end()[2] == -signal.SIGSEGV
        status = await one.until_ended(session)
        assert (status["status"], status["signal"]) == ("crashed", signal.SIGSEGV)
        crash = (await one.call("debug_query", sessionId=session))["crash"]
        assert (crash["function"], crash["address"]) == ("strike", "0x10")


async def test_a_stop_that_kills(one: Strobe) -> None:
    with attached() as process:
        process.until_said(b"step 1 ")
        await stop(one, (await attach(one, process.pid))["sessionId"], kill=True)
        assert process.end(None)[2] == -signal.SIGKILL


async def test_a_process_that_is_stopped_stays_stopped(one: Strobe) -> None:
    with attached() as process:
        process.until_said(b"step 1 ")
        os.kill(process.pid, signal.SIGSTOP)
        process.until_state("T")
        session = (await attach(one, process.pid, "step"))["sessionId"]
        assert process.state == "T"
        await stop(one, session)
        assert process.state == "T"
        assert functions_changed(process.pid) == set()
        session = (await attach(one, process.pid, "step"))["sessionId"]  # without a visit of Frida's: the recorder is there
        assert process.state == "T"
        os.kill(process.pid, signal.SIGCONT)
        await eventually(one, session, "function_exit", "step")
        await stop(one, session)
        as_without_strobe(process)


async def refusal(strobe: Strobe, pid: int, code: str) -> str:
    """What is said to whoever attaches to it. No session comes of it."""
    before = await strobe.call("debug_session", action="list")
    with pytest.raises(ToolError) as raised:
        await attach(strobe, pid)
    assert raised.value.code == code
    assert await strobe.call("debug_session", action="list") == before
    return str(raised.value.content["what"])


async def test_one_session_a_process(one: Strobe, shared_home: Path) -> None:
    with attached() as process, attached() as second:
        for each in (process, second):
            each.until_said(b"step 1 ")
        session = (await attach(one, process.pid))["sessionId"]
        async with strobe_mcp(shared_home, keep_node=True) as other:
            assert session in await refusal(other, process.pid, "SESSION_EXISTS")
        assert (await attach(one, second.pid))["sessionId"] != session  # another process of the same program is another matter


async def test_who_is_gone_is_told(one: Strobe) -> None:
    with foreign("/bin/true") as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert "zombie" in await refusal(one, process.pid, "PROCESS_EXITED")
        process.end(None)
        assert "There is no process" in await refusal(one, process.pid, "PROCESS_EXITED")


async def test_a_process_under_a_debugger_is_refused_and_the_debugger_unhurt(one: Strobe) -> None:
    gdb = require("gdb")
    with attached() as process:
        process.until_said(b"step 1 ")
        steps = ["set confirm off", "break step", "continue", "print number * 0 + 41", "shell read line", "delete", "detach", "quit"]
        with foreign(gdb, "-q", "-nx", "-p", str(process.pid), *(word for step in steps for word in ("-ex", step))) as debugger:
            debugger.until_said(b"$1 = 41")
            assert f"gdb (pid {debugger.pid})" in await refusal(one, process.pid, "FRIDA_ATTACH_FAILED")
            debugger.say(b"go\n")
            out, _, returncode = debugger.end(None)
            assert "detached" in out and returncode == 0
        session = (await attach(one, process.pid))["sessionId"]
        await stop(one, session)
        as_without_strobe(process)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
async def test_a_process_of_another_user_is_refused(one: Strobe) -> None:
    with foreign("/bin/sleep", "30", user=65534) as process:
        assert "user 65534" in await refusal(one, process.pid, "FRIDA_ATTACH_FAILED")
        assert process.process.poll() is None


async def test_strobe_itself_and_threads_are_refused(one: Strobe, shared_home: Path) -> None:
    pid = node_pid(shared_home)
    assert pid is not None
    child = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    for own in (pid, child):
        assert "Strobe's own" in await refusal(one, own, "FRIDA_ATTACH_FAILED")
    with attached() as process:
        process.until_said(b"step 1 ")
        thread = max(int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir())
        assert f"thread of process {process.pid}" in await refusal(one, thread, "FRIDA_ATTACH_FAILED")


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes a pid namespace here")
async def test_a_process_of_a_container_is_refused(one: Strobe) -> None:
    with foreign(require("unshare"), "--pid", "--fork", "/bin/sh", "-c", "echo up; read line") as process:
        process.until_said(b"up")
        inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        assert "container" in await refusal(one, inner, "FRIDA_ATTACH_FAILED")
        process.say(b"go\n")
        assert process.end(None)[2] == 0


async def test_a_child_of_a_launched_program_belongs_to_its_session(one: Strobe) -> None:
    script = "import os, time\nchild = os.fork()\nprint(child, flush=True) if child else None\ntime.sleep(300)"
    launched = await one.call("debug_launch", command=sys.executable, args=["-c", script], projectRoot=str(TARGETS))
    child = int((await eventually(one, launched["sessionId"], "stdout"))["text"])
    assert launched["sessionId"] in await refusal(one, child, "SESSION_EXISTS")
    await stop(one, launched["sessionId"], kill=True)


@pytest.mark.parametrize("kind", ["static", "static-pie", "musl", "tsan"])
async def test_what_cannot_be_entered_is_watched_and_not_hurt(one: Strobe, kind: str) -> None:
    flags, compiler = {"static": ("-static", None), "static-pie": ("-static-pie", None), "musl": ("-O1", "musl-gcc"), "tsan": ("-fsanitize=thread", None)}[kind]
    with foreign(str(program("attached.c", "-O1", flags, compiler=compiler)), "1", "300", "5") as process:
        process.until_said(b"step 1 ")
        launched = await attach(one, process.pid)
        can, session = launched["capabilities"], launched["sessionId"]
        assert (can["functionTracing"], can["outputCapture"]) == ("none", "none")
        assert any("Direct mode" in text for text in can["limitations"])
        with pytest.raises(ToolError):
            await one.call("debug_trace", sessionId=session, add=["step"])
        as_without_strobe(process, code=5)
        status = await one.until_ended(session)
        assert (status["status"], status["exitCode"]) == ("exited", 5)


async def test_python_s_own_functions(one: Strobe) -> None:
    script = "import sys\nfor line in sys.stdin:\n    print(len(line), flush=True)\n"
    with foreign(sys.executable, "-c", script) as process:
        process.say(b"abc\n")
        process.until_said(b"4\n")
        launched = await attach(one, process.pid)
        session = launched["sessionId"]
        assert launched["capabilities"]["runtime"] == "python"
        await one.call("debug_trace", sessionId=session, add=["PyFile_WriteObject"])
        process.say(b"four5\n")
        await eventually(one, session, "function_exit", "PyFile_WriteObject")
        process.until_said(b"6\n")
        await stop(one, session, retain=True)
        assert await one.output(session) == (b"6\n", b"")
        process.say(b"x\n")
        process.until_said(b"2\n")
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert process.end(None) == ("4\n6\n2\n", "", 0)


async def test_what_is_too_much_to_copy_is_counted_to_the_byte(one: Strobe) -> None:
    script = "import os, sys\nfor line in sys.stdin:\n    data = b'0123456789abcdef' * 16 * int(line)\n    while data: data = data[os.write(1, data):]\n"
    with foreign(sys.executable, "-c", script) as process:
        process.say(b"1\n")
        process.until_said(b"abcdef" + b"0123456789abcdef" * 15)
        session = (await attach(one, process.pid))["sessionId"]
        for count in (3, 500, 20_000):  # of 256 bytes: less than a record, many records, more than is copied of one write
            process.say(b"%d\n" % count)
        deadline = time.monotonic() + EVENT_S
        while len(process.out) < 256 * 20_504:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        status = await one.status(session)
        while status["outputBytes"]["stdout"] < 256 * 20_503:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
            status = await one.status(session)
        await stop(one, session, retain=True)
        kept = (await one.rows(session, "SELECT sum(length(text)) FROM output_v"))[0][0]
        lost = status.get("losses", {}).get("outputBytes", 0)
        assert kept + lost == 256 * 20_503
        assert kept >= 256 * 503 and lost >= 256 * 20_000 - (1 << 20)


async def test_a_process_that_has_just_been_started(one: Strobe) -> None:
    """Attached to while the dynamic linker is at work, it is neither ended nor missed."""
    for _ in range(2):
        with attached(1, 4) as process:
            await stop(one, (await attach(one, process.pid))["sessionId"])
            process.until_said(b"step 1 ")
            as_without_strobe(process, code=4)


async def test_a_session_process_that_is_killed_goes_on_with_the_same_process(one: Strobe) -> None:
    with attached() as process:
        process.until_said(b"step 1 ")
        session = (await attach(one, process.pid, "step"))["sessionId"]
        await eventually(one, session, "function_exit", "step")
        os.kill(session_process(pool_of(process.pid)), signal.SIGKILL)
        before = (await one.rows(session, "SELECT count(*) FROM calls"))[0][0]
        deadline = time.monotonic() + EVENT_S
        while (await one.rows(session, "SELECT count(*) FROM calls"))[0][0] <= before + 50:
            assert time.monotonic() < deadline, "nothing came after the session's process was killed"
            await asyncio.sleep(0.05)
        await stop(one, session)
        assert functions_changed(process.pid) == set()
        as_without_strobe(process)


def pool_of(pid: int) -> str:
    return next(Path(line.split()[-1]).name for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/dev/shm/strobe-" in line)


def session_process(pool: str) -> int:
    """Who else has the pool mapped."""
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if path.name.isdigit() and pool in (path / "maps").read_text() and b"STROBE_IDENTITY" in (path / "environ").read_bytes():
                return int(path.name)
    raise AssertionError(f"nobody has {pool}")


@pytest.mark.full
async def test_a_node_that_is_killed_leaves_the_process_running_and_another_cleans_up(tmp_path: Path) -> None:
    with attached() as process:
        process.until_said(b"step 1 ")
        async with strobe_mcp(tmp_path / "first", keep_node=True) as lost:
            session = (await attach(lost, process.pid, "step", "work"))["sessionId"]
            await eventually(lost, session, "function_exit", "step")
            kill_node(tmp_path / "first")
        shutil.rmtree(tmp_path / "first")
        assert functions_changed(process.pid) == {"step", "work"}
        async with strobe_mcp(tmp_path / "second") as after:
            launched = await attach(after, process.pid, "weigh")
            assert any("2 functions got their own bytes back" in text for text in launched["warnings"])
            session = launched["sessionId"]
            assert functions_changed(process.pid) == {"weigh"}
            await eventually(after, session, "function_exit", "weigh")
            assert await after.rows(session, "SELECT DISTINCT function FROM calls") == [["weigh"]]
            await stop(after, session)
        assert functions_changed(process.pid) == set()
        as_without_strobe(process)


def kill_node(home: Path) -> None:
    """The whole of it at once, keepers too."""
    node = node_pid(home)
    pids = [] if node is None else [node]
    pids += [int(text.split()[0]) for text in processes_of(home)]
    folder = f"{home}/targets/".encode()
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if path.name.isdigit() and folder in (path / "cmdline").read_bytes():
                pids.append(int(path.name))
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with environment(home, None, {}):  # the next node of this home would do it, and there will be none
        shutil.rmtree(paths.scratch_folder())
