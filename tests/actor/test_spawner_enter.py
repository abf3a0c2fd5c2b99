"""A launched target entered before its hooks are known: the Prepare that follows goes on in the same visit; without one the target is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from actors.session.ptrace.patching import take_over
from actors.session.ptrace.threads import thread_ids, thread_state, tracer_of
from actors.spawner import injector as module
from actors.spawner.injector import Injector
from strobe.artifacts import artifact
from strobe.errors import Code, StrobeError
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import Enter, Prepare
from tests.harness.hooking import bias, enable, hook_specs, symbols
from tests.harness.launching import Launcher, eventually, output_of
from tests.harness.recording import read_recording
from tests.harness.targets import program

WAIT_S = 30.0


def host() -> Injector:
    return Injector(artifact("strobe-recorder.so"), artifact("agent.js"))


def is_left(pid: int) -> bool:
    maps = Path(f"/proc/{pid}/maps").read_text()
    return thread_ids(pid) == [pid] and thread_state(pid, pid) == "T" and tracer_of(pid, pid) == 0 and "frida" not in maps and "rwxp" not in maps


def test_hooks_given_after_entering_record_from_the_first_instruction(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("longjmp.c", "-O2")
        made = host()
        try:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            await made.enter(Enter(pid=pid, pool_path=str(pool.path)))
            assert tracer_of(pid, pid) != 0
            hooks = hook_specs(pid, path, ["main"])
            reply = await made.prepare(Prepare(pid=pid, pool_path=str(pool.path), hooks=hooks))
            assert is_left(pid)
            assert reply.recorder == "native" and not reply.refused
            assert {patch.address for patch in reply.patches if patch.hook} == {bias(pid, path) + symbols(path)["main"].value}
            enable(pool, hooks)
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            alone = subprocess.run([str(path)], capture_output=True, check=False)
            assert os.waitstatus_to_exitcode(keeper.wait(lambda status: status.ended, WAIT_S).wait_status) == alone.returncode
            assert [int(entry["hook"]) for entry in read_recording(pool.path).all] == [hooks[0].id] * 2
            assert output_of(keeper)[0] == alone.stdout
        finally:
            await made.close()

    asyncio.run(work())


@pytest.mark.parametrize("how", ["late", "closed"])
def test_a_target_that_was_entered_for_nothing_is_left(launches: Launcher, pool: Pool, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTERED_S", 0.05 if how == "late" else 60.0)

    async def work() -> None:
        made = host()
        try:
            keeper = launches.start(str(program("windows.c", "-O1")), stop=True)
            pid = keeper.status().pid
            await made.enter(Enter(pid=pid, pool_path=str(pool.path)))
            if how == "closed":
                await made.close()
            await asyncio.to_thread(eventually, lambda: is_left(pid), "the target is left")
            os.kill(pid, signal.SIGCONT)
            assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0
        finally:
            await made.close()

    asyncio.run(work())


def test_a_target_that_dies_after_it_was_entered_is_said_to_have_ended(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        made = host()
        try:
            keeper = launches.start(str(program("windows.c", "-O1")), stop=True)
            pid = keeper.status().pid
            await made.enter(Enter(pid=pid, pool_path=str(pool.path)))
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(StrobeError) as raised:
                await made.prepare(Prepare(pid=pid, pool_path=str(pool.path), hooks=[]))
            assert raised.value.code is Code.PROCESS_EXITED
        finally:
            await made.close()

    asyncio.run(work())
