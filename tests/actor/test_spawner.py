"""The Injector on real targets: what a visit leaves behind, that counts are exact under change, and when it cannot be done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from actors.session.ptrace.patching import install, restore, take_over
from actors.session.ptrace.threads import thread_ids, thread_state, tracer_of
from actors.spawner.hosting import Hosting
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import Patch, Prepare
from tests.harness.hooking import bias, code_differs, enable, hook_specs, raw_plan, symbols
from tests.harness.launching import Launcher, eventually, output_of
from tests.harness.recording import check_calls, read_recording
from tests.harness.targets import program
from tests.harness.visits import WAIT_S, assert_counted, busy, injector, prepare, run

# The hand-over of a launched target


def test_a_held_target_is_left_stopped_at_its_entry_with_nothing_in_it(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("windows.c", "-O1")
        async with injector() as host:
            for _ in range(5):
                keeper = launches.start(str(path), stop=True)
                pid = keeper.status().pid
                base = bias(pid, path)
                reply = await prepare(host, pid, pool, [])
                assert reply.recorder == "native" and reply.detail is None
                assert thread_ids(pid) == [pid] and thread_state(pid, pid) == "T" and tracer_of(pid, pid) == 0
                assert int(Path(f"/proc/{pid}/syscall").read_text().split()[-1], 16) - base in {symbols(path)[name].value for name in ("_init", "_start")}
                maps = Path(f"/proc/{pid}/maps").read_text()
                assert "strobe-recorder.so" in maps and "frida" not in maps and "rwxp" not in maps
                outcome = await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
                assert outcome.armed == 0 and not outcome.skipped
                assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0
                assert output_of(keeper)[0] == subprocess.run([str(path)], capture_output=True, check=True).stdout

    run(work())


@pytest.mark.alone
@pytest.mark.full
def test_two_hundred_hand_overs(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("windows.c", "-O1")
        async with injector() as host:
            for _ in range(200):
                keeper = launches.start(str(path), stop=True)
                reply = await prepare(host, keeper.status().pid, pool, [])
                await asyncio.to_thread(take_over, keeper.status().pid, reply.writes, reply.patches, reply.arm_address)
                assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0

    run(work())


def test_a_target_is_recorded_from_its_first_instruction(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("busy.c", "-O2")
        async with injector() as host:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            hooks = hook_specs(pid, path, ["main", "help"], plan=raw_plan())
            enable(pool, hooks)
            reply = await prepare(host, pid, pool, hooks)
            assert not reply.refused
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            keeper.wait(lambda status: status.ended, WAIT_S)
        recording = read_recording(pool.path)
        first = recording.threads[1][0]
        assert (first["kind"], first["hook"], first["word"]) == (Kind.ENTER, 1, 0)
        assert recording.count(Kind.ENTER, 1) == recording.count(Kind.EXIT, 1) == 1
        assert recording.count(Kind.ENTER, 2) == recording.count(Kind.EXIT, 2) >= 2000 // 7
        payload = next(payload for entry, payload in recording.entries_with_payload() if entry["hook"] == 1 and entry["kind"] == Kind.ENTER)
        assert int.from_bytes(payload[:8], "little") == 1  # argc
        for entries in recording.threads.values():
            check_calls(entries)

    run(work())


# Hooks that come and go while the target runs


@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=[pytest.mark.full, pytest.mark.alone])])
def test_counts_are_exact_and_the_code_is_the_files_again_at_the_end(pool: Pool, rounds: int) -> None:
    """All 2000 functions hooked by one visit, called by four threads; then random changes at full speed; a second visit adds nothing twice."""

    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                hooks = hook_specs(target.pid, target.path, target.names)
                pool.set_recording(False)
                enable(pool, hooks)
                reply = await prepare(host, target.pid, pool, hooks)
                assert reply.recorder == "native" and reply.detail is None and len(reply.refused) < 20, reply.refused
                outcome = await asyncio.to_thread(install, target.pid, reply.writes, reply.patches)
                assert not outcome.skipped and outcome.threads == 5
                target.tell("hold")
                pool.set_recording(True)
                target.tell("count 3")
                pool.set_recording(False)
                hooked = {patch.hook for patch in reply.patches if patch.hook}
                assert_counted(pool, hooked, 3 * 4)
                target.tell("free")
                await churn(target.pid, [patch for patch in reply.patches if patch.hook], rounds)
                again = await prepare(host, target.pid, pool, hooks[:10])
                assert not again.patches and len(again.refused) == 10 and all("hooked already" in row.reason for row in again.refused)
                assert again.detail is None
                await asyncio.to_thread(restore, target.pid, reply.patches)
                assert not code_differs(target.pid, target.path)
                target.tell("hold")
                target.quit()

    run(work())


async def churn(pid: int, patches: list[Patch], rounds: int) -> None:
    """Takes random patches away and puts them back; all are in at the end."""
    choose = random.Random(1)
    for _ in range(rounds):
        some = choose.sample(patches, choose.randint(1, len(patches)))
        assert not (await asyncio.to_thread(restore, pid, some)).skipped
        assert not (await asyncio.to_thread(install, pid, (), some)).skipped


# When it cannot be done


def test_a_target_that_was_stopped_stays_stopped(pool: Pool) -> None:
    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                os.kill(target.pid, signal.SIGSTOP)
                eventually(lambda: thread_state(target.pid, target.pid) == "T", "stopped")
                reply = await prepare(host, target.pid, pool, hook_specs(target.pid, target.path, target.names[:50]))
                assert reply.recorder == "native" and len(reply.patches) > 40
                assert thread_state(target.pid, target.pid) == "T" and tracer_of(target.pid, target.pid) == 0
                assert not (await asyncio.to_thread(install, target.pid, reply.writes, reply.patches)).skipped
                os.kill(target.pid, signal.SIGCONT)
                target.tell("hold")
                target.quit()

    run(work())


def test_a_process_that_is_gone_or_held_by_another(pool: Pool) -> None:
    async def work() -> None:
        async with injector() as host:
            sleeper = subprocess.Popen(["sleep", "60"])
            debugger = subprocess.Popen([sys.executable, "-c", HOLD, str(sleeper.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                assert debugger.stdout is not None and debugger.stdout.readline() == b"held\n"
                with pytest.raises(StrobeError) as raised:
                    await prepare(host, sleeper.pid, pool, [])
                assert raised.value.code is Code.FRIDA_ATTACH_FAILED and f"(pid {debugger.pid})" in raised.value.what
            finally:
                debugger.communicate()
                sleeper.kill()
                sleeper.wait()
            with pytest.raises(StrobeError) as raised:
                await prepare(host, sleeper.pid, pool, [])
            assert raised.value.code is Code.PROCESS_EXITED

    run(work())


HOLD = """
import sys
import time
from strobe import ptrace as calls
calls.ptrace(calls.SEIZE, int(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("tries", [4, pytest.param(40, marks=[pytest.mark.full, pytest.mark.alone])])
def test_a_target_killed_during_a_visit(launches: Launcher, pool: Pool, tries: int) -> None:
    """Whenever it dies, the answer is PROCESS_EXITED or a reply in time, and the next visit works."""

    async def work() -> None:
        path = str(program("windows.c", "-O1"))
        choose = random.Random(tries)
        async with injector() as host:
            for _ in range(tries):
                pid = launches.start(path, stop=True).status().pid
                visit = asyncio.create_task(prepare(host, pid, pool, []))
                await asyncio.sleep(choose.uniform(0, 0.2))  # an instant chosen at random, not a wait for something
                os.kill(pid, signal.SIGKILL)
                try:
                    await visit
                except StrobeError as error:
                    assert error.code is Code.PROCESS_EXITED, error
            keeper = launches.start(path, stop=True)
            reply = await prepare(host, keeper.status().pid, pool, [])
            assert reply.recorder == "native"

    run(work())


@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.full)])
def test_an_actor_may_be_killed_in_the_middle_of_a_visit(pool: Pool, tmp_path: Path, kills: int) -> None:
    """The host finishes what it is at and ends: the target runs on, and nothing is left in it nor in the temporary folder."""
    script = (
        "import asyncio, pathlib, sys\n"
        "from actors.spawner.hosting import Hosting\n"
        "from strobe.protocol.spawner import Prepare\n"
        "async def work():\n"
        f"    host = Hosting(pathlib.Path({str(tmp_path)!r}))\n"
        "    await host.warm()\n"
        "    print(host.pid, flush=True)\n"
        "    while True:\n"
        f"        await host.prepare(Prepare(pid=int(sys.argv[1]), pool_path={str(pool.path)!r}, hooks=[]))\n"
        "        print('visited', flush=True)\n"
        "asyncio.run(work())\n"
    )
    instants = random.Random(kills)
    with busy() as target:
        own = thread_ids(target.pid)
        for _ in range(kills):
            command = [sys.executable, "-c", script, str(target.pid)]
            actor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
            assert actor.stdout is not None
            host = Path(f"/proc/{int(actor.stdout.readline())}/exe")
            assert actor.stdout.readline() == "visited\n"
            time.sleep(instants.random() * 0.04)  # an instant somewhere in a visit, which takes about that long
            actor.kill()
            actor.communicate()
            eventually(partial(_is_gone, host), "the host has ended")
            assert target.process.poll() is None
            assert sorted(thread_ids(target.pid)) == sorted(own)
            assert "frida" not in Path(f"/proc/{target.pid}/maps").read_text()
            assert leftovers(tmp_path) == []
        target.tell("count 1")
        target.quit()


def _is_gone(program: Path) -> bool:
    return not program.exists()


def test_a_host_that_dies_is_replaced(pool: Pool, tmp_path: Path) -> None:
    async def work() -> None:
        host = Hosting(tmp_path)
        try:
            await host.warm()
            assert host.pid is not None
            os.kill(host.pid, signal.SIGKILL)
            with pytest.raises(StrobeError, match="ended \\(SIGKILL\\)"):
                await host.warm()
            with busy() as target:
                ask = Prepare(pid=target.pid, pool_path=str(pool.path), hooks=[])
                assert (await host.prepare(ask)).recorder == "native"
                target.quit()
        finally:
            await host.close()
        assert leftovers(tmp_path) == []

    run(work())


def leftovers(folder: Path) -> list[str]:
    """Files in a host's temporary folder, and processes that have it in their environment."""
    found = [path.name for path in folder.iterdir()]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or not ours
            if f"TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found
