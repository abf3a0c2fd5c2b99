"""Batches as a session sends them, made by hand for tests and by the million for benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strobe.lanes.dtype import ENTRY_DTYPE
from strobe.lanes.layout import SLOT_BYTES, SPAN_THREAD_SHIFT, Kind
from strobe.model.probe import Hook, Place, Plan, Value
from strobe.model.session import SessionRecord, SessionState

STARTED_NS = 5_000_000_000


def record(session_id: str = "demo-2026-01-02-03h04", **changes: Any) -> SessionRecord:
    facts: dict[str, Any] = {
        "session_id": session_id, "client_id": "client", "binary_path": "/bin/demo", "command": ["/bin/demo"], "cwd": "/tmp", "project_root": "/tmp",
        "pid": 77, "state": SessionState.RUNNING, "started_at": 1_700_000_000_000_000_000, "started_monotonic_ns": STARTED_NS,
    }  # fmt: skip
    return SessionRecord(**{**facts, **changes})


def value(
    name: str, scalar: Any = "int", size: int = 4, *, offset: int = 0, type_name: str = "", word: bool = False, enumerators: dict[str, int] | None = None
) -> Value:
    source: Any = "word" if word else "payload"
    return Value(name=name, type_name=type_name or scalar, scalar=scalar, size=size, source=source, offset=offset, enumerators=enumerators)


def hook(
    number: int, function: str, arguments: Iterable[Value] = (), result: Value | None = None, *,
    file: str | None = "/src/demo.c", line: int | None = 10, typed: bool = True,
) -> Hook:  # fmt: skip
    names = {"function": function, "function_raw": f"_Z{function}", "full_name": f"{function}()"}
    place = Place(pattern="*", **names, module="/bin/demo", offset=0, size=16, file=file, line=line)
    return Hook(id=number, place=place, address=0x1000 * number, plan=Plan(ops=b"", typed=typed, arguments=list(arguments), result=result))


@dataclass
class Lane:
    """Entries of one thread, one after the other, as a chunk holds them."""

    thread: int = 1
    pid: int = 77
    tid: int = 77
    comm: str = "demo"
    entries: list[tuple[Any, ...]] = field(default_factory=list)

    def enter(self, ts: int, span: int, hook_id: int, payload: bytes = b"", *, parent: int = 0, flags: int = 0) -> Lane:
        return self.add(ts, span, hook_id, Kind.ENTER, flags, self.full(parent) if parent else 0, payload)

    def exit(self, ts: int, span: int, hook_id: int, word: int = 0, *, flags: int = 0, kind: Kind = Kind.EXIT, payload: bytes = b"") -> Lane:
        return self.add(ts, span, hook_id, kind, flags, word & (1 << 64) - 1, payload)

    def add(self, ts: int, span: int, hook_id: int, kind: int, flags: int, word: int, payload: bytes) -> Lane:
        self.entries.append((ts + STARTED_NS, self.full(span), hook_id, kind, flags, word, payload))
        return self

    def full(self, span: int) -> int:
        return self.thread << SPAN_THREAD_SHIFT | span

    def pack(self) -> tuple[bytes, bytes]:
        slot_map, slots = bytearray(), bytearray()
        for ts, span, hook_id, kind, flags, word, payload in self.entries:
            count = 1 + -(-len(payload) // SLOT_BYTES)
            head = np.zeros(1, dtype=ENTRY_DTYPE)
            head[0] = (ts, span, hook_id, kind, flags, count, 0, word)
            slots += head.tobytes() + payload.ljust((count - 1) * SLOT_BYTES, b"\0")
            slot_map += bytes([count]) + bytes(count - 1)
        return bytes(slot_map), bytes(slots)


def records(*lanes: Lane, clock: list[int] | None = None) -> tuple[dict[str, Any], list[bytes]]:
    packed = [lane.pack() for lane in lanes]
    slices = [
        {"thread": lane.thread, "pid": lane.pid, "tid": lane.tid, "comm": lane.comm, "slots": len(slot_map)}
        for lane, (slot_map, _) in zip(lanes, packed, strict=True)
    ]
    frames = [b"".join(slot_map for slot_map, _ in packed), b"".join(slots for _, slots in packed)]
    return {"kind": "records", "slices": slices, "clock": clock}, frames


def two_functions() -> list[Hook]:
    arguments = [value("count", "int", 4), value("flags", "int", 4, offset=4)]
    result = value("", "int", 4, word=True)
    return [hook(1, "outer", arguments, result, line=10), hook(2, "inner", arguments, result, line=20)]


class Traffic:
    """Endless calls of `two_functions` on some threads, outer calling inner, as batches of at most a chunk a slice; about 240 ns between records."""

    def __init__(self, threads: int = 1, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._ts = np.full(threads, STARTED_NS, dtype=np.int64)
        self._span = np.ones(threads, dtype=np.int64)

    def batch(self, calls: int) -> tuple[dict[str, Any], list[bytes]]:
        """`calls` calls (a multiple of two) on every thread."""
        parts = [self._slice(thread, calls) for thread in range(self._ts.size)]
        slices = [{"thread": thread + 1, "pid": 77, "tid": 77 + thread, "comm": "demo", "slots": slot_map.size} for thread, (slot_map, _) in enumerate(parts)]
        return {"kind": "records", "slices": slices, "clock": None}, [b"".join(m.tobytes() for m, _ in parts), b"".join(s.tobytes() for _, s in parts)]

    def _slice(self, thread: int, calls: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Each pair of calls is outer enter (2 slots), inner enter (2), inner exit (1), outer exit (1)."""
        pairs = calls // 2
        slots = np.zeros((pairs, 6), dtype=ENTRY_DTYPE)
        slot_map = np.tile(np.array([2, 0, 2, 0, 1, 1], dtype=np.uint8), pairs)
        gaps = self._random.gamma(4, 52, pairs * 4).astype(np.int64) + 30
        ts = (self._ts[thread] + np.cumsum(gaps)).reshape(pairs, 4)
        self._ts[thread] = ts[-1, -1]
        outer = (np.int64(thread + 1) << SPAN_THREAD_SHIFT) + self._span[thread] + 2 * np.arange(pairs)
        self._span[thread] += 2 * pairs
        for place, (slot, span, number, kind, count) in enumerate([(0, outer, 1, 1, 2), (2, outer + 1, 2, 1, 2), (4, outer + 1, 2, 2, 1), (5, outer, 1, 2, 1)]):
            slots["ts"][:, slot], slots["span"][:, slot] = ts[:, place], span
            slots["hook"][:, slot], slots["kind"][:, slot], slots["slots"][:, slot] = number, kind, count
        slots["word"][:, 2] = outer
        for slot in (4, 5):
            slots["word"][:, slot] = self._random.integers(0, 1_000_000, pairs)
        payload = slots.view(np.uint8).reshape(pairs, 6, SLOT_BYTES)
        for slot in (1, 3):
            arguments = np.empty((pairs, 2), dtype="<i4")
            arguments[:, 0], arguments[:, 1] = self._random.integers(0, 1_000_000, pairs), self._random.integers(0, 256, pairs)
            payload[:, slot, :8] = arguments.view(np.uint8)
        return slot_map, payload.reshape(-1)
