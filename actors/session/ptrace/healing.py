"""Jumps that a session left in a process without taking them away (it was killed with its node): found by comparing code with its file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from strobe.protocol.spawner import Patch

PAGE: Final = 4096
JUMP_BYTES: Final = 5
_OF_FILE: Final = 1 << 61  # /proc/PID/pagemap: a page of the file, not a private copy
_THERE: Final = 3 << 62  # present, or swapped out
_HEAD_BYTES: Final = 18  # of a thunk: push [rip+hook]; push [rip+body]; jmp [rip+enter] (agent/native/recorder.h)


@dataclass(frozen=True, slots=True)
class _Code:
    """An executable mapping of a file."""

    start: int
    end: int
    offset: int
    path: str


def leftover_patches(pid: int, own: frozenset[int]) -> list[Patch]:
    """Patches of functions that may be restored. `own`: hook words of the recorder's own hooks, which stay. Raises OSError."""
    found: list[Patch] = []
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    pages = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for code in _mapped_code(pid):
            for at in _changed_pages(pages, code):
                found += _jumps(memory, code, at, own)
    finally:
        os.close(pages)
        os.close(memory)
    return found


def _mapped_code(pid: int) -> list[_Code]:
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and parts[1][2:] == "xp" and parts[5].startswith("/") and not parts[5].endswith(" (deleted)"):
            start, end = (int(bound, 16) for bound in parts[0].split("-"))
            found.append(_Code(start, end, int(parts[2], 16), parts[5]))
    return found


def _changed_pages(pages: int, code: _Code) -> list[int]:
    """Addresses of pages that are copies of the file's."""
    rows: NDArray[np.uint64] = np.frombuffer(os.pread(pages, (code.end - code.start) // PAGE * 8, code.start // PAGE * 8), np.uint64)
    copied = np.flatnonzero((rows & np.uint64(_THERE) != 0) & (rows & np.uint64(_OF_FILE) == 0))
    return [code.start + int(number) * PAGE for number in copied]


def _jumps(memory: int, code: _Code, page: int, own: frozenset[int]) -> list[Patch]:
    size = min(PAGE + JUMP_BYTES - 1, code.end - page)
    now = os.pread(memory, size, page)
    with Path(code.path).open("rb") as file:
        before = os.pread(file.fileno(), size, code.offset + page - code.start)
    if len(before) != len(now):
        return []
    starts = [at for at in range(max(0, min(PAGE, len(now) - JUMP_BYTES + 1))) if now[at] == 0xE9 and now[at : at + JUMP_BYTES] != before[at : at + JUMP_BYTES]]
    found = []
    for at in starts:
        jump = now[at : at + JUMP_BYTES]
        thunk = page + at + JUMP_BYTES + int.from_bytes(jump[1:], "little", signed=True)
        hook = _hook_of(memory, thunk)
        if hook is not None and hook not in own:
            found.append(Patch(hook=0, address=page + at, data=jump, original=before[at : at + JUMP_BYTES], thunk=thunk))
    return found


def _hook_of(memory: int, thunk: int) -> int | None:
    """The hook word of a thunk; None where there is none."""
    try:
        head = os.pread(memory, _HEAD_BYTES, thunk)
        if len(head) < _HEAD_BYTES or (head[:2], head[6:8], head[12:14]) != (b"\xff\x35", b"\xff\x35", b"\xff\x25"):
            return None
        return int.from_bytes(os.pread(memory, 8, thunk + 6 + int.from_bytes(head[2:6], "little", signed=True)), "little")
    except (OSError, OverflowError):
        return None
