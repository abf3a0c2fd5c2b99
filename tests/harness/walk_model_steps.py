"""The steps of walk programs, for `walk_model`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from strobe.lanes.layout import REGION_BYTES, WALK_NOTHING, RegionState, WalkFlag, WalkOp
from tests.harness.walk_model_walk import WORD, Object, Region, Step, Stopped, Walk

TREE_LEVELS = 128
BTREE_LEVELS, BTREE_KEYS = 24, 11
MANY = 1 << 40
NEAR_MAX = 1 << 24


def perform(walk: Walk, step: Step, on: Object) -> None:
    _STEPS[step.op](walk, step, on)


def _state(cut: bool) -> RegionState:
    return RegionState.CUT if cut else RegionState.OK


def _point(walk: Walk, step: Step, on: Object) -> None:
    walk.visit(step, on.number(step.offset), step.size)


def _at(walk: Walk, step: Step, _on: Object) -> None:
    walk.visit(step, step.a, step.size)


def _text(walk: Walk, step: Step, on: Object) -> None:
    address = on.number(step.offset)
    if not address:
        return
    walk.tick()
    if any(target == -1 for target, _ in walk.seen.get(address, [])):
        return
    left = walk.left
    if left < REGION_BYTES + 8:
        raise Stopped
    room, most = (left - REGION_BYTES) // step.size * step.size, (step.limit + 1) * step.size
    data = walk.memory.read(address, min(most, room))
    end = next((at + step.size for at in range(0, len(data) - step.size + 1, step.size) if not any(data[at : at + step.size])), None)
    state = RegionState.OK
    if end is not None:
        data = data[:end]
    elif len(data) < min(most, room):
        state = RegionState.UNREADABLE
    else:
        state, walk.stopped = RegionState.CUT, walk.stopped or room < most
        data = data[: step.limit * step.size]
    region = Region(address, data, state)
    walk.regions.append(region)
    walk.remember(address, -1, region)


def _array(walk: Walk, step: Step, on: Object) -> None:
    pointer = on.number(step.offset)
    if not pointer:
        return
    address = (pointer + step.b) & WORD
    if step.flags & WalkFlag.END_POINTER:
        many = max(0, on.number(step.a) - address) // step.size
    else:
        many = on.number(step.a, 4 if step.flags & WalkFlag.COUNT_32 else 8)
    count = min(many, step.limit)
    walk.visit(step, address, count * step.size, _state(many > count), count)


def _each(walk: Walk, step: Step, on: Object) -> None:
    count = min(step.limit, on.number(step.a, 2)) if step.flags & WalkFlag.COUNTED else step.limit
    if count and step.target != WALK_NOTHING:
        walk.errand(step.target, on.address + step.offset, step.size, count, on.region, on.data[step.offset :])


def _list(walk: Walk, step: Step, on: Object) -> None:
    first = node = on.number(step.offset)
    end = (on.address + step.b) & WORD if step.flags & WalkFlag.SENTINEL else 0
    for _ in range(step.limit):
        if not node or node == end:
            return
        data = walk.visit(step, node, step.size)
        node = int.from_bytes(data[step.a : step.a + 8], "little") if data is not None else 0
        if node == first:
            return


def _tree(walk: Walk, step: Step, on: Object) -> None:
    path: list[tuple[int, tuple[Region, bytes, bool]]] = []
    node = on.number(step.offset)
    for _ in range(step.limit):
        here: tuple[int, tuple[Region, bytes, bool]] | None = None
        while node:
            copied = walk.copy(step, node, step.size)
            here = (node, copied) if copied is not None and len(copied[1]) >= step.size else None
            node = int.from_bytes(here[1][1][step.a : step.a + 8], "little") if here else 0
            if node and here:
                if len(path) == TREE_LEVELS:
                    return
                path.append(here)
        if here is None:
            if not path:
                return
            here = path.pop()
        walk.send(step, here[0], 1, here[1])
        node = int.from_bytes(here[1][1][step.b : step.b + 8], "little")


PLAIN = Step(WalkOp.POINT, 0, 0, 0, 1, WALK_NOTHING, 0, 0)


def _pointers(data: bytes) -> Iterator[int]:
    return (pointer for (pointer,) in struct.iter_unpack("<Q", data))


def _blocks(walk: Walk, step: Step, on: Object) -> None:
    (current, _, last, node), finish = (struct.unpack_from("<4Q", on.data, at) for at in (step.offset, step.a))
    if not node or finish[3] < node:
        return
    blocks, left = (finish[3] - node) // 8 + 1, step.limit
    pointers = walk.visit(PLAIN, node, 8 * min(blocks, step.limit // step.b + 2))
    for index, block in enumerate(_pointers(pointers or b"")):
        if not left:
            return
        begin = block if index else current
        end = finish[0] if index + 1 == blocks else (begin + step.b * step.size) & WORD if index else last
        count = max(0, end - begin) // step.size
        if count > step.b:
            return
        taken = min(count, left)
        if count and walk.visit(step, begin, taken * step.size, _state(taken < count), taken) is None:
            return
        left -= taken


def _mapped(walk: Walk, step: Step, on: Object) -> None:
    table, start, count = on.number(step.offset), *(on.number(at) for at in step.low_high)
    left = min(count, step.limit)
    first, skip = divmod(start, step.b)
    if not table or not left or start > MANY:
        return
    pointers = walk.visit(PLAIN, table + 8 * first, 8 * ((skip + left - 1) // step.b + 1))
    for block in _pointers(pointers or b""):
        taken = min(step.b - skip, left)
        if walk.visit(step, block + skip * step.size, taken * step.size, count=taken) is None:
            return
        left -= taken
        skip = 0


def _ring(walk: Walk, step: Step, on: Object) -> None:
    data, capacity, first, count = (on.number(at) for at in (step.offset, *step.low_high, step.b & 0xFFFF_FFFF))
    if not data or capacity > MANY or first >= capacity or count > capacity:
        return
    taken = min(count, step.limit)
    ahead = min(capacity - first, taken)
    walk.visit(step, data + first * step.size, ahead * step.size, count=ahead)
    walk.visit(step, data, (taken - ahead) * step.size, count=taken - ahead)


def _swiss(walk: Walk, step: Step, on: Object) -> None:
    control, mask, left = on.number(step.offset), on.number(step.a), step.limit
    if not control or mask & (mask + 1) or mask > MANY:
        return
    for piece in range(0, mask + 1, 256):
        if not left:
            return
        found = walk.visit(PLAIN, control + piece, min(mask + 1 - piece, 256))
        if found is None:
            return
        bucket = 0
        while bucket < len(found) and left:
            run = 0
            while bucket + run < len(found) and run < left and found[bucket + run] < 0x80:
                run += 1
            if run and walk.visit(step, control - (piece + bucket + run) * step.size, run * step.size, count=run) is None:
                return
            left -= run
            bucket += run or 1


def _b_tree(walk: Walk, step: Step, on: Object) -> None:
    height = on.number(step.a)
    edges, length = step.b & 0xFFFF_FFFF, step.b >> 32
    left = step.limit

    def below(node: int, level: int) -> bool:
        """False when the walk is over."""
        nonlocal left
        data = walk.visit(step, node, edges + 8 * (BTREE_KEYS + 1) if level else step.size)
        if data is None:
            return False
        keys = min(int.from_bytes(data[length : length + 2], "little"), BTREE_KEYS)
        if not level:
            left = max(0, left - keys)
        for index in range(keys + 1 if level else 0):
            if index:
                left = max(0, left - 1)
                if not left:
                    return False
            if not below(int.from_bytes(data[edges + 8 * index : edges + 8 * index + 8], "little"), level - 1):
                return False
        return True

    if height < BTREE_LEVELS and left:
        below(on.number(step.offset), height)


def _dynamic(walk: Walk, step: Step, on: Object) -> None:
    value, vtable = on.number(step.offset), on.number(step.a)
    size = walk.memory.read(vtable + 8, 8)
    if not value or len(size) < 8:
        return
    many = int.from_bytes(size, "little")
    walk.visit(step, value, min(many, step.limit), _state(many > step.limit))


def _near(walk: Walk, step: Step, on: Object) -> None:
    distance = step.a
    if on.region is None:
        return
    if step.flags & WalkFlag.TOLD:
        word = walk.memory.read((on.number(step.offset) + step.b) & WORD, 8)
        if len(word) < 8:
            return
        distance += int.from_bytes(word, "little")
    distance &= WORD
    if min(distance, (1 << 64) - distance) <= NEAR_MAX:
        walk.visit(step, on.address + distance, step.size)


_STEPS: dict[WalkOp, Callable[[Walk, Step, Object], None]] = {
    WalkOp.POINT: _point, WalkOp.TEXT: _text, WalkOp.ARRAY: _array, WalkOp.EACH: _each, WalkOp.LIST: _list, WalkOp.TREE: _tree, WalkOp.BLOCKS: _blocks,
    WalkOp.RING: _ring, WalkOp.SWISS: _swiss, WalkOp.BTREE: _b_tree, WalkOp.AT: _at, WalkOp.MAPPED: _mapped, WalkOp.DYNAMIC: _dynamic,
    WalkOp.NEAR: _near,
}  # fmt: skip
