"""Thunks worked out apart from the target, whose recorder is there already: the same as a visit of Frida's makes, and nobody enters the target."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from actors.session.ptrace.patching import install, restore, take_over
from actors.session.ptrace.remote import NewPlan
from actors.session.ptrace.reserving import groups, reserve
from actors.spawner.injector import Injector
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import GROUP_SPAN, OWN_BYTES, THUNK_BYTES_MAX, HookSpec, Patch, Prepare, PrepareReply
from tests.harness.hooking import enable, hook_specs, raw_plan, symbols
from tests.harness.launching import Launcher
from tests.harness.targets import program
from tests.harness.visits import Busy, assert_counted, busy, injector, prepare, run

XMM_PLAN = bytes((2, 0, 8, 0, 0, 0, 0, 0)) + bytes(16)


async def prepare_apart(host: Injector, pid: int, pool: Pool, hooks: list[HookSpec], first: PrepareReply) -> PrepareReply:
    """As the session does it. `first`: the reply to the visit that brought the recorder."""
    assert first.remote_address is not None
    plans = [NewPlan(hook.id, hook.address, 0, hook.plan) for hook in hooks]
    slabs, words = await asyncio.to_thread(reserve, pid, first.remote_address, plans)
    with_words = [hook.model_copy(update={"hook": word, "entry": entry}) for hook, (word, entry) in zip(hooks, words, strict=True)]
    return await host.prepare(Prepare(pid=pid, pool_path=str(pool.path), hooks=with_words, slabs=slabs, internals=first.internals))


def comparable(patch: Patch) -> tuple[int, bytes, bytes]:
    return patch.address, patch.original, patch.entries


def test_it_is_what_a_visit_makes(launches: Launcher, pool: Pool) -> None:
    """Every function of windows.c: the same windows, entries and refusals, and thunks that differ in their addresses only."""

    async def work() -> None:
        path = program("windows.c", "-O1")
        names = sorted(symbols(path))
        async with injector() as host:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            first = await prepare(host, pid, pool, [])
            apart = await prepare_apart(host, pid, pool, hook_specs(pid, path, names), first)
            maps = Path(f"/proc/{pid}/maps").read_text()
            assert "frida" not in maps and "rwxp" not in maps
            visited = await prepare(host, pid, pool, hook_specs(pid, path, names, first_id=1001))
            wanted = {patch.address: patch for patch in visited.patches if patch.hook}
            assert sorted(map(comparable, wanted.values())) == sorted(comparable(patch) for patch in apart.patches if patch.hook)
            assert sorted((one.function, one.reason) for one in apart.refused) == sorted((one.function, one.reason) for one in visited.refused)
            assert sum(len(write.data) for write in apart.writes) == pytest.approx(sum(len(write.data) for write in visited.writes), abs=16 * 100)

    run(work())


def test_moved_code_computes_the_same(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("windows.c", "-O1")
        async with injector() as host:
            plain = launches.start(str(path))
            plain.wait(lambda status: status.ended, 30)
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            first = await prepare(host, pid, pool, [])
            hooks = hook_specs(pid, path, sorted(symbols(path)), plan=raw_plan())
            enable(pool, hooks)
            reply = await prepare_apart(host, pid, pool, hooks, first)
            assert reply.recorder == "native" and reply.arm_address is None
            both = first.writes + reply.writes, first.patches + reply.patches
            outcome = await asyncio.to_thread(take_over, pid, *both, first.arm_address)
            assert not outcome.skipped
            assert keeper.wait(lambda status: status.ended, 30).wait_status == 0
            assert keeper.status().stream_bytes == plain.status().stream_bytes

    run(work())


def hooked(reply: PrepareReply) -> set[int]:
    return {patch.hook for patch in reply.patches if patch.hook}


async def _begin(host: Injector, target: Busy, pool: Pool) -> PrepareReply:
    first = await prepare(host, target.pid, pool, [])
    await asyncio.to_thread(take_over, target.pid, first.writes, first.patches, first.arm_address)
    return first


def test_while_four_threads_call(pool: Pool) -> None:
    """Two thousand functions, with plans for either entry; what is hooked already is refused, and taken away can be hooked anew."""

    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                first = await _begin(host, target, pool)
                hooks = [
                    hook.model_copy(update={"plan": XMM_PLAN}) if hook.id % 3 == 0 else hook
                    for hook in hook_specs(target.pid, target.path, target.names, plan=raw_plan())
                ]
                pool.set_recording(False)
                enable(pool, hooks)
                reply = await prepare_apart(host, target.pid, pool, hooks, first)
                assert len(reply.patches) > 1900 and not (await asyncio.to_thread(install, target.pid, reply.writes, reply.patches)).skipped
                again = await prepare_apart(host, target.pid, pool, hooks, first)
                assert not again.patches
                assert sum("hooked already" in one.reason for one in again.refused) >= len(reply.patches)
                target.tell("hold")
                pool.set_recording(True)
                await asyncio.to_thread(target.tell, "count 2")
                pool.set_recording(False)
                await asyncio.to_thread(restore, target.pid, reply.patches)
                anew = await prepare_apart(host, target.pid, pool, hooks, first)
                assert {(patch.address, patch.original) for patch in anew.patches} == {(patch.address, patch.original) for patch in reply.patches}
                target.quit()
        assert_counted(pool, hooked(reply), 8)

    run(work())


def test_its_process_may_be_ended(pool: Pool) -> None:
    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                first = await _begin(host, target, pool)
                for _ in range(3):
                    reply = await prepare_apart(host, target.pid, pool, hook_specs(target.pid, target.path, target.names[:5]), first)
                    assert reply.patches or reply.refused
                    assert host._apart is not None
                    os.kill(host._apart._process.pid, signal.SIGKILL)
                    host._apart._process.wait()
                target.quit()

    run(work())


def test_groups_are_what_one_slab_serves() -> None:
    near = [0x5000_0000_1000 + 0x100 * n for n in range(10)]
    far = near[0] + GROUP_SPAN
    assert groups(near, []) == [((near[0] + near[-1]) // 2, 10 * THUNK_BYTES_MAX + OWN_BYTES)]
    assert [size for _, size in groups([*near, far], [far + 1])] == [10 * THUNK_BYTES_MAX + OWN_BYTES, THUNK_BYTES_MAX + OWN_BYTES]
    assert groups([], []) == []
    text = (Path(__file__).resolve().parents[2] / "agent" / "frida" / "src" / "prepare.c").read_text()
    assert f"#define GROUP_SPAN {GROUP_SPAN:#x} " in text
    assert f"#define THUNK_MAX {THUNK_BYTES_MAX} " in text
