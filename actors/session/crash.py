"""A crash page (strobe.lanes.layout.CRASH) as an event: what happened, where, by whom. Pure but for the frames, which the indexer gives."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from strobe.model.probe import Frame, Variable

# Order of gregset_t, <sys/ucontext.h>
GREGS = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip",
    "eflags", "csgsfs", "err", "trapno", "oldmask", "cr2",
)  # fmt: skip
# DWARF register numbers, System V AMD64 psABI figure 3.36
DWARF_REGISTERS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")

# si_code: name and words, sigaction(2)
_CODES: dict[int, dict[int, tuple[str, str]]] = {
    signal.SIGSEGV: {1: ("SEGV_MAPERR", "address not mapped"), 2: ("SEGV_ACCERR", "access not permitted"), 128: ("SI_KERNEL", "non-canonical address")},
    signal.SIGBUS: {
        1: ("BUS_ADRALN", "misaligned address"), 2: ("BUS_ADRERR", "nonexistent physical address (mapped file too short?)"),
        3: ("BUS_OBJERR", "hardware error"), 4: ("BUS_MCEERR_AR", "memory error"), 5: ("BUS_MCEERR_AO", "memory error"),
        128: ("SI_KERNEL", "misaligned or bad stack"),
    },
    signal.SIGFPE: {
        1: ("FPE_INTDIV", "integer divide by zero"), 2: ("FPE_INTOVF", "integer overflow"), 3: ("FPE_FLTDIV", "floating-point divide by zero"),
        4: ("FPE_FLTOVF", "floating-point overflow"), 5: ("FPE_FLTUND", "floating-point underflow"), 6: ("FPE_FLTRES", "inexact floating-point result"),
        7: ("FPE_FLTINV", "invalid floating-point operation"), 8: ("FPE_FLTSUB", "subscript out of range"),
    },
    signal.SIGILL: {
        1: ("ILL_ILLOPC", "illegal opcode"), 2: ("ILL_ILLOPN", "illegal operand"), 3: ("ILL_ILLADR", "illegal addressing mode"),
        4: ("ILL_ILLTRP", "illegal trap"), 5: ("ILL_PRVOPC", "privileged opcode"), 6: ("ILL_PRVREG", "privileged register"),
    },
    signal.SIGTRAP: {1: ("TRAP_BRKPT", "breakpoint"), 2: ("TRAP_TRACE", "trace trap"), 128: ("SI_KERNEL", "int3")},
    signal.SIGSYS: {1: ("SYS_SECCOMP", "system call forbidden by seccomp")},
}  # fmt: skip
_SENT: dict[int, str] = {0: "SI_USER", -1: "SI_QUEUE", -2: "SI_TIMER", -3: "SI_MESGQ", -4: "SI_ASYNCIO", -5: "SI_SIGIO", -6: "SI_TKILL"}
_THROWERS = frozenset({"__cxa_throw", "__cxa_rethrow", "std::rethrow_exception", "_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow"})
STACK_BYTES = 512  # of the stack, from the stack pointer on, that the event holds
_OVERFLOW_BYTES = 1 << 20  # as far below its stack as one call's frame may reach


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
    thrown: tuple[str, str | None] | None = None  # an exception that the stack points to: its type's mangled name, its message


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def code_name(crash: Crash) -> str:
    """As the C headers call it: `SEGV_MAPERR`."""
    found = _CODES.get(crash.signo, {}).get(crash.code)
    return found[0] if found else _SENT.get(crash.code, f"code {crash.code}")


def cause(crash: Crash) -> str:
    """Why the signal came, in words: `address not mapped`, `raised by the program itself`, `sent by process 4711`."""
    if crash.code <= 0:
        return "raised by the program itself" if crash.sender_pid in (0, crash.pid) else f"sent by process {crash.sender_pid}"
    if is_stack_overflow(crash):
        return "stack overflow"
    return _CODES.get(crash.signo, {}).get(crash.code, ("", f"code {crash.code}"))[1]


def is_stack_overflow(crash: Crash) -> bool:
    """The fault is just below the memory that the thread's stack lies in."""
    if crash.signo not in (signal.SIGSEGV, signal.SIGBUS) or not 1 <= crash.code <= 2:
        return False
    pointer = crash.regs["rsp"]
    stack = next(((low, high) for low, high in _writable(crash.maps) if high > pointer), None)
    if stack is None or not stack[0] - _OVERFLOW_BYTES <= crash.address < stack[0]:
        return False
    return stack[0] - _OVERFLOW_BYTES <= pointer < stack[0] + 4096


