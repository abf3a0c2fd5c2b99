"""Functions' bytes as a target has them, read from outside: what the agent reads where it runs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Final

from actors.spawner.items import ALREADY, FOREIGN, JUMP_BYTES, REASONS, Wanted
from actors.spawner.process import gone
from actors.spawner.sources import SOURCE_BYTES_MAX, AddressSpace, is_thunk_head

ENDBR64: Final = b"\xf3\x0f\x1e\xfa"
PATCHED: Final = b"\xe9", b"\xcc", b"\xff\x25"  # or a function that begins so: its file tells
THUNK_HEAD_BYTES: Final = 14

Refusal = tuple[Wanted, int, str]


def read_sources(pid: int, wanted: Sequence[Wanted], space: AddressSpace) -> tuple[list[Wanted], list[Refusal]]:
    """Each with its bytes, and those that cannot be hooked. Errors: PROCESS_EXITED."""
    good: list[Wanted] = []
    refused: list[Refusal] = []
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise gone(pid) from None
    try:
        for one in wanted:
            source, reason = _source(memory, one, space)
            if reason:
                refused.append((one, reason, REASONS[reason]))
            else:
                good.append(dataclasses.replace(one, source=source, size=min(one.size, len(source))))
    finally:
        os.close(memory)
    return good, refused


def _source(memory: int, one: Wanted, space: AddressSpace) -> tuple[bytes, int]:
    """The bytes, and 0 or the number of a reason."""
    code = _read(memory, min(one.size, SOURCE_BYTES_MAX), one.address)
    at = len(ENDBR64) if code.startswith(ENDBR64) else 0
    if not code.startswith(PATCHED, at):
        return code, FOREIGN if one.size and not code else 0
    if code[at] == 0xE9 and len(code) >= at + JUMP_BYTES:
        after = at + JUMP_BYTES
        target = one.address + after + int.from_bytes(code[at + 1 : after], "little", signed=True)
        if is_thunk_head(_read(memory, THUNK_HEAD_BYTES, target)):
            return code, ALREADY
    code = space.file_bytes(one.address, one.size)
    return code, 0 if code else FOREIGN


def _read(memory: int, size: int, address: int) -> bytes:
    """Empty where nothing is mapped (any more)."""
    try:
        return os.pread(memory, size, address)
    except (OSError, OverflowError):
        return b""
