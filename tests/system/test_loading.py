"""Patterns for functions in libraries that are loaded later: they take effect before the constructors run, and the program is what it was."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from strobe.client import Client
from tests.harness import node
from tests.harness.mcp import Strobe, ToolError, strobe_mcp
from tests.harness.targets import TARGETS, program

pytestmark = pytest.mark.anyio
LOADER = ("-O1", "-ldl")


def loader() -> Path:
    return program("loader.c", *LOADER)


def plugin(name: str, *options: str) -> Path:
    return program("plugin.c", "-O1", "-shared", "-fPIC", *options, name=f"lib{name}.so")


@pytest.fixture(scope="module")
async def shared_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    home = tmp_path_factory.mktemp("loading") / "home"
    async with strobe_mcp(home):
        yield home


@pytest.fixture
async def strobe(shared_home: Path) -> AsyncIterator[Strobe]:
    async with strobe_mcp(shared_home, keep_node=True) as connected:
        yield connected
        for item in (await connected.call("debug_session", action="list"))["sessions"]:
            await connected.call("debug_session", action="stop", sessionId=item["sessionId"], kill=True)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def calls(strobe: Strobe, session: str) -> Counter[str]:
    """Calls by function, each with its return."""
    rows = await strobe.rows(session, "SELECT function, count(*) FROM events_v WHERE event_type = 'function_enter' GROUP BY ALL")
    exits = await strobe.rows(session, "SELECT function, count(*) FROM events_v WHERE event_type = 'function_exit' GROUP BY ALL")
    assert sorted(rows) == sorted(exits)
    return Counter({str(name): int(number) for name, number in rows})


async def run(strobe: Strobe, *commands: str, trace: list[str]) -> tuple[str, Counter[str]]:
    """Traced from the start: the program prints what it prints by itself. What was called."""
    alone = subprocess.run([str(loader()), *commands], capture_output=True, text=True, timeout=60)
    session = await strobe.launch(loader(), *commands, root=TARGETS, trace=trace)
    status = await strobe.until_ended(session)
    assert (status["status"], status["exitCode"]) == ("exited", alone.returncode)
    assert (await strobe.output(session))[0].decode() == alone.stdout
    return session, await calls(strobe, session)


async def test_constructors_of_a_library_are_recorded(strobe: Strobe) -> None:
    _, counts = await run(strobe, f"open={plugin('one')}", "call", "close", trace=["plugin_*"])
    assert counts == {"plugin_begin": 1, "plugin_step": 5, "plugin_work": 1, "plugin_end": 1}


async def test_a_constructor_may_load_the_next(strobe: Strobe) -> None:
    inner = plugin("inner")
    outer = plugin("outer", f'-DOPENS="{inner}"', "-DSTEP=2")
    _, counts = await run(strobe, f"open={outer}", "call", "close", trace=["plugin_*"])
    assert counts["plugin_begin"] == 2
    assert counts["plugin_work"] == 2
    assert counts["plugin_step"] == 1 + 1 + 3 + 1 + 3 + 1 + counts["plugin_end"] - 1


async def test_what_cannot_be_loaded_fails_as_ever(strobe: Strobe, tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(plugin("one").read_bytes()[:300])
    lacking = plugin("lacking", "-DLACKS")
    commands = [f"open={tmp_path}/none.so", f"open={broken}", f"open={lacking}", f"open={plugin('one')}", "call=4"]
    _, counts = await run(strobe, *commands, trace=["plugin_*"])
    assert counts == {"plugin_begin": 1, "plugin_step": 5, "plugin_work": 1, "plugin_end": 1}


async def test_gone_and_back_at_the_same_place_or_another(strobe: Strobe) -> None:
    """Three libraries take each other's places: each call is recorded, and with its own library's function."""
    paths = [plugin("one"), plugin("two", "-DSTEP=2", "-DPAD"), plugin("three", "-DSTEP=3")]
    commands = []
    for n in range(12):
        commands += [f"open={paths[n % 3]}", f"call={n}"] + (["close"] if n % 4 != 3 else [])
    session, counts = await run(strobe, *commands, trace=["plugin_*"])
    assert counts["plugin_work"] == 12
    assert counts["plugin_step"] == 3 * counts["plugin_work"] + counts["plugin_begin"] + counts["plugin_end"]
    ((hooks,),) = await strobe.rows(session, "SELECT count(*) FROM hooks WHERE function = 'plugin_work'")
    assert int(hooks) >= 3


async def test_namespaces_and_threads_with_all_signals_blocked(strobe: Strobe) -> None:
    one, two = plugin("one"), plugin("two", "-DSTEP=2", "-DPAD")
    _, counts = await run(strobe, f"open={one}", "call", f"mopen={one}", "call", f"mopen={two}", "call", f"blocked={two}", "call", trace=["plugin_*"])
    assert counts["plugin_begin"] == 4
    assert counts["plugin_work"] == 4


async def test_a_forked_child_does_not_wait(strobe: Strobe) -> None:
    _, counts = await run(strobe, f"open={plugin('one')}", f"fork={plugin('two', '-DSTEP=2', '-DPAD')}", "call", trace=["plugin_*"])
    assert counts["plugin_work"] == 1


async def session_process(strobe: Strobe, session: str) -> int:
    async with Client(strobe.home) as client:
        return next(row.pid for row in (await node.status(client)).actors if row.name == f"session:{session}" and row.pid)


async def hooked(strobe: Strobe, session: str) -> int:
    """0 while the session is being restarted."""
    try:
        return int((await strobe.call("debug_trace", sessionId=session))["hookedFunctions"])
    except ToolError as error:
        assert error.code in ("ACTOR_UNAVAILABLE", "TIMEOUT"), error
        return 0


async def later(strobe: Strobe, folder: Path, *commands: str, **trace: Any) -> tuple[str, dict[str, Any], Path]:
    """A program that waits for a file until it obeys; traced meanwhile. Session, the reply to debug_trace, and that file."""
    go = folder / "go"
    session = await strobe.launch(loader(), f"wait={go}", *commands, root=TARGETS)
    return session, await strobe.call("debug_trace", sessionId=session, **trace), go


async def test_it_is_said_that_a_pattern_waits(strobe: Strobe, tmp_path: Path) -> None:
    session, reply, go = await later(strobe, tmp_path, f"open={plugin('one')}", "call", add=["plugin_work", "plugin_b*"])
    assert reply["hookedFunctions"] == 0
    assert any(text.startswith("plugin_work: ") and "which is not loaded" in text for text in reply["warnings"]), reply["warnings"]
    assert "waiting" in reply["status"]
    go.touch()
    assert (await strobe.until_ended(session))["exitCode"] == 5
    assert await calls(strobe, session) == {"plugin_begin": 1, "plugin_work": 1}


async def test_patterns_taken_away_wait_no_more(strobe: Strobe, tmp_path: Path) -> None:
    session, _, go = await later(strobe, tmp_path, "clock", f"open={plugin('one')}", "call", add=["plugin_*", "load"])
    await strobe.call("debug_trace", sessionId=session, remove=["plugin_*"])
    go.touch()
    await strobe.until_ended(session)
    assert await calls(strobe, session) == {"load": 1}


async def test_a_session_that_is_not_there_delays_a_program_once(strobe: Strobe, tmp_path: Path) -> None:
    """Stopped by SIGSTOP, the session answers nobody: the program waits two seconds for it, once."""
    one, two = plugin("one"), plugin("two", "-DSTEP=2", "-DPAD")
    session, _, go = await later(strobe, tmp_path, "clock", f"open={one}", "call", f"open={two}", "call", add=["plugin_*"])
    pid = await session_process(strobe, session)
    target = (await strobe.status(session))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        went = time.monotonic()
        go.touch()
        while running(target):
            assert time.monotonic() - went < 20
            await asyncio.sleep(0.01)
        took = time.monotonic() - went
    finally:
        os.kill(pid, signal.SIGCONT)
    assert 1.9 < took < 4.0, took
    assert (await strobe.until_ended(session))["exitCode"] == 5


async def test_a_killed_session_comes_back_and_hooks_again(strobe: Strobe, tmp_path: Path) -> None:
    one, two, more = plugin("one"), plugin("two", "-DSTEP=2", "-DPAD"), tmp_path / "more"
    session, _, go = await later(strobe, tmp_path, f"open={one}", "call", f"wait={more}", "call", f"open={two}", "call", add=["plugin_*"])
    os.kill(await session_process(strobe, session), signal.SIGKILL)
    go.touch()
    deadline = time.monotonic() + 60
    while await hooked(strobe, session) < 4:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    more.touch()
    assert (await strobe.until_ended(session))["exitCode"] == 5
    counts = await calls(strobe, session)
    assert counts["plugin_work"] >= 2 and counts["plugin_begin"] >= 1


@pytest.mark.full
async def test_two_hundred_rounds_in_four_threads(strobe: Strobe) -> None:
    """Each thread opens three libraries in turn, which may be there already, and closes them; everything that was called is recorded."""
    paths = [plugin("one"), plugin("two", "-DSTEP=2", "-DPAD"), plugin("three", "-DSTEP=3")]
    commands = ["rounds=200,4," + ",".join(map(str, paths))]
    _, counts = await run(strobe, *commands, trace=["plugin_*"])
    assert counts["plugin_work"] == 800
    assert counts["plugin_begin"] == counts["plugin_end"]
    assert counts["plugin_step"] == 2400 + 2 * counts["plugin_begin"]
