"""Forms of the Rust library's types that formatters/rust.toml has no words for. Resolved by what members are called, wherever they lie; a layout that
is not known has no form. Known: that of 1.95 and 1.97, and of earlier ones what the toolchain's own debugger scripts (lib/rustlib/etc) tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from strobe.model.type_nodes import Integer, Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.forms import BTree, Either, Form, Inner, Internet, Maybe, Moment, Nodes, Number, Ring, Sequence, Swiss
from strobe.values.rust_counted import counted
from strobe.values.rust_parts import Part, head

_NOTHING: Final = Maybe(Number(size=0), 0, 0)
_CRATES: Final = frozenset({"alloc", "core", "std", "hashbrown"})
_TABLE_NESTING: Final = 6
_ROWS: Final = ("buf.inner.ptr", "buf.ptr")


def std_form(table: TypeTable, number: TypeId) -> Form | None:
    node = table.stripped(number)
    if not isinstance(node, Record):
        return None
    crate, name, arguments = head(node.name)
    if crate not in _CRATES:
        return None
    if name in ("Rc", "Arc", "Weak"):
        return counted(Part(table, number), arguments)
    resolve = _FORMS.get(name) or (_atomic if name.startswith("Atomic") else None)
    return None if resolve is None else resolve(Part(table, number))


def _vec(part: Part) -> Form | None:
    data, count, element = _pointer(part, *_ROWS), _number(part, "len"), part.argument("T")
    return None if data is None or count is None or element is None else Sequence(data[0], element, part.table.size(element) or 0, count)


def _deque(part: Part) -> Form | None:
    data, element = _pointer(part, *_ROWS), part.argument("T")
    capacity, first, count = _number(part, "buf.inner.cap", "buf.cap"), _number(part, "head"), _number(part, "len")
    if data is None or element is None or capacity is None or first is None or count is None:
        return None
    return Ring(data[0], capacity, first, count, element, part.table.size(element) or 0)


def _linked(part: Part) -> Form | None:
    first, count, element = _pointer(part, "head"), _number(part, "len"), part.argument("T")
    if first is None or count is None or element is None:
        return None
    at, node = first
    following, value = _pointer(node, "next"), node.member("element")
    return None if following is None or value is None else Nodes(at, following[0], value.offset, element, node.size, count=count)


def _hash(part: Part) -> Form | None:
    """HashMap and HashSet, of the library or of hashbrown itself. Control bytes stood before the buckets until 1.51 (a member `data`)."""
    table: Part | None = part
    bucket: TypeId | None = None
    for _ in range(_TABLE_NESTING):
        if table is None or table.member("bucket_mask") is not None:
            break
        bucket = table.argument("T") if isinstance(table.node, Record) and head(table.node.name)[1] == "RawTable" else bucket
        table = table.path("base", "map", "table")
    if table is None or bucket is None or table.member("data") is not None:
        return None
    control, mask, count = _pointer(table, "ctrl"), _number(table, "bucket_mask"), _number(table, "items")
    if control is None or mask is None or count is None:
        return None
    stride = part.table.size(bucket) or 0
    if part.argument("V") is not None:
        return Swiss(control[0], mask, count, bucket, stride)
    key = Part(part.table, bucket).member("__0")
    return None if key is None or key.offset else Swiss(control[0], mask, count, key.type, stride, "set")


def _b_tree(part: Part) -> Form | None:
    root, count = part.path("root.?Some.__0", "root"), _number(part, "length")
    if root is None or count is None:
        return None
    node, height = _pointer(root, "node"), _number(root, "height")
    key, value = part.argument("K"), part.argument("V")
    if node is None or height is None or key is None or value is None:
        return None
    at, leaf = node
    keys, values, length, edges = leaf.member("keys"), leaf.member("vals"), leaf.member("len"), _edges(leaf)
    if keys is None or values is None or length is None or length.size != 2 or edges is None:
        return None
    return BTree(at, height, count, keys.offset, values.offset, key, value, length.offset, edges.offset, leaf.size)


def _edges(leaf: Part) -> Part | None:
    """In an inner node, which is the type of a leaf's parent; it begins with what a leaf is."""
    parent = _pointer(leaf, "parent")
    inner = None if parent is None else parent[1]
    begin, edges = (None, None) if inner is None else (inner.member("data"), inner.member("edges"))
    return edges if begin is not None and begin.offset == 0 and begin.size == leaf.size else None


def _b_tree_set(part: Part) -> Form | None:
    inner = part.path("map")
    found = None if inner is None else _b_tree(Part(part.table, inner.type))
    if inner is None or inner.offset or not isinstance(found, BTree):
        return None
    return replace(found, shown="set")


def _once(part: Part) -> Form | None:
    """There where the state is COMPLETE, which is 0 since 1.8x (std::sys::sync::once::futex); other systems have another Once."""
    state, value = _number(part, "once.inner.state_and_queued"), part.path("value.value", "data.value.value")
    if state is None or value is None:
        return None
    return Either(state, 0, 0, Inner(value.type, value.offset), _NOTHING)


def _atomic(part: Part) -> Form | None:
    """As the type that it is generic over, where it is; AtomicBool holds a byte."""
    value, record = part.path("v", "p"), part.node
    if value is None or not isinstance(record, Record):
        return None
    inner, wanted = value.unwrapped(), part.argument("T")
    name = head(record.name)[1]
    if name == "AtomicBool":
        wanted = next((number for number in part.table.named("bool") if isinstance(part.table[number], Integer)), None)
    fits = name != "AtomicPtr" and wanted is not None and part.table.size(wanted) == inner.size
    return Inner(wanted if wanted is not None and fits else inner.type, inner.offset)


def _duration(part: Part) -> Form | None:
    seconds, nanoseconds = _number(part, "secs"), _number(part, "nanos")
    return None if seconds is None or nanoseconds is None else Moment(seconds, nanoseconds)


def _instant(part: Part) -> Form | None:
    times = _timespec(part)
    return None if times is None else Moment(*times, "boot")


def _system_time(part: Part) -> Form | None:
    times = _timespec(part)
    return None if times is None else Moment(*times, "epoch")


def _timespec(part: Part) -> tuple[Number, Number] | None:
    inner = part.unwrapped()
    seconds, nanoseconds = _number(inner, "tv_sec"), _number(inner, "tv_nsec")
    return None if seconds is None or nanoseconds is None else (seconds, nanoseconds)


def _internet(part: Part) -> Form | None:
    octets = part.path("octets", "inner")
    return Internet(octets.offset, octets.size) if octets is not None and octets.size in (4, 16) else None


def _number(part: Part, *paths: str) -> Number | None:
    found = part.path(*paths)
    return None if found is None else found.number()


def _pointer(part: Part, *paths: str) -> tuple[int, Part] | None:
    """(where it lies, what it points to)."""
    found = part.path(*paths)
    return None if found is None else found.pointer()


_FORMS: Final[Mapping[str, Callable[[Part], Form | None]]] = {
    "Vec": _vec,
    "VecDeque": _deque,
    "LinkedList": _linked,
    "HashMap": _hash,
    "HashSet": _hash,
    "BTreeMap": _b_tree,
    "BTreeSet": _b_tree_set,
    "OnceLock": _once,
    "LazyLock": _once,
    "Duration": _duration,
    "Instant": _instant,
    "SystemTime": _system_time,
    "Ipv4Addr": _internet,
    "Ipv6Addr": _internet,
}
