"""From the last moment of one program to the entry point of the next: a thread that waits at a gate is followed through its exec, and the code that
loads the recorder is put in the new program's way (agent/native/recorder_entry.c).

The thread is traced from its gate to the stop at exec, which takes a millisecond, by a thread of ours that is made for it: should that end at any
moment, the kernel lets the tracee run, and each state that it can be in then leads on to the program it was to become.
"""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from actors.session.ptrace.memory import Memory
from strobe import ptrace
from strobe.preflight.elf import Elf
from strobe.ptrace import Registers, run_as_tracer

FOLLOW_S: Final = 5.0  # from the gate to the new program: a large one on a cold disk takes a while to be opened
STOP_S: Final = 1.0
SPIN_S: Final = 0.001
PAUSE_S: Final = 0.0002
STOPS_MAX: Final = 1000
EXECVE: Final = (59, 322)  # and execveat: asm/unistd_64.h
MMAP: Final = 9
SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
ENOSYS: Final = -38 & (1 << 64) - 1
NO_SYSCALL: Final = (1 << 64) - 1
AT_PHDR, AT_PHNUM, AT_BASE, AT_ENTRY, AT_SECURE = 3, 5, 7, 9, 23  # <elf.h>
SYSCALL_RETURN: Final = b"\x0f\x05\xc3"
LOADER_BYTES: Final = 1 << 20
STACK_BYTES: Final = 16 << 20
SECTION: Final = "entry_code"
ENTRY_AT: Final = 0x28  # in the code: the word that holds the address of struct entry
ENTRY_WORDS: Final = 10
TEXTS: Final = ("/libc.so", "dlopen", "__libc_dlopen_mode", "{recorder}", "strobe_child", "{pool}")
MAPPED_BYTES: Final = 16384  # two paths of 4096 at most, and the code


@dataclass(frozen=True, slots=True)
class Image:
    """A program that has just been put into a process, stopped before its first instruction."""

    pid: int
    path: str


@dataclass(frozen=True, slots=True)
class Followed:
    """`path`: the new program's, None where there is none (the exec failed, or the process is gone). `why_not`: why the recorder does not come in."""

    path: str | None
    why_not: str | None = None


class Loose(Exception):
    """The thread is not held any more, or never was; the message says why."""


class NoProgram(Loose):
    """There is no new program: the exec failed, or the process is gone."""


def follow(pid: int, tid: int, let_go: Callable[[], bool], judge: Callable[[Image], str | None], recorder: Path, pool: Path) -> Followed:
    """`let_go` opens the gate while the thread is held. `judge` says why a new program gets no recorder, None: it gets one. Blocks."""
    return run_as_tracer(lambda: _Follower(pid, tid, recorder, pool).run(let_go, judge))


def enter(pid: int, judge: Callable[[Image], str | None], recorder: Path, pool: Path) -> Followed:
    """The same for a process that its keeper holds at its first instruction, by SIGSTOP; it is still held when this returns. Blocks."""
    return run_as_tracer(lambda: _Follower(pid, pid, recorder, pool).place(judge))


