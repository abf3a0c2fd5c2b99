"""The Injector on real targets: what a visit leaves behind, that moved code computes the same, that counts are exact under change."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.session.ptrace.patching import install, restore, take_over
from actors.session.ptrace.threads import thread_ids, thread_state, tracer_of
from actors.spawner.injector import Injector
from strobe.artifacts import artifact
from strobe.errors import Code, StrobeError
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool, create_pool
from strobe.protocol.spawner import HookSpec, Patch, Prepare, PrepareReply
from tests.harness.hooking import bias, code_differs, enable, hook_specs, raw_plan, symbols
from tests.harness.launching import Launcher, eventually, launcher, output_of
from tests.harness.recording import check_calls, read_recording
from tests.harness.targets import program

WAIT_S = 30.0


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


@asynccontextmanager
async def injector(*, recorder: Path | None = None, fallback_only: bool = False) -> AsyncIterator[Injector]:
    made = Injector(recorder or artifact("strobe-recorder.so"), artifact("agent.js"), fallback_only=fallback_only)
    try:
        await made.warm()
        yield made
    finally:
        await made.close()


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = create_pool(Path("/dev/shm") / f"strobe-test-{os.getpid()}-{tmp_path.name}", 64)
    try:
        yield made
    finally:
        made.unlink()


@pytest.fixture
def launches(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as made:
        yield made


async def prepare(host: Injector, pid: int, pool: Pool, hooks: list[HookSpec], *, held: bool = False) -> PrepareReply:
    return await host.prepare(Prepare(pid=pid, held=held, pool_path=str(pool.path), hooks=hooks))


class Busy:
    """tests/targets/busy.c, running: four threads call 2000 functions."""

    def __init__(self) -> None:
        self.path = program("busy.c", "-O2")
        self.process = subprocess.Popen([str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.line() == "ready 2000\n"
        self.names = sorted(name for name in symbols(self.path) if name.startswith("f_"))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        assert self.line() == f"done {command}\n", f"it died: {self.process.poll()}"

    def quit(self) -> None:
        out, _ = self.process.communicate("quit\n", timeout=WAIT_S)
        assert (out, self.process.returncode) == ("bye\n", 0)


@contextmanager
def busy() -> Iterator[Busy]:
    made = Busy()
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


# The hand-over of a launched target


def test_a_held_target_is_left_stopped_at_its_entry_with_nothing_in_it(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("windows.c", "-O1")
        async with injector() as host:
            for _ in range(5):
                keeper = launches.start(str(path), stop=True)
                pid = keeper.status().pid
                base = bias(pid, path)
                reply = await prepare(host, pid, pool, [], held=True)
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


@pytest.mark.full
def test_two_hundred_hand_overs(launches: Launcher, pool: Pool) -> None:
    async def work() -> None:
        path = program("windows.c", "-O1")
        async with injector() as host:
            for _ in range(200):
                keeper = launches.start(str(path), stop=True)
                reply = await prepare(host, keeper.status().pid, pool, [], held=True)
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
            reply = await prepare(host, pid, pool, hooks, held=True)
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


# Moved code

REASONS = {
    "bad_small": "3 bytes long",
    "bad_ends_early": "ends within",
    "bad_branch_in": "a branch at +6 leads into",
    "bad_branch_to_start": "first instruction",
    "bad_branch_far": "a branch at +",
    "bad_counted_jump": "counted jump",
    "bad_trap": "system call or trap at +2",
    "bad_system_call": "system call or trap at +1",
    "bad_returns_inside": "a call at +0 would return",
    "bad_unknown": "+0 is not one",
}


def test_moved_code_computes_the_same_and_what_cannot_be_moved_is_refused(launches: Launcher, pool: Pool) -> None:
    """Every relocation and every reason there is (tests/targets/windows.c)."""

    async def work() -> None:
        path = program("windows.c", "-O1")
        expected = subprocess.run([str(path)], capture_output=True, check=True).stdout
        printed = {line.split()[0] for line in expected.decode().splitlines()}
        names = [name for name in symbols(path) if name in printed or name.startswith("bad_")]
        async with injector() as host:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            hooks = hook_specs(pid, path, names)
            enable(pool, hooks)
            reply = await prepare(host, pid, pool, hooks, held=True)
            reasons = {row.function: row.reason for row in reply.refused}
            assert sorted(reasons) == sorted(name for name in names if name.startswith("bad_")), reasons
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            keeper.wait(lambda status: status.ended, WAIT_S)
        assert output_of(keeper)[0] == expected
        assert keeper.status().wait_status == 0
        for name, words in REASONS.items():
            assert words in reasons[name], (name, reasons[name])
        recording = read_recording(pool.path)
        by_name = {hook.function: hook.id for hook in hooks}
        for name in names:
            if name not in reasons and name != "recursive":
                assert recording.count(Kind.ENTER, by_name[name]) == 6, name
        assert recording.count(Kind.ENTER, by_name["recursive"]) == 2 * (1 + 2 + 8)
        for entries in recording.threads.values():
            check_calls(entries)

    run(work())


# Hooks that come and go while the target runs


@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.full)])
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


def assert_counted(pool: Pool, hooked: set[int], calls: int) -> None:
    """Every call of every hooked function is there as an enter and an exit, or counted as dropped."""
    recording = read_recording(pool.path)
    entries = recording.all
    assert not sum(recording.dropped_by_kind)
    for kind in (Kind.ENTER, Kind.EXIT):
        counts = np.bincount(entries["hook"][entries["kind"] == kind], minlength=len(pool.hooks))
        wrong = {hook: int(counts[hook]) for hook in hooked if counts[hook] != calls}
        assert not wrong, (kind, len(wrong), wrong)
    for thread in recording.threads.values():
        check_calls(thread)


# Without the recorder


def test_the_fallback_records_calls_with_arguments_and_results(launches: Launcher, pool: Pool) -> None:
    """Enters and exits of threads, exact: the program itself counts its calls. The payload is what the plan says."""

    async def work() -> None:
        path = program("numbers.c", "-O1")
        async with injector(fallback_only=True) as host:
            keeper = launches.start(str(path), "50", "2", "5", stop=True)
            pid = keeper.status().pid
            hooks = hook_specs(pid, path, ["leaf", "middle", "chain", "numbered_line"], plan=raw_plan(2))
            enable(pool, hooks)
            reply = await prepare(host, pid, pool, hooks, held=True)
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
            reply = await prepare(host, pid, pool, hooks, held=True)
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
            reply = await host.prepare(Prepare(pid=pid, held=True, pool_path=str(tmp_path / "missing"), hooks=[]))
            assert reply.recorder == "none" and reply.detail is not None and "No such file" in reply.detail
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0

    run(work())


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
from actors.session.ptrace import calls
calls.ptrace(calls.SEIZE, int(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("tries", [4, pytest.param(40, marks=pytest.mark.full)])
def test_a_target_killed_during_a_visit(launches: Launcher, pool: Pool, tries: int) -> None:
    """Whenever it dies, the answer is PROCESS_EXITED or a reply in time, and the next visit works."""

    async def work() -> None:
        path = str(program("windows.c", "-O1"))
        choose = random.Random(tries)
        async with injector() as host:
            for _ in range(tries):
                pid = launches.start(path, stop=True).status().pid
                visit = asyncio.create_task(prepare(host, pid, pool, [], held=True))
                await asyncio.sleep(choose.uniform(0, 0.2))  # an instant chosen at random, not a wait for something
                os.kill(pid, signal.SIGKILL)
                try:
                    await visit
                except StrobeError as error:
                    assert error.code is Code.PROCESS_EXITED, error
            keeper = launches.start(path, stop=True)
            reply = await prepare(host, keeper.status().pid, pool, [], held=True)
            assert reply.recorder == "native"

    run(work())


def test_a_host_leaves_nothing_behind(pool: Pool) -> None:
    """No process, no file in the temporary folder, no thread in the target: also when the host was killed in the middle of its work."""
    script = (
        "import asyncio, sys\n"
        "from actors.spawner.injector import Injector\n"
        "from strobe.artifacts import artifact\n"
        "from strobe.protocol.spawner import Prepare\n"
        "async def work():\n"
        "    host = Injector(artifact('strobe-recorder.so'), artifact('agent.js'))\n"
        "    await host.warm()\n"
        "    print('warm', flush=True)\n"
        "    while True:\n"
        f"        await host.prepare(Prepare(pid=int(sys.argv[1]), held=False, pool_path={str(pool.path)!r}, hooks=[]))\n"
        "        print('visited', flush=True)\n"
        "asyncio.run(work())\n"
    )
    before = leftovers()
    with busy() as target:
        own = thread_ids(target.pid)
        host = subprocess.Popen([sys.executable, "-c", script, str(target.pid)], stdout=subprocess.PIPE, text=True)
        assert host.stdout is not None
        for _ in range(2):
            assert host.stdout.readline()
        host.kill()
        host.communicate()
        eventually(lambda: sorted(thread_ids(target.pid)) == sorted(own), "the target has its own threads only")
        eventually(lambda: "frida" not in Path(f"/proc/{target.pid}/maps").read_text(), "no agent is mapped")
        target.tell("count 1")
        assert leftovers() <= before
        target.quit()


def leftovers() -> set[str]:
    """Files and daemons that a Frida host may leave: those of this test's own environment."""
    folder = Path(tempfile.gettempdir())
    found = {path.name for pattern in ("strobe-frida-*", "frida-*", "idun-*") for path in folder.glob(pattern)}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/idund"):
            found.add(words[0].decode())
    return found


