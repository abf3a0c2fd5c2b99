"""The Injector where the recorder cannot be loaded, or has nowhere to write."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from actors.session.ptrace.patching import take_over
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool
from strobe.protocol.spawner import Prepare
from tests.harness.hooking import enable, hook_specs, raw_plan, symbols
from tests.harness.launching import Launcher, output_of
from tests.harness.recording import check_calls, read_recording
from tests.harness.targets import program
from tests.harness.visits import WAIT_S, assert_counted, busy, injector, prepare, run


def test_the_fallback_records_calls_with_arguments_and_results(launches: Launcher, pool: Pool) -> None:
    """Enters and exits of threads, exact: the program itself counts its calls. The payload is what the plan says."""

    async def work() -> None:
        path = program("numbers.c", "-O1")
        async with injector(fallback_only=True) as host:
            keeper = launches.start(str(path), "50", "2", "5", stop=True)
            pid = keeper.status().pid
            hooks = hook_specs(pid, path, ["leaf", "middle", "chain", "numbered_line"], plan=raw_plan(2))
            enable(pool, hooks)
            reply = await prepare(host, pid, pool, hooks)
            assert reply.recorder == "fallback" and not reply.patches and not reply.refused and reply.arm_address is None
            assert reply.detail is not None and "Interceptor" in reply.detail
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            assert os.waitstatus_to_exitcode(keeper.wait(lambda status: status.ended, WAIT_S).wait_status) == 17
        lines, calls = output_of(keeper)
        assert lines.count(b"\n") == 50
        recording = read_recording(pool.path)
        assert not sum(recording.dropped_by_kind)
        assert calls == b"calls %d\n" % recording.count(Kind.ENTER) == b"calls %d\n" % recording.count(Kind.EXIT)
        for entries in recording.threads.values():
            check_calls(entries)
        results = {int(entry["span"]): int(entry["word"]) for entry in recording.all if entry["kind"] == Kind.EXIT and entry["hook"] == 1}
        leaves = [(int(entry["span"]), payload) for entry, payload in recording.entries_with_payload() if entry["hook"] == 1 and entry["kind"] == Kind.ENTER]
        for span, payload in leaves[:1000]:
            value, step = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
            assert results[span] == (value * 31 + step) % (1 << 64)

    run(work())


def test_the_fallback_counts_exactly(pool: Pool) -> None:
    async def work() -> None:
        with busy() as target:
            async with injector(fallback_only=True) as host:
                target.tell("hold")
                first, second = (hook_specs(target.pid, target.path, names, first_id=n) for n, names in ((1, target.names[:300]), (301, target.names[300:400])))
                enable(pool, first + second)
                replies = [await prepare(host, target.pid, pool, first), await prepare(host, target.pid, pool, second)]
                refused = {id_ for reply in replies for id_ in reply.refused_ids}
                assert len(refused) < 40
                target.tell("count 5")
                assert_counted(pool, {hook.id for hook in first + second} - refused, 5 * 4)
            target.tell("count 2")  # the host is gone
            assert_counted(pool, {hook.id for hook in first + second} - refused, 7 * 4)
            target.quit()

    run(work())


def test_a_recorder_that_cannot_be_loaded_is_replaced_and_named(launches: Launcher, pool: Pool, tmp_path: Path) -> None:
    """Where exceptions may pass, only entries are recorded; the program behaves as without Strobe."""
    broken = tmp_path / "strobe-recorder.so"
    broken.write_text("this is no library")

    async def work() -> None:
        path = program("exceptions.cpp", "-O1")
        native = subprocess.run([str(path)], capture_output=True, check=False)
        async with injector(recorder=broken) as host:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            hooks = hook_specs(pid, path, [name for name, symbol in symbols(path).items() if symbol.size > 16 and name != "_start"], plan=raw_plan())
            enable(pool, hooks)
            reply = await prepare(host, pid, pool, hooks)
            assert reply.recorder == "fallback" and reply.detail is not None
            assert str(broken) in reply.detail and "returns are not recorded" in reply.detail
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            status = keeper.wait(lambda status: status.ended, WAIT_S).wait_status
        assert (output_of(keeper), os.waitstatus_to_exitcode(status)) == ((native.stdout, native.stderr), native.returncode)
        recording = read_recording(pool.path)
        assert recording.count(Kind.ENTER) > 100 and recording.count(Kind.EXIT) == 0

    run(work())


def test_without_a_pool_nothing_is_recorded_and_the_program_runs(launches: Launcher, tmp_path: Path) -> None:
    async def work() -> None:
        async with injector() as host:
            keeper = launches.start(str(program("windows.c", "-O1")), stop=True)
            pid = keeper.status().pid
            reply = await host.prepare(Prepare(pid=pid, pool_path=str(tmp_path / "missing"), hooks=[]))
            assert reply.recorder == "none" and reply.detail is not None and "No such file" in reply.detail
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0

    run(work())