class _Follower:
    def __init__(self, pid: int, tid: int, recorder: Path, pool: Path) -> None:
        self._pid = pid
        self._tid = tid
        self._recorder = recorder
        self._pool = pool
        self._deadline = time.monotonic() + FOLLOW_S

    def run(self, let_go: Callable[[], bool], judge: Callable[[Image], str | None]) -> Followed:
        try:
            self._hold()
        except PermissionError:
            let_go()
            return Followed(None, "it may not be traced: another debugger has it, or it runs as another user")
        except (Loose, OSError) as reason:
            let_go()
            return Followed(None, str(reason))
        try:
            if not let_go():
                self._detach()
                return Followed(None)
            self._until_exec()
            image = Image(self._pid, os.readlink(f"/proc/{self._pid}/exe"))  # noqa: PTH115 (its text, with " (deleted)" if it is)
            why = judge(image)
            if why is None:
                why = self._place()
            self._detach()
        except (Loose, OSError) as reason:
            self._let_loose()
            return Followed(None, None if isinstance(reason, NoProgram | ProcessLookupError) else str(reason))
        return Followed(image.path, why)

    def place(self, judge: Callable[[Image], str | None]) -> Followed:
        """The group stop that it is in becomes one of ours, and is its own again afterwards (ptrace(2), "Group-stop")."""
        try:
            ptrace.ptrace(ptrace.SEIZE, self._tid, 0, ptrace.O_TRACESYSGOOD | ptrace.O_TRACEEXEC)
        except OSError as error:
            return Followed(None, f"it may not be traced ({error.strerror})")
        try:
            status = self._stop(STOP_S)
            if not ptrace.is_event_stop(status) or os.WSTOPSIG(status) != signal.SIGSTOP:
                raise Loose("it does not wait at its first instruction")
            image = Image(self._pid, os.readlink(f"/proc/{self._pid}/exe"))  # noqa: PTH115 (its text, with " (deleted)" if it is)
            why = judge(image)
            if why is None:
                why = self._place()
            self._detach()
        except (Loose, OSError) as reason:
            self._let_loose()
            return Followed(None, str(reason))
        return Followed(image.path, why)

    def _hold(self) -> None:
        ptrace.ptrace(ptrace.SEIZE, self._tid, 0, ptrace.O_TRACESYSGOOD | ptrace.O_TRACEEXEC)
        ptrace.ptrace(ptrace.INTERRUPT, self._tid)
        while not ptrace.is_event_stop(status := self._stop(STOP_S)):
            ptrace.ptrace(ptrace.CONT, self._tid, 0, os.WSTOPSIG(status))
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            self._detach()
            raise Loose("it was stopped by a signal")

    def _until_exec(self) -> None:
        """To the end of the execve(2) that has succeeded. Loose: it failed."""
        began = False
        for _ in range(STOPS_MAX):
            self._step()
            status = self._stop(FOLLOW_S)
            signo = os.WSTOPSIG(status)
            if status >> 16 == ptrace.EVENT_EXEC:
                self._tid = self._pid  # whichever thread called exec is the main thread now
                break
            if signo == SYSCALL_STOP:
                registers = ptrace.get_registers(self._tid)
                if registers.orig_rax in EXECVE and registers.rax == ENOSYS:
                    began = True
                elif began:
                    raise NoProgram("the exec failed")
            elif ptrace.is_event_stop(status) and signo != signal.SIGTRAP:
                raise Loose("it was stopped by a signal")
            elif not ptrace.is_event_stop(status):
                self._signal = signo
        else:
            raise Loose("it did not come to its exec")
        self._step()
        if os.WSTOPSIG(self._stop(STOP_S)) != SYSCALL_STOP:
            raise Loose("its exec did not end as expected")

    _signal = 0

    def _step(self) -> None:
        signo, self._signal = self._signal, 0
        ptrace.ptrace(ptrace.SYSCALL, self._tid, 0, signo)

    def _place(self) -> str | None:
        """The code in the new program's memory, and its entry point to that. Why not, where it cannot be."""
        start = ptrace.get_registers(self._tid)
        start.orig_rax = NO_SYSCALL  # nothing is to be restarted
        found = Path(f"/proc/{self._pid}/auxv").read_bytes()
        words = dict(struct.iter_unpack("<QQ", found))
        if words.get(AT_SECURE) or not all(words.get(key) for key in (AT_PHDR, AT_PHNUM, AT_BASE, AT_ENTRY)):
            return "it got privileges when it started" if words.get(AT_SECURE) else "it has no dynamic linker"
        with Memory(self._pid) as memory:
            gadget = self._gadget(memory, words[AT_BASE])
            place = _entry_place(memory, start.rsp, found)
            if gadget is None or place is None:
                return "its dynamic linker or its stack look unfamiliar"
            address = self._map(memory, start, gadget)
            try:
                if not address:
                    return "it has no memory for the recorder's way in"
                content, code = self._content(address, words, place)
                memory.write(address, content)
                memory.write(place, code.to_bytes(8, "little"))
            finally:
                ptrace.set_registers(self._tid, start)
        return None

    def _gadget(self, memory: Memory, loader: int) -> int | None:
        """A system call followed by a return, in the dynamic linker's code."""
        at = bytes(memory.read_some(loader, LOADER_BYTES)).find(SYSCALL_RETURN)
        return loader + at if at >= 0 else None

    def _map(self, memory: Memory, start: Registers, gadget: int) -> int:
        """Memory to be executed, made by a system call of the program's own; 0: there is none. Let go anywhere in between, it returns to where it starts."""
        memory.write(start.rsp - 8, start.rip.to_bytes(8, "little"))
        registers = Registers.from_buffer_copy(start)
        registers.rip, registers.rsp, registers.rax, registers.orig_rax = gadget, start.rsp - 8, MMAP, NO_SYSCALL
        registers.rdi, registers.rsi, registers.rdx = 0, MAPPED_BYTES, 5
        registers.r10, registers.r8, registers.r9 = 0x22, NO_SYSCALL, 0
        ptrace.set_registers(self._tid, registers)
        for _ in range(2):  # its entry and its end
            self._step()
            signo = os.WSTOPSIG(self._stop(STOP_S))
            if signo != SYSCALL_STOP:
                self._signal = signo
                raise Loose("a signal came before its first instruction")
        address = ptrace.get_registers(self._tid).rax
        return 0 if address > NO_SYSCALL - 4096 else address

    def _content(self, address: int, words: dict[int, int], place: int) -> tuple[bytes, int]:
        """What goes to `address`, and where its code begins."""
        texts, places = bytearray(), []
        for text in TEXTS:
            places.append(address + ENTRY_WORDS * 8 + len(texts))
            texts += os.fsencode(text.format(recorder=self._recorder, pool=self._pool)) + b"\0"
        entry = struct.pack(f"<{ENTRY_WORDS}Q", words[AT_ENTRY], place, words[AT_PHDR], words[AT_PHNUM], *places)
        head = entry + texts
        head += bytes(-len(head) % 64)
        code = bytearray(entry_code(self._recorder))
        code[ENTRY_AT : ENTRY_AT + 8] = address.to_bytes(8, "little")
        if len(head) + len(code) > MAPPED_BYTES:
            raise Loose("a path is too long")
        return bytes(head + code), address + len(head)

    def _detach(self) -> None:
        ptrace.ptrace(ptrace.DETACH, self._tid)

    def _let_loose(self) -> None:
        """From whatever state it may be in. What is running, or gone, is let go by the end of this thread."""
        try:
            ptrace.ptrace(ptrace.DETACH, self._tid, 0, self._signal)
        except OSError:
            return

    def _stop(self, bound_s: float) -> int:
        """The next stop's status."""
        began = time.monotonic()
        deadline = min(began + bound_s, self._deadline)
        while (now := time.monotonic()) < deadline:
            status = ptrace.wait(-1)
            if status is not None:
                if not os.WIFSTOPPED(status):
                    raise NoProgram("it ended")
                return status
            if now - began < SPIN_S:
                ptrace.yield_cpu()
            else:
                time.sleep(PAUSE_S)
        raise Loose("it took too long")


def _entry_place(memory: Memory, stack: int, auxiliary: bytes) -> int | None:
    """Where AT_ENTRY's value stands in the auxiliary vector on the stack, behind arguments and environment (psABI 3.4.1)."""
    at = next((n for n in range(0, len(auxiliary), 16) if auxiliary[n : n + 8] == AT_ENTRY.to_bytes(8, "little")), None)
    size = 1 << 16
    while at is not None and size <= STACK_BYTES:
        found = bytes(memory.read_some(stack, size)).find(auxiliary[: at + 16])
        if found >= 0:
            return stack + found + at + 8
        size <<= 2
    return None


def entry_code(recorder: Path) -> bytes:
    facts = recorder.stat()
    return _entry_code(recorder, facts.st_ino, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _entry_code(recorder: Path, inode: int, mtime_ns: int) -> bytes:
    del inode, mtime_ns
    with Elf.open(recorder) as elf:
        return elf.bytes_of(elf.sections[SECTION], MAPPED_BYTES)