# Every form of a rip-relative operand: {} is its place. Prefixes, one to three opcode bytes, immediates of each size, VEX and EVEX.
RIP_FORMS = """
movq {}, %rax|movl {}, %eax|movw {}, %ax|movb {}, %al|movq %rax, {}|movb %r9b, {}|movzbl {}, %eax|movsbq {}, %r10|movslq {}, %rax|lea {}, %rax
lea {}, %r15|movl $305419896, {}|movq $305419896, {}|movw $4660, {}|movb $18, {}|cmpb $5, {}|cmpw $1000, {}|cmpl $5, {}|cmpl $100000, {}|cmpq $-1, {}
addl $1, {}|addq $100000, {}|subw $300, {}|andb $-2, {}|orl $5, {}|xorl %ecx, {}|testb $1, {}|testl $65536, {}|incl {}|decq {}|negl {}|notq {}
imulq {}, %rax|imull $7, {}, %eax|imull $70000, {}, %eax|mull {}|divq {}|shll $3, {}|sarq {}|rolw $2, {}|btl $3, {}|btsq %rax, {}|lock incl {}
lock cmpxchgq %rcx, {}|xaddl %eax, {}|xchgq %rax, {}|cmpxchg16b {}|pushq {}|popq {}|setne {}|cmovneq {}, %rax|bswap %eax|movbe {}, %eax|popcntq {}, %rax
crc32l {}, %eax|lzcntl {}, %eax|tzcntq {}, %rax|prefetcht0 {}|nopw {}|nopl {}|fldl {}|fldt {}|fstps {}|ldmxcsr {}|fxsave {}|sgdt {}|jmp *{}
movaps {}, %xmm0|movups %xmm8, {}|movapd {}, %xmm0|movdqa {}, %xmm9|movdqu {}, %xmm1|movss {}, %xmm0|movsd {}, %xmm15|movq {}, %xmm0|movd {}, %xmm0
addss {}, %xmm0|mulsd {}, %xmm1|cvtsi2sdl {}, %xmm0|cvttsd2siq {}, %rax|ucomisd {}, %xmm0|pxor {}, %xmm0|pand {}, %xmm8|pshufd $27, {}, %xmm0
pshufb {}, %xmm0|palignr $4, {}, %xmm0|pinsrb $3, {}, %xmm0|roundsd $1, {}, %xmm0|shufps $3, {}, %xmm0|cmpltsd {}, %xmm0|pcmpistri $0, {}, %xmm0
aesenc {}, %xmm0|vmovaps {}, %ymm0|vaddsd {}, %xmm0, %xmm1|vpshufb {}, %ymm8, %ymm1|vpermq $3, {}, %ymm0|vfmadd213sd {}, %xmm0, %xmm1|andn {}, %rax, %rcx
rorx $5, {}, %rax|vmovdqu64 {}, %zmm0|vmovups {}, %zmm17|vpternlogd $3, {}, %zmm0, %zmm1|vaddpd {}, %zmm0, %zmm1|movdir64b {}, %rax|gs; movq {}, %rax
"""


