"""Short looks at threads by ptrace(2): registers and stack of one that waits, and where one is, again and again, that computes.

A look runs in a thread of its own: should anything go wrong, the kernel lets go of its tracees when that thread ends.
"""

from __future__ import annotations

import ctypes
import os
import random
import time
from dataclasses import dataclass, field
from typing import Final

from actors.stuck_detector.memory import peek
from strobe import ptrace as calls
from strobe.ptrace import Registers

STOP_S: Final = 0.15  # it has to be given a processor first
SAMPLES: Final = 40
STATE_BYTES: Final = 1024  # of the stack, that count as part of a thread's state
LOOP_BYTES: Final = 128
AHEAD_BYTES: Final = 24  # after the last that was seen: its jump back
STACK_BYTES: Final = 48 << 10
GETFPREGS: Final = 14
_SIGTRAP: Final = 5
_PLAIN: Final = frozenset({0x8B, 0x89, 0x8A, 0x88, 0x03, 0x01, 0x2B, 0x29, 0x3B, 0x39, 0x83})
_LEADS_AWAY: Final = frozenset({0xC3, 0xC2, 0xE8, 0xE9, 0xEB, 0xFF, 0xCB})
DWARF_REGISTERS: Final = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
_GENERAL: Final = (*DWARF_REGISTERS, "eflags")


@dataclass(frozen=True)
class Seen:
    """One thread, held for a moment. `regs` by DWARF number."""

    regs: dict[int, int]
    stack: bytes = b""


@dataclass(frozen=True)
class Walked:
    """Some samples of one thread. `states`: registers with SSE, and the stack's top."""

    pc: int
    sp: int
    samples: int
    states: frozenset[int] = frozenset()
    no_exit: bool = False
    system_calls: frozenset[int] = field(default_factory=frozenset)


def see(pid: int, tid: int) -> Seen:
    """Raises OSError (PermissionError: another traces it) and TimeoutError."""
    status = _hold(tid)
    try:
        registers = _registers(tid, status)
    finally:
        _release(tid, status)
    return seen_at(pid, {number: getattr(registers, name) for number, name in enumerate(DWARF_REGISTERS)})


def seen_at(pid: int, regs: dict[int, int]) -> Seen:
    """With what lies on its stack; the thread may have gone on by then, which waiting ones do not."""
    content = b""
    while len(content) < STACK_BYTES and (page := peek(pid, regs[7] + len(content), 4096 - (regs[7] + len(content)) % 4096)):
        content += page
    return Seen(regs, content)


def walk(pid: int, tid: int) -> Walked:
    """40 samples of a thread that computes, with some hundred µs between them. Raises as `see`. No single steps: were this process killed in the middle of
    one, the target would die of SIGTRAP."""
    status = _hold(tid)
    samples: list[Registers] = []
    states: set[int] = set()
    system: set[int] = set()
    floats = ctypes.create_string_buffer(512)
    try:
        while True:
            registers = _registers(tid, status)
            number = registers.orig_rax
            calls.ptrace(GETFPREGS, tid, 0, ctypes.addressof(floats))
            general = tuple(getattr(registers, name) for name in _GENERAL)
            states.add(hash((general, floats.raw[32:416], peek(pid, registers.rsp, STATE_BYTES))))
            samples.append(registers)
            if number < 1 << 20:
                system.add(number)
            if len(samples) >= SAMPLES or not _is_ours(status):
                break
            calls.ptrace(calls.CONT, tid)
            time.sleep(random.uniform(1e-4, 8e-4))
            calls.ptrace(calls.INTERRUPT, tid)
            status = _wait(tid)
    finally:
        _release(tid, status)
    pcs = [registers.rip for registers in samples]
    no_exit = len(pcs) == SAMPLES and not system and _no_exit(pid, set(pcs))
    return Walked(pcs[-1], samples[-1].rsp, len(pcs), frozenset(states), no_exit, frozenset(system))


def _is_ours(status: int) -> bool:
    """The stop of an interrupt; not a signal on its way, nor a group-stop."""
    return calls.is_event_stop(status) and os.WSTOPSIG(status) == _SIGTRAP


def _no_exit(pid: int, pcs: set[int]) -> bool:
    """All was seen between a jump back and its target, and nothing there can be a way out: read at any byte, since lengths are not decoded, so that a way out
    may be seen where there is none, never the other way round (Intel SDM 2: JMP, Jcc, CALL, RET)."""
    low, high = min(pcs), max(pcs)
    if high - low > LOOP_BYTES:
        return False
    ahead = peek(pid, high, AHEAD_BYTES)
    jumps = [(high + at, high + at + 2 + int.from_bytes(ahead[at + 1 : at + 2], "little", signed=True)) for at in range(len(ahead) - 1) if ahead[at] == 0xEB]
    high, target = next(((at, target) for at, target in jumps if target <= low), (0, 0))
    if not target:
        return False
    body = _without_offsets(peek(pid, target, high - target), [0, *(pc - target for pc in pcs if target < pc < high)])
    if len(body) != high - target or any(byte in _LEADS_AWAY for byte in body):
        return False
    for at, byte in enumerate(body):
        short = 0x70 <= byte <= 0x7F
        long = byte == 0x0F and 0x80 <= (body[at + 1 : at + 2] or b"\0")[0] <= 0x8F
        length, offset = (2, body[at + 1 : at + 2]) if short else (6, body[at + 2 : at + 6])
        if (short or long) and not 0 <= at + length + int.from_bytes(offset, "little", signed=True) <= high - target:
            return False
    return True


def _without_offsets(body: bytes, starts: list[int]) -> bytes:
    """RIP-relative offsets of plain moves and sums that start where the thread was seen or jumps to, as NOPs: they are no opcodes (Intel SDM 2, table 2-2)."""
    found = bytearray(body)
    for start in starts if body else ():
        at = start + (0x40 <= body[start] <= 0x4F)
        if at + 6 <= len(body) and body[at] in _PLAIN and body[at + 1] & 0xC7 == 5:
            found[at + 2 : at + 6] = b"\x90" * 4
    return bytes(found)


def _hold(tid: int) -> int:
    """The status of its stop."""
    calls.ptrace(calls.SEIZE, tid)
    calls.ptrace(calls.INTERRUPT, tid)
    return _wait(tid)


def _registers(tid: int, status: int) -> Registers:
    registers = calls.get_registers(tid)
    if calls.is_event_stop(status):
        calls.restart_interrupted(tid, registers)
    return registers


def _wait(tid: int) -> int:
    end = time.perf_counter() + STOP_S
    while (status := calls.wait(tid)) is None:
        if time.perf_counter() > end:
            raise TimeoutError(f"thread {tid} did not stop within {STOP_S * 1000:.0f} ms")
        calls.yield_cpu()
    if not os.WIFSTOPPED(status):
        raise ProcessLookupError(f"thread {tid} has ended")
    return status


def _release(tid: int, status: int) -> None:
    """With the signal that stopped it, if it was one for the program."""
    signo = os.WSTOPSIG(status)
    pending = 0 if status >> 16 or signo == _SIGTRAP else signo
    try:
        calls.ptrace(calls.DETACH, tid, 0, pending)
    except ProcessLookupError:
        return  # it has ended, or never stopped: it is let go with this thread
