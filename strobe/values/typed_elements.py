"""Where a container's elements are, by its form. Bounded, whatever the memory holds; a container that changes meanwhile gives what was there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from strobe.expression import Unavailable
from strobe.model.type_nodes import TypeId
from strobe.values.forms import Blocks, BTree, Nodes, Ring, Sequence, Swiss, Tree
from strobe.values.typed_numbers import bytes_of, number_at
from strobe.values.typed_world import ADDRESSES, World

if TYPE_CHECKING:  # the value's own file needs this one
    from strobe.values.typed import TypedValue

VISITED_MAX: Final = 100_000  # elements or nodes looked at for one index
_DEPTH_MAX: Final = 128  # of a tree
_FANOUT: Final = 11  # BTreeMap's, alloc::collections::btree::node


class Element(NamedTuple):
    """In memory. `key`: of a map whose keys lie apart from its values."""

    type: TypeId
    address: int
    key: tuple[TypeId, int] | None = None


def word(value: TypedValue, offset: int) -> int | Unavailable:
    """The pointer at that offset in the object."""
    raw = bytes_of(value, offset, 8)
    return raw if isinstance(raw, Unavailable) else int.from_bytes(raw, "little")


def pointer_at(world: World, address: int) -> int | Unavailable:
    raw = world.read(address % ADDRESSES, 8)
    return raw if isinstance(raw, Unavailable) else int.from_bytes(raw, "little")


def sequence_count(value: TypedValue, form: Sequence) -> int | Unavailable:
    if form.count is not None:
        return number_at(value, form.count)
    begin, end = word(value, form.data), word(value, form.end or 0)
    if isinstance(begin, Unavailable) or isinstance(end, Unavailable):
        return begin if isinstance(begin, Unavailable) else end
    return max(0, end - begin) // max(1, form.stride)


def ring_address(value: TypedValue, form: Ring, key: int) -> int | Unavailable:
    data, capacity, first, count = word(value, form.data), *(number_at(value, one) for one in (form.capacity, form.first, form.count))
    for number in (data, capacity, first, count):
        if isinstance(number, Unavailable):
            return number
    assert isinstance(data, int) and isinstance(capacity, int) and isinstance(first, int) and isinstance(count, int)
    if not 0 <= key < count:
        return Unavailable(f"index {key} is outside: it has {count:,} elements")
    at = first + key
    return data + (at - capacity if capacity and at >= capacity else at) * form.stride


def block_address(value: TypedValue, form: Blocks, key: int) -> int | Unavailable:
    """Of std::deque."""
    if form.finish is None:
        return _mapped_address(value, form, key)
    words = [word(value, form.start + 8 * index) for index in range(4)] + [word(value, form.finish + 8 * index) for index in range(4)]
    problem = next((one for one in words if isinstance(one, Unavailable)), None)
    if problem is not None:
        return problem
    cur, first, last, node, end, end_first, _, end_node = (one for one in words if isinstance(one, int))
    stride = max(1, form.stride)
    count = ((end_node - node) // 8 - 1) * form.per_block + (end - end_first) // stride + (last - cur) // stride if node != end_node else (end - cur) // stride
    if not 0 <= key < count:
        return Unavailable(f"index {key} is outside: it has {max(0, count):,} elements")
    at = key + (cur - first) // stride
    block = pointer_at(value.world, node + 8 * (at // form.per_block))
    return block if isinstance(block, Unavailable) else block + at % form.per_block * stride


def _mapped_address(value: TypedValue, form: Blocks, key: int) -> int | Unavailable:
    if form.first is None or form.count is None:
        return Unavailable("the form of this deque is not known")
    blocks, first, count = word(value, form.start), number_at(value, form.first), number_at(value, form.count)
    for number in (blocks, first, count):
        if isinstance(number, Unavailable):
            return number
    assert isinstance(blocks, int) and isinstance(first, int) and isinstance(count, int)
    if not 0 <= key < count:
        return Unavailable(f"index {key} is outside: it has {count:,} elements")
    block = pointer_at(value.world, blocks + 8 * ((first + key) // form.per_block))
    return block if isinstance(block, Unavailable) else block + (first + key) % form.per_block * form.stride


def elements(value: TypedValue, form: Nodes | Tree | Swiss | BTree) -> Iterator[Element | Unavailable]:
    """In the order in which they are shown; an Unavailable is the last."""
    match form:
        case Nodes():
            return _chain(value, form)
        case Tree():
            return _in_order(value, form)
        case Swiss():
            return _buckets(value, form)
        case BTree():
            return _btree(value, form)


def _chain(value: TypedValue, form: Nodes) -> Iterator[Element | Unavailable]:
    end = None if form.sentinel is None or value.at is None else value.at + form.sentinel
    node = word(value, form.first)
    for _ in range(VISITED_MAX):
        if isinstance(node, Unavailable):
            yield node
            return
        if node in (0, end):
            return
        yield Element(form.element, node + form.value)
        node = pointer_at(value.world, node + form.next)


def _in_order(value: TypedValue, form: Tree) -> Iterator[Element | Unavailable]:
    root = word(value, form.root)
    waiting: list[int] = []
    for _ in range(2 * VISITED_MAX):
        if isinstance(root, Unavailable):
            yield root
            return
        if root:
            if len(waiting) >= _DEPTH_MAX:
                yield Unavailable("its tree is deeper than any real one")
                return
            waiting.append(root)
            root = pointer_at(value.world, root + form.left)
        elif waiting:
            node = waiting.pop()
            yield Element(form.element, node + form.value)
            root = pointer_at(value.world, node + form.right)
        else:
            return


def _buckets(value: TypedValue, form: Swiss) -> Iterator[Element | Unavailable]:
    control, mask, count = word(value, form.control), number_at(value, form.mask), number_at(value, form.count)
    for number in (control, mask, count):
        if isinstance(number, Unavailable):
            yield number
            return
    assert isinstance(control, int) and isinstance(mask, int) and isinstance(count, int)
    if not count:
        return
    for start in range(0, min(mask + 1, 16 * VISITED_MAX), 4096):
        tags = value.world.read(control + start, min(4096, mask + 1 - start))
        if isinstance(tags, Unavailable):
            yield tags
            return
        for index, tag in enumerate(tags, start):
            if tag < 0x80:
                yield Element(form.element, (control - (index + 1) * form.stride) % ADDRESSES)


def _btree(value: TypedValue, form: BTree) -> Iterator[Element | Unavailable]:
    root, height, count = word(value, form.root), number_at(value, form.height), number_at(value, form.count)
    for number in (root, height, count):
        if isinstance(number, Unavailable):
            yield number
            return
    assert isinstance(root, int) and isinstance(height, int) and isinstance(count, int)
    if not count or not root:
        return
    if height > _DEPTH_MAX:
        yield Unavailable("its tree is deeper than any real one")
        return
    table = value.world.table
    sizes = table.size(form.key) or 0, table.size(form.value) or 0
    waiting: list[tuple[int, int, int]] = [(root, height, 0)]  # (node, height, what comes next: edge i is 2i, key i is 2i + 1)
    for _ in range(4 * VISITED_MAX):
        if not waiting:
            return
        node, height, step = waiting.pop()
        length = value.world.read(node + form.length, 2)
        if isinstance(length, Unavailable):
            yield length
            return
        keys = min(int.from_bytes(length, "little"), _FANOUT)
        if step > 2 * keys:
            continue
        waiting.append((node, height, step + 1))
        if step % 2:
            at = step // 2
            yield Element(form.value, node + form.values + at * sizes[1], (form.key, node + form.keys + at * sizes[0]))
        elif height:
            edge = pointer_at(value.world, node + form.edges + 8 * (step // 2))
            if isinstance(edge, Unavailable):
                yield edge
                return
            waiting.append((edge, height - 1, 0))
