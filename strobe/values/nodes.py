"""Containers whose elements lie apart from each other: lists, trees, hash tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from strobe.model.type_nodes import TypeId
from strobe.values.arrays import COUNT_MAX, more
from strobe.values.forms import BTree, Nodes, Number, Swiss, Tree
from strobe.values.inside import WORD, FormShape, mapping, number_in, word_in
from strobe.values.memory import Missing
from strobe.values.view import CUT, MORE, Json, Shape, View
from strobe.values.wrappers import PartsShape

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_HEIGHT_MAX: Final = 128  # of a balanced tree in 2^64 bytes
_CONTROL_MAX: Final = 1 << 18  # control bytes of a hash table that are looked at
_CONTROL_CHUNK: Final = 256
_BTREE_ROOM: Final = 11
_BTREE_HEIGHT_MAX: Final = 24


class ApartShape(FormShape):
    """`elements` finds them one by one, at most `limit`; a `Missing` among them ends them: `cut` where there are more."""

    __slots__ = ("count", "element", "kind")

    def __init__(self, shapes: Shapes, number: TypeId, size: int, element: TypeId, count: Number | None, kind: Literal["list", "set", "map"]) -> None:
        super().__init__(shapes, number, size)
        self.element, self.count, self.kind = element, count, kind

    def elements(self, view: View, data: bytes, at: int, address: int, depth: int, limit: int, /) -> Iterator[Json | Missing]:
        raise NotImplementedError

    def key(self) -> Shape:
        """How keys of a map are shown."""
        pair = self.shapes.of(self.element)
        return self.shapes.of(pair.form.parts[0][0]) if isinstance(pair, PartsShape) and pair.form.parts else pair

    def is_empty(self, _data: bytes, _at: int, _address: int) -> bool:
        """Asked where no number tells."""
        return False

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        count = None if self.count is None else number_in(self.count, data, at)
        if count is not None and count > COUNT_MAX:
            return self.invalid()
        if count == 0 or (count is None and self.is_empty(data, at, address)):
            return {} if self.kind == "map" else []
        rest = MORE if count is None else more(count)
        if depth <= 0:
            return mapping([], self.key(), rest) if self.kind == "map" else [rest]
        limit = min(view.limits.elements, COUNT_MAX if count is None else count)
        found: list[Json] = []
        ended: Missing | None = None
        for one in self.elements(view, data, at, address, depth - 1, limit):
            if isinstance(one, Missing):
                ended = one
                break
            found.append(one)
        return self._said(found, ended, count)

    def _said(self, found: list[Json], ended: Missing | None, count: int | None) -> Json:
        rest = None
        if ended is not None and ended.reason != "cut":
            if not found:
                return str(ended)
            rest = str(ended)
        elif count is not None and count > len(found):
            rest = more(count - len(found))
        elif ended is not None and count is None:
            rest = MORE
        if self.kind == "map":
            return mapping(found, self.key(), rest)
        return found if rest is None else [*found, rest]

    def value(self, view: View, data: bytes, at: int, address: int, depth: int) -> Json | Missing:
        """The element at `at` in `data`."""
        shape = self.shapes.of(self.element)
        if not view.spend():
            return Missing("cut", address)
        if shape.size is None:
            return shape.apart(view, address, depth, None)
        return shape.show(view, data, at, address, depth) if at + shape.size <= len(data) else CUT


class NodesShape(ApartShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Nodes) -> None:
        super().__init__(shapes, number, size, form.element, form.count, form.shown)
        self.form = form

    def is_empty(self, data: bytes, at: int, address: int) -> bool:
        first = word_in(data, at + self.form.first)
        return first == 0 or (self.form.sentinel is not None and first == address + self.form.sentinel)

    def elements(self, view: View, data: bytes, at: int, address: int, depth: int, limit: int, /) -> Iterator[Json | Missing]:
        form = self.form
        end = 0 if form.sentinel is None else address + form.sentinel
        node = word_in(data, at + form.first)
        seen: set[int] = set()
        while node not in (0, end) and node not in seen and len(seen) < limit:
            seen.add(node)
            raw = view.fetch(node, form.size)
            if isinstance(raw, Missing):
                yield raw
                return
            yield self.value(view, raw, form.value, node + form.value, depth)
            node = word_in(raw, form.next)
        if node not in (0, end):
            yield Missing("cut", node)


class TreeShape(ApartShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Tree) -> None:
        super().__init__(shapes, number, size, form.element, form.count, form.shown)
        self.form = form

    def is_empty(self, data: bytes, at: int, _address: int) -> bool:
        return word_in(data, at + self.form.root) == 0

    def elements(self, view: View, data: bytes, at: int, _address: int, depth: int, limit: int, /) -> Iterator[Json | Missing]:
        form = self.form
        above: list[tuple[int, bytes]] = []
        seen: set[int] = set()
        node, found = word_in(data, at + form.root), 0
        while found < limit and (node or above):
            while node:
                raw = view.fetch(node, form.size)
                if isinstance(raw, Missing) or node in seen or len(above) >= _HEIGHT_MAX:
                    yield raw if isinstance(raw, Missing) else Missing("cut", node)
                    return
                seen.add(node)
                above.append((node, raw))
                node = word_in(raw, form.left)
            here, raw = above.pop()
            yield self.value(view, raw, form.value, here + form.value, depth)
            found += 1
            node = word_in(raw, form.right)
        if node or above:
            yield Missing("cut", node)


class SwissShape(ApartShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Swiss) -> None:
        super().__init__(shapes, number, size, form.element, form.count, form.shown)
        self.form = form

    def elements(self, view: View, data: bytes, at: int, _address: int, depth: int, limit: int, /) -> Iterator[Json | Missing]:
        form = self.form
        control, buckets = word_in(data, at + form.control), number_in(form.mask, data, at) + 1
        size = self.shapes.of(form.element).size or 0
        found = 0
        for start in range(0, min(buckets, _CONTROL_MAX), _CONTROL_CHUNK):
            tags, missing = view.prefix(control + start, min(_CONTROL_CHUNK, buckets - start))
            for index, tag in enumerate(tags, start):
                if tag & 0x80:
                    continue
                bucket = control - (index + 1) * form.stride
                raw = view.fetch(bucket, size)
                yield raw if isinstance(raw, Missing) else self.value(view, raw, 0, bucket, depth)
                found += 1
                if found >= limit:
                    return
            if missing is not None:
                yield missing
                return


class BTreeShape(ApartShape):
    """Keys and values lie apart: an element is made of both."""

    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: BTree) -> None:
        super().__init__(shapes, number, size, form.key, form.count, form.shown)
        self.form = form

    def key(self) -> Shape:
        return self.shapes.of(self.form.key)

    def elements(self, view: View, data: bytes, at: int, _address: int, depth: int, limit: int, /) -> Iterator[Json | Missing]:
        root, height = word_in(data, at + self.form.root), number_in(self.form.height, data, at)
        if height > _BTREE_HEIGHT_MAX:
            yield Missing("cut", root)
            return
        yield from self._node(view, root, height, depth, [limit])

    def _node(self, view: View, node: int, height: int, depth: int, left: list[int]) -> Iterator[Json | Missing]:
        """`left`: how many elements are still wanted."""
        form = self.form
        raw = view.fetch(node, form.edges + (_BTREE_ROOM + 1) * WORD if height else form.leaf_size)
        if isinstance(raw, Missing):
            yield raw
            return
        length = int.from_bytes(raw[form.length : form.length + 2], "little")
        if length > _BTREE_ROOM:
            yield Missing("cut", node)
            return
        for index in range(length + 1):
            if height:
                yield from self._node(view, word_in(raw, form.edges + index * WORD), height - 1, depth, left)
            if index == length or left[0] <= 0:
                return
            left[0] -= 1
            yield self._pair(view, raw, node, index, depth)

    def _pair(self, view: View, raw: bytes, node: int, index: int, depth: int) -> Json | Missing:
        form = self.form
        if not view.spend():
            return Missing("cut", node)
        key = self._part(view, raw, node, form.key, form.keys, index, depth)
        return [key, self._part(view, raw, node, form.value, form.values, index, depth)] if form.shown == "map" else key

    def _part(self, view: View, raw: bytes, node: int, number: TypeId, start: int, index: int, depth: int) -> Json:
        shape = self.shapes.of(number)
        at = start + index * (shape.size or 0)
        if shape.size is None or at + shape.size > len(raw):
            return shape.apart(view, node + at, depth, None)
        return shape.show(view, raw, at, node + at, depth)
