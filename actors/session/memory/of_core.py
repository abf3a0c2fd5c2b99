"""The memory of a core dump, and its threads' own, as they are shown of a process that runs."""

from __future__ import annotations

from collections.abc import Mapping

from actors.session.memory.live import LiveMemory
from actors.session.memory.thread_locals import ThreadLocals
from strobe.core import Core
from strobe.expression import Unavailable
from strobe.model.probe import Module
from strobe.values.memory import Missing


class CoreMemory(LiveMemory):
    def __init__(self, core: Core) -> None:
        # Nothing of a process: another may have its pid.
        self.pid = core.threads[0].tid  # whose thread-locals are meant where none is named
        self._core = core

    def forget(self) -> None:
        """It does not change."""

    def read(self, address: int, size: int) -> bytes | Missing:
        found = self._core.read(address, size) if size >= 0 else b""
        return found if len(found) == size else Missing("unreadable", address + len(found))

    def prefix(self, address: int, size: int) -> bytes:
        return self._core.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Raises OSError: nobody may."""
        raise PermissionError(f"{len(data)} bytes at {address:#x}: a core dump is not written to")


class CoreThreadLocals(ThreadLocals):
    def __init__(self, core: Core) -> None:
        super().__init__(core.pid)
        self._bases = {thread.tid: thread.registers["fs_base"] for thread in core.threads}

    def renewed(self) -> None:
        """They do not change."""

    def pointer(self, tid: int) -> int | Unavailable:
        return self._bases.get(tid, Unavailable(f"there is no thread {tid} in the core dump"))

    def address(self, memory: LiveMemory, module: Module, is_program: bool, offset: int, tid: int, layout: Mapping[str, int]) -> int | Unavailable:
        if not is_program:
            return Unavailable(f"thread-locals of libraries ({module.path}) are not read from core dumps")
        return super().address(memory, module, is_program, offset, tid, layout)
