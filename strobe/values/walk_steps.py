"""Steps of walk programs before they have their place in a section: a target is a program's number, not yet the index of its first step."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from strobe.lanes.layout import WALK_NOTHING, WALK_STEP_BYTES, WalkFlag, WalkOp
from strobe.values.forms import Number

_PACKED: Final = struct.Struct("<BBHIIIQQ")
assert _PACKED.size == WALK_STEP_BYTES
NOTHING: Final = -1  # a target without a program
LIMIT_MAX: Final = 0xFFFF
_LOW: Final = 0xFFFF_FFFF
WORD_MAX: Final = (1 << 64) - 1
IN_PAGE: Final = 0xFFF  # of an address: the same wherever its file is loaded
BYTES_MAX: Final = 1 << 24  # of an object, an element, a node, and of what is read of them (agent/native/recorder_walk.h)
_DISPATCHES: Final = frozenset({WalkOp.EACH, WalkOp.WHEN})


@dataclass(frozen=True, slots=True)
class Step:
    """Fields as in layout.WALK_STEP."""

    op: WalkOp
    offset: int = 0
    size: int = 0
    target: int = NOTHING
    limit: int = 0
    flags: WalkFlag = WalkFlag(0)  # noqa: RUF009 - an immutable number
    a: int = 0
    b: int = 0

    @property
    def copies(self) -> bool:
        """False: it only runs its target."""
        return self.op not in _DISPATCHES

    @property
    def reads(self) -> int:
        """Bytes of its object that it reads itself: the object must have them."""
        pointer, low_a, high_a, low_b = self.offset + 8, (self.a & _LOW) + 8, (self.a >> 32) + 8, (self.b & _LOW) + 8
        if self.op == WalkOp.EACH:
            return max(self.offset + self.size * self.limit, self.a + 2 if WalkFlag.COUNTED in self.flags else 0)
        if self.op == WalkOp.WHEN:
            return self.offset + self.size
        if self.op == WalkOp.BLOCKS:
            return max(self.offset, self.a) + 32
        if self.op in (WalkOp.MAPPED, WalkOp.RING):
            return max(pointer, low_a, high_a, low_b if self.op == WalkOp.RING else 0)
        if self.op in (WalkOp.ARRAY, WalkOp.SWISS, WalkOp.BTREE, WalkOp.DYNAMIC):
            return max(pointer, self.a + 8)
        is_placed = self.op in (WalkOp.AT, WalkOp.END) or (self.op == WalkOp.NEAR and WalkFlag.TOLD not in self.flags)
        return 0 if is_placed else pointer

    @property
    def gives(self) -> int:
        """Bytes of what its target runs on, unless that is the same object."""
        return self.limit if self.op == WalkOp.DYNAMIC else self.size

    def packed(self, target: int) -> bytes:
        """`target`: index of a step, or WALK_NOTHING."""
        return _PACKED.pack(self.op, self.flags, min(self.limit, LIMIT_MAX), self.offset, self.size, target, self.a & WORD_MAX, self.b & WORD_MAX)


END: Final = Step(WalkOp.END).packed(WALK_NOTHING)


@dataclass(frozen=True, slots=True)
class Condition:
    """A WHEN: the number of `size` bytes at `offset`, of which `mask` counts (0: all), is in low..high."""

    offset: int
    size: int
    mask: int
    low: int
    high: int

    def step(self, target: int, *, inverted: bool = False) -> Step:
        flags = WalkFlag.NOT if inverted else WalkFlag(0)
        return Step(WalkOp.WHEN, self.offset, self.size, target, self.mask, flags, self.low, self.high)


def condition(number: Number, low: int, high: int, at: int) -> Condition | bool | None:
    """When `number`, in the object that begins at `at`, is in low..high: known beforehand (bool), or None where no step can say it."""
    low, high = max(0, low), min(high, WORD_MAX)
    if number.size == 0:
        return low <= number.fixed <= high
    if number.size not in (1, 2, 4, 8) or number.scale < 1 or number.plus:
        return None
    whole = (1 << 8 * number.size) - 1
    mask = number.mask & whole or whole
    low = -(-low // number.scale) << number.shift
    high = (high // number.scale) << number.shift | ((1 << number.shift) - 1)
    if low > whole:
        return False
    lowest = (mask & -mask).bit_length() - 1
    if mask == whole >> lowest << lowest:  # all bits from there on: an order that bits below do not change
        return Condition(at + number.offset, number.size, 0, low, min(high | ((1 << lowest) - 1), whole))
    first, last = lowest // 8, (mask.bit_length() - 1) // 8
    if last - first > 1:
        return None
    low, high, mask = low >> 8 * first, min(high, whole) >> 8 * first, mask >> 8 * first
    return Condition(at + number.offset + first, last - first + 1, mask, low, high)


def is_plain(number: Number) -> bool:
    """All its bytes count, as they are."""
    whole = (1 << 8 * number.size) - 1
    return number.mask & whole in (0, whole) and number.shift == 0 and number.scale == 1 and number.plus == 0
