"""What preflight finds out about a program before anyone touches it, and what follows from it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from strobe.errors import Code, StrobeError

Runtime = Literal["native", "python", "node", "deno", "bun", "go", "script", "unknown"]
Language = Literal["c", "c++", "rust", "go", "unknown"]


class FileKind(enum.StrEnum):
    MISSING = "missing"
    DIRECTORY = "directory"
    NOT_EXECUTABLE = "not executable"
    NOT_A_FILE = "not a file"  # a device, socket or pipe
    SCRIPT = "script"
    ELF = "elf"  # a 64-bit program for this machine
    ELF_32 = "32-bit elf"
    OTHER_MACHINE = "other machine"
    NOT_A_PROGRAM = "not a program"  # an ELF file that is no program: object file, library, core dump
    UNKNOWN = "unknown format"


@dataclass(frozen=True)
class Preflight:
    """`injectable`: the recorder may be loaded into it; `reason` says why not, in words for the caller, and is None when it may."""

    path: str
    kind: FileKind
    injectable: bool
    reason: str | None
    runtime: Runtime = "unknown"
    language: Language = "unknown"
    machine: str | None = None
    linking: Literal["dynamic", "static", "static-pie"] | None = None
    loader: str | None = None  # PT_INTERP
    libc: Literal["glibc", "musl", "none", "unknown"] = "unknown"
    pie: bool = False
    go_version: str | None = None
    sanitizers: tuple[str, ...] = ()  # of thread, address, undefined, memory, leak
    stripped: bool = False
    has_debug_info: bool = False
    debug_link: str | None = None  # name of a separate debug file
    build_id: str | None = None
    cet: bool = False
    privileged: bool = False  # set-uid, set-gid or file capabilities that exec would grant
    interpreters: tuple[str, ...] = ()  # of a script, to the program at the end

    @property
    def detail(self) -> str | None:
        """What a caller may want to know about its runtime beside the name of it."""
        if self.kind is FileKind.SCRIPT:
            return f"run by {self.interpreters[-1]}" if self.interpreters else None
        return self.go_version or (self.language if self.language != "unknown" else None)

    @property
    def runnable(self) -> bool:
        """The kernel may be asked to start it. (It can still refuse: no 32-bit support, say.)"""
        return self.kind in (FileKind.ELF, FileKind.ELF_32, FileKind.SCRIPT)

    def check_runnable(self) -> None:
        """StrobeError VALIDATION_ERROR for what cannot be started at all."""
        if self.runnable:
            return
        step = {
            FileKind.MISSING: "Check the path; build the program first.",
            FileKind.DIRECTORY: "Name the program in it.",
            FileKind.NOT_EXECUTABLE: "Make it executable (chmod +x), or launch its interpreter with the file as argument.",
            FileKind.OTHER_MACHINE: "Build it for this machine.",
        }.get(self.kind, "Name a program or a script with a #! line.")
        raise StrobeError(Code.VALIDATION_ERROR, f"{self.path} cannot be launched: {self.reason}.", step, value=self.path)