def _writable(maps: str) -> list[tuple[int, int]]:
    found = []
    for line in maps.splitlines():
        bounds, _, rest = line.partition(" ")
        low, _, high = bounds.partition("-")
        if rest.startswith("rw") and high:
            found.append((int(low, 16), int(high, 16)))
    return found


def fault_address(crash: Crash) -> int | None:
    """What was reached for, where the kernel tells: not of a signal that was sent, nor of an address that no page table has."""
    return crash.address if 0 < crash.code < 128 else None


def dwarf_registers(crash: Crash) -> dict[int, int]:
    return {number: crash.regs[name] for number, name in enumerate(DWARF_REGISTERS)}


def event_data(crash: Crash, frames: list[Frame], culprit: int | None) -> dict[str, Any]:
    """The crash event's `data`: camelCase, addresses as hex text."""
    data: dict[str, Any] = {
        "signal": signal_name(crash.signo),
        "signo": crash.signo,
        "code": code_name(crash),
        "cause": cause(crash),
        "threadName": crash.comm,
    }
    address = fault_address(crash)
    if address is not None:
        data["faultAddress"] = hex(address)
    if culprit is not None:
        data |= where(frames[culprit])
        data["culprit"] = culprit
    data["frames"] = [frame_data(number, frame) for number, frame in enumerate(frames)]
    data["registers"] = {name: hex(value) for name, value in crash.regs.items()}
    data["stack"] = stack_data(crash)
    if crash.span:
        data["span"] = crash.span
    return data


def stack_data(crash: Crash) -> dict[str, Any]:
    """The stack from its pointer on: words, 8 bytes each."""
    start = max(crash.regs["rsp"], crash.stack_base)
    found = crash.stack[start - crash.stack_base :][:STACK_BYTES] if start - crash.stack_base < len(crash.stack) else b""
    words = [hex(int.from_bytes(found[at : at + 8], "little")) for at in range(0, len(found) - 7, 8)]
    return {"address": hex(start), "words": words}


def where(frame: Frame) -> dict[str, Any]:
    shown = {"function": frame.function or hex(frame.address), "file": frame.file, "line": frame.line}
    return {key: value for key, value in shown.items() if value is not None}


def summary(crash: Crash, frames: list[Frame], culprit: int | None) -> str:
    """One line: `SIGSEGV (address not mapped) at 0x0 in parse_header, src/header.c:41`."""
    address = fault_address(crash)
    at = f" at {address:#x}" if address is not None else ""
    text = f"{signal_name(crash.signo)} ({cause(crash)}){at}"
    return text if culprit is None else text + in_words(where(frames[culprit]))


def in_words(place: dict[str, Any]) -> str:
    """` in parse_header, src/header.c:41`, as far as it is known."""
    function = f" in {place['function']}" if place.get("function") else ""
    file = f"{',' if function else ' at'} {place['file']}:{place['line']}" if place.get("file") and place.get("line") else ""
    return function + file


def is_thrown(frames: list[Frame]) -> bool:
    """Whether the stack shows an exception on its way, which nobody caught."""
    return any(frame.function in _THROWERS for frame in frames)


def frame_data(number: int, frame: Frame) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "frame": number,
        "address": hex(frame.address),
        "function": frame.function,
        "module": frame.module,
        "file": frame.file,
        "line": frame.line,
        "inlined": frame.inlined or None,
        "arguments": _variables(frame.arguments),
        "locals": _variables(frame.locals),
    }
    return {key: value for key, value in shown.items() if value is not None}


def _variables(found: list[Variable] | None) -> list[dict[str, Any]] | None:
    return [{"name": one.name, "type": one.type_name, "value": one.value} for one in found] if found else None
