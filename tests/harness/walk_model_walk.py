"""The part of `walk_model` that all steps are made of: copying each stretch once, and running programs on what was copied."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from strobe.lanes.layout import REGION_BYTES, WALK_NOTHING, RegionState, WalkFlag, WalkOp

PAGE = 4096
FUEL = 4096
AGAIN_MAX = 400  # times that another program is run on what the image has
ERRANDS_MAX = 512
WHENS_MAX = 64  # within each other, that are not the last step of their program
WORD = (1 << 64) - 1


class Stopped(Exception):
    """The event's budget or time is used up."""


@dataclass
class Memory:
    """Pages from `base` on; those of which `readable` is 0 cannot be read."""

    base: int
    content: bytes
    readable: bytes

    def read(self, address: int, size: int) -> bytes:
        """As many of the bytes as are there."""
        found = bytearray()
        while len(found) < size:
            at = address + len(found) - self.base
            if not 0 <= at < len(self.content) or not self.readable[at // PAGE]:
                break
            found += self.content[at : min(at + size - len(found), at // PAGE * PAGE + PAGE)]
        return bytes(found)


@dataclass(frozen=True)
class Step:
    op: WalkOp
    flags: int
    limit: int
    offset: int
    size: int
    target: int
    a: int
    b: int

    @property
    def low_high(self) -> tuple[int, int]:
        return self.a & 0xFFFF_FFFF, self.a >> 32


@dataclass
class Region:
    address: int
    data: bytes
    state: RegionState

    @property
    def room(self) -> int:
        return REGION_BYTES + (len(self.data) + 7) // 8 * 8


@dataclass
class Object:
    """Bytes that a program runs on, and where they were. `region`: that they are in; None in the payload."""

    data: bytes
    address: int
    region: Region | None

    def number(self, at: int, size: int = 8) -> int:
        return int.from_bytes(self.data[at : at + size], "little")


@dataclass
class Walk:
    """One event's walk. `copy` and `send` are what all steps are made of."""

    memory: Memory
    steps: list[Step]
    budget: int
    perform: Callable[[Walk, Step, Object], None]  # a step that copies
    regions: list[Region] = field(default_factory=list)
    seen: dict[int, list[tuple[int, Region]]] = field(default_factory=dict)  # address → (target, region), in the order they came
    errands: deque[tuple[int, int, int, int, Region | None, bytes]] = field(default_factory=deque)
    fuel: int = FUEL
    again: int = 0
    current: Region | None = None
    stopped: bool = False

    def tick(self) -> None:
        if self.stopped or not self.fuel:
            raise Stopped
        self.fuel -= 1

    @property
    def left(self) -> int:
        return self.budget - sum(region.room for region in self.regions)

    def remember(self, address: int, target: int, region: Region) -> None:
        self.seen.setdefault(address, []).append((target, region))

    def copy(self, step: Step, address: int, size: int, state: RegionState = RegionState.OK) -> tuple[Region, bytes, bool] | None:
        """The region that has the stretch, what of it is there, and whether the step's program is to run on it."""
        address &= WORD
        if not address or not size:
            return None
        self.tick()
        region: Region | None = None
        done = False
        for target, known in self.seen.get(address, []):
            if len(known.data) - (address - known.address) < size and known.state != RegionState.UNREADABLE:
                continue
            region = known
            if target == step.target:
                done = True
                break
        if region is None and self.current is not None:
            ahead = address - self.current.address
            if 0 <= ahead < len(self.current.data) and size <= len(self.current.data) - ahead:
                region = self.current
        if region is None:
            region = self.new(address, size, state, soft=bool(step.flags & WalkFlag.SOFT))
        elif not done:
            self.again += 1
            self.stopped |= self.again == AGAIN_MAX
        if not done:
            self.remember(address, step.target, region)
        return region, region.data[address - region.address :], not done and step.target != WALK_NOTHING

    def new(self, address: int, size: int, state: RegionState, *, soft: bool) -> Region:
        left = self.left
        if left < REGION_BYTES + 8:
            raise Stopped
        take = size
        if take > left - REGION_BYTES:
            take, state, self.stopped = left - REGION_BYTES, RegionState.CUT, True
        data = self.memory.read(address, take)
        if len(data) < take and not (soft and data):
            state = RegionState.UNREADABLE
        region = Region(address, data, state)
        self.regions.append(region)
        return region

    def send(self, step: Step, address: int, count: int, copied: tuple[Region, bytes, bool]) -> None:
        region, data, fresh = copied
        if count and fresh and len(data) >= self.needs(step.target):
            self.errand(step.target, address, step.size, count, region, data)

    def errand(self, target: int, address: int, stride: int, count: int, region: Region | None, data: bytes) -> None:
        if len(self.errands) == ERRANDS_MAX:
            self.stopped = True
        else:
            self.errands.append((target, address, stride, count, region, data))

    def visit(self, step: Step, address: int, size: int, state: RegionState = RegionState.OK, count: int = 1) -> bytes | None:
        """All the bytes, if they are there."""
        address &= WORD
        copied = self.copy(step, address, size, state)
        if copied is None:
            return None
        data = copied[1]
        if len(data) < size and count > 1:
            count = len(data) // step.size
        self.send(step, address, count, copied)
        return data[:size] if len(data) >= size else None

    def needs(self, program: int) -> int:
        """Bytes of its object that a program reads."""
        most, waiting, known = 0, [program], set[int]()
        while waiting:
            at = waiting.pop()
            if at in known:
                continue
            known.add(at)
            step = self.steps[at]
            if step.op == WalkOp.END:
                continue
            waiting.append(at + 1)
            if step.op == WalkOp.WHEN and step.target != WALK_NOTHING:
                waiting.append(step.target)
            most = max(most, *reads(step))
        return most

    def run(self, roots: list[tuple[int, int]], payload: bytes) -> None:
        """`roots`: (program, offset in the payload)."""
        for program, at in roots:
            self.errand(program, at, 0, 1, None, payload[at:])
        try:
            while self.errands and not self.stopped:
                target, address, stride, count, region, data = self.errands.popleft()
                self.current = region
                for index in range(count):
                    self.program(target, Object(data[index * stride :], address + index * stride, region))
                    if self.stopped:
                        break
        except Stopped:
            self.stopped = True

    def program(self, at: int, on: Object) -> None:
        back: list[int] = []
        while True:
            step = self.steps[at]
            if step.op == WalkOp.END:
                if not back:
                    return
                at = back.pop() + 1
                continue
            self.tick()
            if step.op == WalkOp.WHEN:
                last = self.steps[at + 1].op == WalkOp.END
                if step.target != WALK_NOTHING and holds(step, on) and (last or len(back) < WHENS_MAX):
                    back += [] if last else [at]
                    at = step.target
                    continue
            else:
                self.perform(self, step, on)
            at += 1


def reads(step: Step) -> tuple[int, ...]:
    pointer = step.offset + 8
    match step.op:
        case WalkOp.EACH:
            return step.offset + step.size * step.limit, step.a + 2 if step.flags & WalkFlag.COUNTED else 0
        case WalkOp.WHEN:
            return (step.offset + step.size,)
        case WalkOp.ARRAY:
            return pointer, step.a + (4 if step.flags & WalkFlag.COUNT_32 else 8)
        case WalkOp.BLOCKS:
            return step.offset + 32, step.a + 32
        case WalkOp.MAPPED:
            return pointer, step.low_high[0] + 8, step.low_high[1] + 8
        case WalkOp.RING:
            return pointer, step.low_high[0] + 8, step.low_high[1] + 8, (step.b & 0xFFFF_FFFF) + 8
        case WalkOp.SWISS | WalkOp.BTREE | WalkOp.DYNAMIC:
            return pointer, step.a + 8
        case WalkOp.NEAR:
            return (pointer if step.flags & WalkFlag.TOLD else 0,)
        case WalkOp.AT:
            return (0,)
    return (pointer,)


def holds(step: Step, on: Object) -> bool:
    value = on.number(step.offset, step.size)
    if step.limit:
        value &= step.limit
    return (step.a <= value <= step.b) != bool(step.flags & WalkFlag.NOT)
