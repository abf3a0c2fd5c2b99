"""The walk programs' meaning (strobe/lanes/layout.py, WalkOp), in Python: what the recorder should copy, and so what an image holds."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from strobe.lanes.layout import REGION_BYTES, WALK_NOTHING, WALK_STEP_BYTES, RegionState, WalkFlag, WalkOp
from strobe.values.memory import Region

Read = Callable[[int, int], bytes]
"""(address, size) → as many of the bytes from there on as can be read."""

_STEP: Final = struct.Struct("<BBHIIIQQ")
_OBJECTS_MAX: Final = 20_000  # programs run in one walk
_CHAIN_MAX: Final = 64  # programs run inside each other
_HASHED_GROUP: Final = 16


@dataclass(frozen=True, slots=True)
class Object:
    """What a program runs on: its bytes were copied."""

    data: bytes
    address: int

    def word(self, offset: int, size: int = 8) -> int | None:
        raw = self.data[offset : offset + size]
        return int.from_bytes(raw, "little") if len(raw) == size else None

    def part(self, offset: int, size: int | None = None) -> Object:
        return Object(self.data[offset : len(self.data) if size is None else offset + size], self.address + offset)


@dataclass(frozen=True, slots=True)
class WalkStep:
    op: WalkOp
    flags: WalkFlag
    limit: int
    offset: int
    size: int
    target: int
    a: int
    b: int


def steps_of(section: bytes) -> list[WalkStep]:
    assert len(section) % WALK_STEP_BYTES == 0
    found = []
    for op, flags, *rest in _STEP.iter_unpack(section):
        found.append(WalkStep(WalkOp(op), WalkFlag(flags), *rest))
    return found


@dataclass
class Walk:
    """One image being made. `budget`: bytes that its regions may take, heads and padding counted. `thread_pointer`: of AT's thread-local variables."""

    section: bytes
    read: Read
    budget: int
    thread_pointer: int = 0
    regions: list[Region] = field(default_factory=list)
    used: int = 0
    steps: list[WalkStep] = field(default_factory=list)
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _depth: int = 0

    def __post_init__(self) -> None:
        self.steps = steps_of(self.section)

    def run(self, program: int, on: Object) -> None:
        """Each program once on each object."""
        if program == WALK_NOTHING or (program, on.address) in self._seen or len(self._seen) >= _OBJECTS_MAX or self._depth >= _CHAIN_MAX:
            return
        self._seen.add((program, on.address))
        self._depth += 1
        while (step := self.steps[program]).op != WalkOp.END:
            getattr(self, f"_{step.op.name.lower()}")(step, on)
            program += 1
        self._depth -= 1

    def image(self) -> bytes:
        parts = []
        for region in self.regions:
            parts.append(struct.pack("<QII", region.address, len(region.data), region.state) + region.data + bytes(-len(region.data) % 8))
        return b"".join(parts)

    def _copy(self, address: int, size: int) -> Object | None:
        """As many of the bytes as can be read and as the budget allows; what is in a region already takes no room again."""
        for region in self.regions:
            if region.address <= address and address + size <= region.address + len(region.data):
                return Object(region.data[address - region.address : address - region.address + size], address)
        room = (self.budget - self.used - REGION_BYTES) // 8 * 8
        if size <= 0 or room < 0:
            return None
        data = self.read(address, min(size, room))
        state = RegionState.UNREADABLE if len(data) < min(size, room) else RegionState.CUT if len(data) < size else RegionState.OK
        self._add(Region(address, data, state))
        return Object(data, address)

    def _add(self, region: Region) -> None:
        self.regions.append(region)
        self.used += REGION_BYTES + (len(region.data) + 7) // 8 * 8

    def _each_in(self, step: WalkStep, block: Object | None, count: int) -> None:
        for index in range(count):
            if block is None or len(block.data) < (index + 1) * step.size:
                return
            self.run(step.target, block.part(index * step.size, step.size))

    def _point(self, step: WalkStep, on: Object) -> None:
        address = on.word(step.offset)
        copied = self._copy(address, step.size) if address else None
        if copied is not None and (len(copied.data) == step.size or WalkFlag.SOFT in step.flags):
            self.run(step.target, copied)

    def _at(self, step: WalkStep, on: Object) -> None:
        base = self.thread_pointer if WalkFlag.THREAD_LOCAL in step.flags else 0
        copied = self._copy((base + step.a) % (1 << 64), step.size)
        if copied is not None and len(copied.data) == step.size:
            self.run(step.target, copied)

    def _text(self, step: WalkStep, on: Object) -> None:
        address = on.word(step.offset)
        room = (self.budget - self.used - REGION_BYTES) // 8 * 8 // step.size
        if not address or room < 0:
            return
        found, state = b"", RegionState.CUT
        while len(found) < min(step.limit, room) * step.size:
            unit = self.read(address + len(found), step.size)
            if len(unit) < step.size:
                state = RegionState.UNREADABLE
                break
            found += unit
            if not any(unit):
                state = RegionState.OK
                break
        self._add(Region(address, found, state))

    def _array(self, step: WalkStep, on: Object) -> None:
        data = on.word(step.offset)
        number = on.word(step.a, 4 if WalkFlag.COUNT_32 in step.flags else 8)
        if not data or number is None:
            return
        first = data + step.b
        if WalkFlag.END_POINTER in step.flags:
            number = (number - first) // step.size if number > first else 0
        count = min(number, step.limit)
        self._each_in(step, self._copy(first, count * step.size), count)

    def _each(self, step: WalkStep, on: Object) -> None:
        counted = on.word(step.a, 2) if WalkFlag.COUNTED in step.flags else step.limit
        self._each_in(step, on.part(step.offset), min(counted or 0, step.limit))

    def _when(self, step: WalkStep, on: Object) -> None:
        number = on.word(step.offset, step.size)
        if number is None:
            return
        inside = step.a <= (number & step.limit if step.limit else number) <= step.b
        if inside != (WalkFlag.NOT in step.flags):
            self.run(step.target, on)

    def _list(self, step: WalkStep, on: Object) -> None:
        first = node = on.word(step.offset)
        stop = (0, on.address + step.b if WalkFlag.SENTINEL in step.flags else 0)
        for index in range(step.limit):
            if node is None or node in stop or (index and node == first):
                return
            copied = self._copy(node, step.size)
            if copied is None or len(copied.data) < step.size:
                return
            self.run(step.target, copied)
            node = copied.word(step.a)

    def _tree(self, step: WalkStep, on: Object) -> None:
        waiting: list[Object] = []
        node, visited = on.word(step.offset), 0
        while visited < step.limit and (node or waiting):
            while node and len(waiting) < 64:
                copied = self._copy(node, step.size)
                if copied is None or len(copied.data) < step.size:
                    return
                waiting.append(copied)
                node = copied.word(step.a)
            here = waiting.pop()
            self.run(step.target, here)
            visited += 1
            node = here.word(step.b)

    def _blocks(self, step: WalkStep, on: Object) -> None:
        start = [on.word(step.offset + at) for at in (0, 16, 24)]
        finish = on.word(step.a)
        current, last, node = start
        left = step.limit
        while current and last and node and finish and left:
            end = finish if current <= finish <= last else last
            count = min(left, max(0, end - current) // step.size)
            self._each_in(step, self._copy(current, count * step.size), count)
            left -= count
            if end == finish:
                return
            pointer = self._copy(node + 8, 8)
            if pointer is None or (following := pointer.word(0)) is None:
                return
            node, current, last = node + 8, following, following + step.b * step.size

    def _mapped(self, step: WalkStep, on: Object) -> None:
        blocks, first, count = on.word(step.offset), on.word(step.a & 0xFFFF_FFFF), on.word(step.a >> 32)
        if not blocks or first is None or count is None:
            return
        at, end = first, first + min(count, step.limit)
        while at < end:
            pointer = self._copy(blocks + at // step.b * 8, 8)
            block = None if pointer is None else pointer.word(0)
            number = min(end, (at // step.b + 1) * step.b) - at
            if not block:
                return
            self._each_in(step, self._copy(block + at % step.b * step.size, number * step.size), number)
            at += number

    def _ring(self, step: WalkStep, on: Object) -> None:
        data, capacity, first, count = (on.word(at) for at in (step.offset, step.a & 0xFFFF_FFFF, step.a >> 32, step.b & 0xFFFF_FFFF))
        if not data or not capacity or first is None or count is None or first >= capacity:
            return
        count = min(count, step.limit, capacity)
        before = min(count, capacity - first)
        for begin, number in ((first, before), (0, count - before)):
            if number:
                self._each_in(step, self._copy(data + begin * step.size, number * step.size), number)

    def _swiss(self, step: WalkStep, on: Object) -> None:
        control, mask = on.word(step.offset), on.word(step.a)
        if not control or mask is None:
            return
        left = step.limit
        for group in range(0, mask + 1, _HASHED_GROUP):
            marks = self._copy(control + group, min(_HASHED_GROUP, mask + 1 - group))
            if marks is None:
                return
            for index, mark in enumerate(marks.data):
                if mark & 0x80:
                    continue
                bucket = self._copy(control - (group + index + 1) * step.size, step.size)
                if bucket is None or not left:
                    return
                self._each_in(step, bucket, 1)
                left -= 1

    def _btree(self, step: WalkStep, on: Object) -> None:
        root, height = on.word(step.offset), on.word(step.a)
        if root and height is not None and height < 16:
            for index, node in enumerate(self._nodes(step, root, height)):
                if index >= step.limit:
                    return
                self.run(step.target, node)

    def _nodes(self, step: WalkStep, address: int, height: int) -> Iterator[Object]:
        edges, length = step.b & 0xFFFF_FFFF, step.b >> 32
        node = self._copy(address, step.size if height == 0 else max(step.size, edges + 12 * 8))
        if node is None:
            return
        yield node
        for index in range(min(11, node.word(length, 2) or 0) + 1 if height else 0):
            edge = node.word(edges + 8 * index)
            if edge:
                yield from self._nodes(step, edge, height - 1)

    def _dynamic(self, step: WalkStep, on: Object) -> None:
        value, vtable = on.word(step.offset), on.word(step.a)
        table = self._copy(vtable, 24) if vtable else None
        size = None if table is None else table.word(8)
        if value and size:
            self._copy(value, min(size, step.limit))
