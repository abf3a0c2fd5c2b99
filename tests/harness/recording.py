"""Reading a pool that a test's own program filled: an independent, plain reader of strobe/lanes/layout.py, for tests of the recorder.

It assumes nothing that `strobe.lanes.reader` does, so the two can be held against each other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from strobe.lanes.layout import (
    CHUNK_BYTES,
    CHUNK_MAP_OFFSET,
    CHUNK_SLOTS,
    CHUNK_SLOTS_OFFSET,
    CHUNKS_OFFSET,
    HOOK_BYTES,
    HOOKS_OFFSET,
    SLOT_BYTES,
    ChunkState,
    EntryFlag,
    Kind,
)

ENTRY = np.dtype([("ts", "<u8"), ("span", "<u8"), ("hook", "<u4"), ("kind", "u1"), ("flags", "u1"), ("slots", "u1"), ("reserved", "u1"), ("word", "<u8")])


@dataclass(frozen=True)
class ChunkCopy:
    """What one chunk held when it was read. `end`: the slot where the published prefix ends."""

    pid: int
    tid: int
    thread: int
    order: int
    state: int
    written: int
    comm: str
    end: int
    heads: list[int]
    slots: bytes

    @property
    def entries(self) -> np.ndarray:
        table = np.frombuffer(self.slots, dtype=ENTRY)
        return table[np.array(self.heads, dtype=np.int64)] if self.heads else table[:0]

    def payload(self, head: int) -> bytes:
        return self.slots[(head + 1) * SLOT_BYTES : (head + self.slots[head * SLOT_BYTES + 22]) * SLOT_BYTES]


def copy_chunk(memory: memoryview, index: int) -> ChunkCopy:
    base = CHUNKS_OFFSET + index * CHUNK_BYTES
    state, _serial, pid, tid, thread, order, written, _read = struct.unpack_from("<8I", memory, base)
    slot_map = bytes(memory[base + CHUNK_MAP_OFFSET : base + CHUNK_MAP_OFFSET + CHUNK_SLOTS])
    comm = bytes(memory[base + 32 : base + 48]).split(b"\0")[0].decode()
    heads: list[int] = []
    end = 0
    while end < CHUNK_SLOTS and slot_map[end]:
        heads.append(end)
        end += slot_map[end]
    slots = bytes(memory[base + CHUNK_SLOTS_OFFSET : base + CHUNK_SLOTS_OFFSET + CHUNK_SLOTS * SLOT_BYTES])
    return ChunkCopy(pid, tid, thread, order, state, written, comm, end, heads, slots)


@dataclass
class Recording:
    """All that a pool held, by thread in the order written. Built from chunks; PAD entries are left out of everything but the checks."""

    chunks: list[ChunkCopy]
    dropped_by_kind: list[int]
    hooks: dict[int, tuple[int, int, int]]  # hook → left out, dropped, unmatched
    whole: bool = True  # False: frames of the recorder may have been cut short, and left gaps
    threads: dict[int, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.chunks.sort(key=lambda chunk: (chunk.thread, chunk.order))
        for before, after in pairwise(self.chunks):
            assert before.thread != after.thread or after.order == before.order + 1, "the chain of a thread's chunks has a gap"
        by_thread: dict[int, list[np.ndarray]] = {}
        for chunk in self.chunks:
            if chunk.state == ChunkState.CLOSED and self.whole:
                assert chunk.end == CHUNK_SLOTS, f"a closed chunk is published to {chunk.end} only"
            assert not self.whole or chunk.end == min(chunk.written, CHUNK_SLOTS), f"published to {chunk.end}, written {chunk.written}"
            entries = chunk.entries
            by_thread.setdefault(chunk.thread, []).append(entries[entries["kind"] != Kind.PAD])
        self.threads = {thread: np.concatenate(parts) for thread, parts in by_thread.items()}

    @property
    def all(self) -> np.ndarray:
        return np.concatenate(list(self.threads.values())) if self.threads else np.empty(0, ENTRY)

    def count(self, kind: Kind, hook: int | None = None) -> int:
        entries = self.all
        return int(np.count_nonzero((entries["kind"] == kind) & ((entries["hook"] == hook) if hook is not None else True)))

    def entries_with_payload(self) -> Iterator[tuple[np.void, bytes]]:
        for chunk in self.chunks:
            for entry, head in zip(chunk.entries, chunk.heads, strict=True):
                if entry["kind"] != Kind.PAD:
                    yield entry, chunk.payload(head)


def read_recording(path: Path, chunks: list[ChunkCopy] | None = None, *, whole: bool = True) -> Recording:
    """The pool at `path` as it is, and `chunks` that were taken from it before. Of a chunk with a gap only what is before the gap."""
    memory = memoryview(path.read_bytes())
    found = list(chunks or [])
    for index in range((len(memory) - CHUNKS_OFFSET) // CHUNK_BYTES):
        if struct.unpack_from("<I", memory, CHUNKS_OFFSET + index * CHUNK_BYTES)[0] != ChunkState.FREE:
            found.append(copy_chunk(memory, index))
    hooks = {}
    for hook in range(64):
        left_out, dropped, _flags, _period, unmatched = struct.unpack_from("<QQIIQ", memory, HOOKS_OFFSET + hook * HOOK_BYTES)
        hooks[hook] = (left_out, dropped, unmatched)
    return Recording(found, list(struct.unpack_from("<16Q", memory, 88)), hooks, whole)


def check_calls(entries: np.ndarray, anywhere: int = 0) -> None:
    """One thread's entries are calls properly nested: each exit ends the innermost open call, each enter names that as its parent.

    Calls of the hook `anywhere` are made by signal handlers: they may strike before the call just entered counts as open, or on another stack.
    """
    stack: list[tuple[int, int]] = []
    columns = (entries[name].tolist() for name in ("span", "hook", "kind", "flags", "word"))
    for span, hook, kind, flags, word in zip(*columns, strict=True):
        if kind == Kind.ENTER:
            innermost = stack[-1][0] if stack else 0
            assert word == innermost or (hook == anywhere and word in (0, *(open_span for open_span, _ in stack[-4:]))), (
                f"span {span:x} of hook {hook} has parent {word:x}, open: {stack[-3:]}"
            )
            if not flags & EntryFlag.NO_EXIT:
                stack.append((span, hook))
        elif kind in (Kind.EXIT, Kind.UNWIND):
            assert stack, f"span {span:x} of hook {hook} ends, but no call is open"
            assert stack.pop() == (span, hook)
    assert not stack, f"still open: {stack}"