def test_every_rip_relative_operand_keeps_its_place(launches: Launcher, pool: Pool, tmp_path: Path) -> None:
    """Each form becomes a function that is hooked, not called; objdump says where the moved instruction's operand lies."""
    forms = [form for form in RIP_FORMS.replace("\n", "|").split("|") if "{}" in form]
    body = ".globl form_{n}\n.type form_{n}, @function\n.p2align 4\nform_{n}: {code}\n.fill 8, 1, 0x90\nret\n.size form_{n}, . - form_{n}"
    bodies = [body.format(n=n, code=form.format("place(%rip)")) for n, form in enumerate(forms)]
    head = ".data\n.p2align 6\nplace: .fill 512, 1, 0\n.text\n.globl main\nmain: xorl %eax, %eax\nret"
    source, path = tmp_path / "forms.s", tmp_path / "forms"
    source.write_text("\n".join([head, *bodies, '.section .note.GNU-stack,"",@progbits\n']))
    subprocess.run(["gcc", "-o", str(path), str(source)], check=True, timeout=60)

    async def work() -> None:
        async with injector() as host:
            keeper = launches.start(str(path), stop=True)
            pid = keeper.status().pid
            base = bias(pid, path)
            hooks = hook_specs(pid, path, [f"form_{n}" for n in range(len(forms))])
            reply = await prepare(host, pid, pool, hooks, held=True)
            refused = {forms[int(row.function.split("_")[1])]: row.reason for row in reply.refused}
            moved = {at: text for write in reply.writes for at, text in operands(tmp_path / "moved", write.data, write.address).items()}
            original = operands(path, None, base)
            by_id = {patch.hook: patch for patch in reply.patches}
            for hook in hooks:
                form = forms[hook.id - 1]
                if form not in refused:
                    patch = by_id[hook.id]
                    at = patch.thunk + patch.entries[0]
                    assert moved.get(at) == original[hook.address], (form, moved.get(at), original[hook.address])
            assert len(refused) <= 3, refused
            await asyncio.to_thread(take_over, pid, reply.writes, reply.patches, reply.arm_address)
            assert keeper.wait(lambda status: status.ended, WAIT_S).wait_status == 0

    run(work())


def operands(path: Path, code: bytes | None, address: int) -> dict[int, str]:
    """By address: "mnemonic place" of each rip-relative instruction, as objdump has it, of `code` at `address` or of a file loaded there."""
    kind = ["-d", f"--adjust-vma={address:#x}"]
    if code is not None:
        path.write_bytes(code)
        kind = ["-D", "-b", "binary", "-m", "i386:x86-64", f"--adjust-vma={address:#x}"]
    listing = subprocess.run(["objdump", *kind, "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True, timeout=60).stdout
    found = {}
    for line in listing.splitlines():
        if "(%rip)" in line and "#" in line:
            at, text = line.split(":", 1)
            instruction, place = text.rsplit("#", 1)
            found[int(at.strip(), 16)] = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "HERE", " ".join(instruction.split())) + " " + str(int(place.split()[0], 16))
    return found
