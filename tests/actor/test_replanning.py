"""Plans exchanged in a busy target: every call is recorded once, by the old plan or the new one, whole."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from actors.session.ptrace.patching import install
from actors.session.ptrace.remote import NewPlan
from actors.session.ptrace.replanning import replan
from strobe.errors import StrobeError
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool
from tests.harness.hooking import END, enable, hook_specs, raw_plan
from tests.harness.recording import read_recording
from tests.harness.visits import busy, injector, prepare, run

NAMES = [f"f_{number}" for number in range(1000, 1064)]


def test_other_plans_while_four_threads_call(pool: Pool) -> None:
    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                hooks = hook_specs(target.pid, target.path, NAMES)
                pool.set_recording(False)
                enable(pool, hooks)
                reply = await prepare(host, target.pid, pool, hooks)
                await asyncio.to_thread(install, target.pid, reply.writes, reply.patches)
                assert reply.remote_address is not None
                thunks = {patch.hook: patch.thunk for patch in reply.patches}
                second = hook_specs(target.pid, target.path, NAMES, first_id=1001, plan=raw_plan())
                xmm = hook_specs(target.pid, target.path, NAMES, first_id=2001, plan=bytes((2, 0, 8, 0, 0, 0, 0, 0)) + END + END)
                for more in (second, xmm):
                    enable(pool, more)
                target.tell("hold")
                pool.set_recording(True)
                counting = asyncio.create_task(asyncio.to_thread(target.tell, "count 40"))
                for more in (second, xmm, hooks, second):  # `hooks` again: back from a plan that reads vector registers
                    pairs = [(spec, thunks[first.id]) for spec, first in zip(more, hooks, strict=True) if first.id in thunks]
                    wanted = [NewPlan(spec.id, spec.address, thunk, spec.plan) for spec, thunk in pairs]
                    assert await asyncio.to_thread(replan, target.pid, reply.remote_address, wanted) == {plan.hook for plan in wanted}
                await counting
                pool.set_recording(False)
                hooked = [first.id for first in hooks if first.id in thunks]
                target.quit()
        recording = read_recording(pool.path)
        assert not sum(recording.dropped_by_kind)
        entries = recording.all
        for kind in (Kind.ENTER, Kind.EXIT):
            counts = np.bincount(entries["hook"][entries["kind"] == kind], minlength=len(pool.hooks))
            for number in hooked:
                assert counts[number] + counts[number + 1000] + counts[number + 2000] == 160, (kind, number)
        sizes = {1: 0, 2: 32, 3: 32}
        for entry, payload in recording.entries_with_payload():
            if entry["kind"] == Kind.ENTER:
                assert len(payload) == sizes[1 + int(entry["hook"]) // 1000]

    run(work())


def test_an_invalid_plan_is_refused_and_the_old_one_stays(pool: Pool) -> None:
    async def work() -> None:
        with busy() as target:
            async with injector() as host:
                hooks = hook_specs(target.pid, target.path, NAMES[:2], plan=raw_plan())
                enable(pool, hooks)
                reply = await prepare(host, target.pid, pool, hooks)
                await asyncio.to_thread(install, target.pid, reply.writes, reply.patches)
                assert reply.remote_address is not None
                thunks = {patch.hook: patch.thunk for patch in reply.patches}
                wanted = [NewPlan(50 + spec.id, spec.address, thunks[spec.id], b"\xff" * 8) for spec in hooks]
                assert await asyncio.to_thread(replan, target.pid, reply.remote_address, wanted) == set()
                with pytest.raises(StrobeError, match="no thunk"):
                    good = NewPlan(60, hooks[0].address, hooks[0].address, raw_plan())
                    await asyncio.to_thread(replan, target.pid, reply.remote_address, [good])
                target.tell("hold")
                before = read_recording(pool.path).count(Kind.ENTER, 1)
                target.tell("count 3")
                assert read_recording(pool.path).count(Kind.ENTER, 1) >= before
                target.quit()

    run(work())
