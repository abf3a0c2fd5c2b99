"""A function's bytes as its file has them. While Frida is in a target, its own patches lie over the first bytes of some functions of libc."""

from __future__ import annotations

import bisect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.spawner.items import JUMP_BYTES
from actors.spawner.process import Mapping
from strobe.protocol.spawner import Patch

SOURCE_BYTES_MAX: Final = 16 << 20
THUNK_HEAD: Final = (0, b"\xff\x35"), (6, b"\xff\x35"), (12, b"\xff\x25")  # agent/native/recorder.h


class AddressSpace:
    """A target's mappings, to be looked up by address."""

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self._mappings = mappings
        self._starts = [mapping.start for mapping in mappings]

    def at(self, address: int) -> Mapping | None:
        number = bisect.bisect_right(self._starts, address) - 1
        return self._mappings[number] if number >= 0 and address < self._mappings[number].end else None

    def file_bytes(self, address: int, size: int) -> bytes:
        """What the mapped file has there. Empty when no file is mapped, or it has been replaced since."""
        mapping = self.at(address)
        if mapping is None or not mapping.path.startswith("/") or mapping.path.endswith(" (deleted)"):
            return b""
        size = min(size, SOURCE_BYTES_MAX)
        try:
            with Path(mapping.path).open("rb") as file:
                file.seek(mapping.offset + address - mapping.start)
                data = file.read(size)
        except OSError:
            return b""
        return data if len(data) == size else b""


def hooked_already(memory: int, patch: Patch) -> bool:
    """Does a jump to a thunk of ours stand where `patch` would go? `memory` is an open /proc/PID/mem."""
    now = os.pread(memory, JUMP_BYTES, patch.address)
    if now[:1] != b"\xe9":
        return False
    return is_thunk_head(os.pread(memory, 14, patch.address + JUMP_BYTES + int.from_bytes(now[1:], "little", signed=True)))


def is_thunk_head(head: bytes) -> bool:
    return all(head[at : at + len(code)] == code for at, code in THUNK_HEAD)


def is_as_expected(memory: int, patch: Patch) -> bool:
    return os.pread(memory, len(patch.original), patch.address) == patch.original
