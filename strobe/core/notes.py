"""The notes of a core dump: threads with their registers, the signal, the files that were mapped (<linux/elfcore.h>, fs/binfmt_elf.c of the kernel)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

NT_PRSTATUS: Final = 1
NT_PRPSINFO: Final = 3
NT_AUXV: Final = 6
NT_SIGINFO: Final = 0x53494749
NT_FILE: Final = 0x46494C45
FILES_MAX: Final = 65536
THREADS_MAX: Final = 4096
SIGNAL_MAX: Final = 64  # SIGRTMAX
AUXILIARY_BYTES_MAX: Final = 4096
# struct user_regs_struct, <sys/user.h>
REGISTERS: Final = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss",
    "fs_base", "gs_base", "ds", "es", "fs", "gs",
)  # fmt: skip
_REGISTERS_AT: Final = 112  # in struct elf_prstatus
_STATUS_BYTES: Final = _REGISTERS_AT + 8 * len(REGISTERS)


@dataclass(frozen=True, slots=True)
class Thread:
    """`signo`: the signal that it was stopped by, 0 for none."""

    tid: int
    signo: int
    registers: dict[str, int]


@dataclass(frozen=True, slots=True)
class MappedFile:
    """[start, end) held the file from `offset` on."""

    start: int
    end: int
    offset: int
    path: str


@dataclass
class Notes:
    """`threads`: the one that the signal came to first. `code`, `address`, `sender`: of its siginfo."""

    threads: list[Thread] = field(default_factory=list)
    code: int = 0
    address: int = 0
    sender: int = 0
    signo: int = 0  # of the siginfo
    name: str = ""
    pid: int = 0
    files: list[MappedFile] = field(default_factory=list)
    auxiliary: dict[int, int] = field(default_factory=dict)

    def take(self, owner: bytes, kind: int, body: bytes) -> None:
        """One note. Those of other kinds say nothing here. Raises struct.error for a broken one."""
        if owner not in (b"CORE", b"LINUX"):
            return
        if kind == NT_PRSTATUS and len(self.threads) < THREADS_MAX:
            self.threads.append(_thread(body))
        elif kind == NT_SIGINFO and not self.signo:
            signo, _, self.code = struct.unpack_from("<iii", body)
            self.signo = _signal(signo)
            self.address = struct.unpack_from("<Q", body, 16)[0]
            self.sender = struct.unpack_from("<i", body, 16)[0] if self.code <= 0 else 0
        elif kind == NT_PRPSINFO:
            self.pid = _process(struct.unpack_from("<i", body, 24)[0])
            self.name = body[40:56].split(b"\0")[0].decode(errors="replace")
        elif kind == NT_AUXV and not self.auxiliary:
            self.auxiliary = dict(struct.iter_unpack("<QQ", body[: min(len(body), AUXILIARY_BYTES_MAX) & -16]))
        elif kind == NT_FILE and not self.files:
            self.files = list(_files(body))


def _thread(body: bytes) -> Thread:
    if len(body) < _STATUS_BYTES:
        raise struct.error(f"a thread's status of {len(body)} bytes")
    values = struct.unpack_from(f"<{len(REGISTERS)}Q", body, _REGISTERS_AT)
    tid, signo = struct.unpack_from("<i", body, 32)[0], struct.unpack_from("<h", body, 12)[0]
    return Thread(tid=_process(tid), signo=_signal(signo), registers=dict(zip(REGISTERS, values, strict=True)))


def _process(number: int) -> int:
    if number < 0:
        raise struct.error(f"process {number}")
    return number


def _signal(number: int) -> int:
    if not 0 <= number <= SIGNAL_MAX:
        raise struct.error(f"signal {number}")
    return number


def _files(body: bytes) -> Iterator[MappedFile]:
    count, page = struct.unpack_from("<QQ", body)
    if count > FILES_MAX:
        raise struct.error(f"{count} mapped files")
    names = body[16 + 24 * count :].split(b"\0", count)
    for number in range(count):
        start, end, offset = struct.unpack_from("<QQQ", body, 16 + 24 * number)
        yield MappedFile(start, end, offset * page, names[number].decode(errors="replace") if number < len(names) else "")
