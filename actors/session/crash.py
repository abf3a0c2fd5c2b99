"""A crash page (strobe.lanes.layout.CRASH) as an event: what happened, where, by whom. Pure but for the frames, which the indexer gives."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from strobe.model.probe import Frame

# Order of gregset_t, <sys/ucontext.h>
GREGS = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip",
    "eflags", "csgsfs", "err", "trapno", "oldmask", "cr2",
)  # fmt: skip
# DWARF register numbers, System V AMD64 psABI figure 3.36
DWARF_REGISTERS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")

# si_code names, sigaction(2)
_CODES: dict[int, dict[int, str]] = {
    signal.SIGSEGV: {1: "address not mapped", 2: "access not permitted", 128: "general protection (non-canonical address)"},
    signal.SIGBUS: {1: "misaligned address", 2: "nonexistent physical address (mapped file too short?)", 3: "hardware error"},
    signal.SIGFPE: {1: "integer divide by zero", 2: "integer overflow", 3: "floating-point divide by zero"},
    signal.SIGILL: {1: "illegal opcode", 2: "illegal operand"},
    signal.SIGTRAP: {1: "breakpoint", 2: "trace trap", 128: "int3"},
}


@dataclass(frozen=True)
class Crash:
    """A crash page, read. `regs` by name; `ts` in the pool's clock."""

    signo: int
    code: int
    address: int
    pid: int
    tid: int
    sender_pid: int
    ts: int
    span: int
    regs: dict[str, int]
    stack_base: int
    stack: bytes
    maps: str
    comm: str


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def cause(crash: Crash) -> str:
    """Why the signal came, in words: `address not mapped`, `raised by the program itself`, `sent by process 4711`."""
    if crash.code <= 0:
        return "raised by the program itself" if crash.sender_pid in (0, crash.pid) else f"sent by process {crash.sender_pid}"
    return _CODES.get(crash.signo, {}).get(crash.code, f"code {crash.code}")


def dwarf_registers(crash: Crash) -> dict[int, int]:
    return {number: crash.regs[name] for number, name in enumerate(DWARF_REGISTERS)}


def culprit(frames: list[Frame]) -> Frame | None:
    """The innermost frame with a source line: where a reader looks first (not in abort's own frames)."""
    return next((frame for frame in frames if frame.file and frame.function), frames[0] if frames else None)


def event_data(crash: Crash, frames: list[Frame]) -> dict[str, Any]:
    """The crash event's `data`: camelCase, addresses as hex text."""
    data: dict[str, Any] = {
        "signal": signal_name(crash.signo),
        "signo": crash.signo,
        "code": crash.code,
        "cause": cause(crash),
        "threadName": crash.comm,
        "registers": {name: hex(value) for name, value in crash.regs.items()},
        "frames": [_frame(number, frame) for number, frame in enumerate(frames)],
    }
    if crash.code > 0:
        data["faultAddress"] = hex(crash.address)
    if crash.span:
        data["span"] = crash.span
    return data


def summary(crash: Crash, frames: list[Frame]) -> str:
    """One line: `SIGSEGV (address not mapped) at 0x0 in parse_header, src/header.c:41`."""
    at = f" at {crash.address:#x}" if crash.code > 0 else ""
    where = culprit(frames)
    if where is None:
        return f"{signal_name(crash.signo)} ({cause(crash)}){at}"
    place = f", {where.file}:{where.line}" if where.file else ""
    return f"{signal_name(crash.signo)} ({cause(crash)}){at} in {where.function or hex(where.address)}{place}"


def _frame(number: int, frame: Frame) -> dict[str, Any]:
    shown = {
        "frame": number,
        "address": hex(frame.address),
        "function": frame.function,
        "module": frame.module,
        "file": frame.file,
        "line": frame.line,
        "inlined": frame.inlined or None,
    }
    return {key: value for key, value in shown.items() if value is not None}
