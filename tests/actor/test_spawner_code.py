"""Code that the Injector moves out of the way of a hook: it computes the same, and what cannot be moved is refused."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

from actors.session.ptrace.patching import take_over
from strobe.lanes.layout import Kind
from strobe.lanes.pool import Pool
from tests.harness.hooking import bias, enable, hook_specs, symbols
from tests.harness.launching import Launcher, output_of
from tests.harness.recording import check_calls, read_recording
from tests.harness.targets import program
from tests.harness.visits import WAIT_S, injector, prepare, run

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
            reply = await prepare(host, pid, pool, hooks)
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
            reply = await prepare(host, pid, pool, hooks)
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
