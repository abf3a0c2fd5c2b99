"""Paths of members, pointers and array elements to a number: followed in the payloads of thousands of calls at once.

What is not so plain (containers, texts, bitfields, types that only the running program knows) is left to strobe.values, one call at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actors.store.scalars import DTYPES, Shape, shape_of, to_bits
from strobe.expression import Step
from strobe.lanes.layout import REGION_BYTES, RegionState
from strobe.model.probe import Value
from strobe.model.type_nodes import VOID, Array, Enum, Float, Function, Integer, Pointer, Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.registry import Formatters

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
WORD: Final = 8
REGIONS_MAX: Final = 512  # of one image: more do not fit
_STRING_BYTES: Final = 4  # u16 offset, u16 length: of a descriptor what is needed here
_SIZES: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class PlainPath:
    """Begins `offset` bytes into the payload, or (None) with the word returned. `moves`: (follow the pointer there first, then add so many bytes).
    At its end lies what `leaf` says."""

    offset: int | None
    moves: tuple[tuple[bool, int], ...]
    leaf: Value


def plain_path(table: TypeTable, formatters: Formatters, value: Value, steps: Sequence[Step]) -> PlainPath | None:
    """None: it is not plain."""
    if value.type is None or (value.source == "word" and value.home != "payload"):
        return None
    walk = _Walk(table, formatters, value.type)
    if value.home == "pointed":
        walk.moves.append((True, 0))
    if not walk.arrive() or not all(walk.step(step) for step in steps):
        return None
    leaf = walk.leaf()
    offset = value.offset if value.source == "payload" else None
    return None if leaf is None or (offset is None and walk.moves and not walk.moves[0][0]) else PlainPath(offset, tuple(walk.moves), leaf)


class _Walk:
    def __init__(self, table: TypeTable, formatters: Formatters, start: TypeId) -> None:
        self._table = table
        self._form = formatters.form
        self._type = start
        self.moves: list[tuple[bool, int]] = []

    def arrive(self) -> bool:
        """Behind a reference; False where a formatter has its own idea of the type."""
        node = self._table.stripped(self._type)
        if isinstance(node, Pointer) and node.form != "pointer":
            return self._follow(node)
        return not isinstance(node, Record) or self._form(self._table, self._type) is None

    def step(self, step: Step) -> bool:
        node = self._table.stripped(self._type)
        match step.kind:
            case "follow":
                return isinstance(node, Pointer) and self._follow(node)
            case "index":
                return isinstance(step.key, int) and self._index(node, step.key)
            case _:
                if isinstance(node, Pointer) and not self._follow(node):
                    return False
                found = self._table.member(self._type, str(step.key)) if self._form(self._table, self._type) is None else None
                return found is not None and found.bit_size is None and self._add(found.offset, found.type)

    def _follow(self, node: Pointer) -> bool:
        self.moves.append((True, 0))
        self._type = node.target
        return node.target != VOID and self.arrive()

    def _index(self, node: Any, key: int) -> bool:
        if isinstance(node, Array):
            size = self._table.size(node.element)
            inside = len(node.counts) == 1 and node.counts[0] is not None and 0 <= key < node.counts[0]
            return inside and size is not None and self._add(key * size, node.element)
        if not isinstance(node, Pointer) or not self._follow(node):
            return False
        size = self._table.size(self._type)
        return size is not None and self._add(key * size, self._type)

    def _add(self, count: int, type_: TypeId) -> bool:
        if self.moves:
            follows, before = self.moves[-1]
            self.moves[-1] = (follows, before + count)
        else:
            self.moves.append((False, count))
        self._type = type_
        return self.arrive()

    def leaf(self) -> Value | None:
        node = self._table.stripped(self._type)
        size = self._table.size(self._type)
        scalar: Any = None
        names = None
        match node:
            case Integer(encoding="bool"):
                scalar = "bool"
            case Integer(encoding="number" | "address"):
                scalar = "int" if node.signed else "uint"
            case Float(format="single" | "double"):
                scalar = "float"
            case Enum():
                scalar, names = "enum", dict(node.enumerators)
            case Pointer() if not self._is_text(node):
                scalar = "pointer"
        if scalar is None or size not in _SIZES:
            return None
        return Value(name="", type_name=node.name, scalar=scalar, size=size, source="payload", enumerators=names, type=self._type)

    def _is_text(self, node: Pointer) -> bool:
        target = self._table.stripped(node.target)
        return isinstance(target, Function) or (isinstance(target, Integer) and target.encoding in ("char", "byte", "utf"))


@dataclass(frozen=True, slots=True)
class Bodies:
    """Payloads in a row: entry i has the `lengths[i]` bytes of `data` from `starts[i]` on; none where the length is 0. `words`: what was returned."""

    data: NDArray[np.uint8]
    starts: Ints
    lengths: Ints
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, stored: Ints, bodies: Sequence[bytes], numbers: Ints, words: NDArray[np.uint64]) -> Bodies:
        """The payloads of `numbers`, where they are among the `stored` ones, whose `bodies` these are."""
        if not stored.size:
            nothing = np.zeros(numbers.size, dtype=np.int64)
            return cls(np.zeros(0, dtype=np.uint8), nothing, nothing, words)
        sizes = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies))
        begins = np.cumsum(sizes) - sizes
        order = np.argsort(stored, kind="stable")
        row = order[np.minimum(np.searchsorted(stored, numbers, sorter=order), stored.size - 1)]
        there = stored[row] == numbers
        return cls(np.frombuffer(b"".join(bodies), dtype=np.uint8), begins[row] * there, sizes[row] * there, words)

    def take(self, rows: Ints) -> Bodies:
        return Bodies(self.data, self.starts[rows], self.lengths[rows], self.words[rows])

    def bytes_of(self, row: int) -> bytes | None:
        start, length = int(self.starts[row]), int(self.lengths[row])
        return self.data[start : start + length].tobytes() if length else None


def follow_all(bodies: Bodies, path: PlainPath, descriptor: int | None) -> tuple[Ints, Mask, Mask]:
    """For each entry the value's bits as a column has them, whether it is there, and whether that could not be told here."""
    at, known = _begin(bodies, path)
    unsure = np.zeros(known.size, dtype=np.bool_)
    shape = shape_of(path.leaf)
    size = np.dtype(DTYPES[shape]).itemsize
    if path.offset is None and not path.moves:
        return bodies.words.view(np.int64), known, unsure
    for index, (follows, added) in enumerate(path.moves):
        if not follows:
            at = at + added
            continue
        first = index == 0 and path.offset is None
        known &= True if first else _inside(bodies, at, WORD)
        addresses = bodies.words if first else _gather(bodies.data, at, known, "<u8")
        known &= addresses != 0
        need = WORD if index + 1 < len(path.moves) else size
        at, found, partly = _locate(bodies, addresses + np.uint64(added), need, known, descriptor)
        unsure |= partly
        known &= found
    known &= _inside(bodies, at, size)
    return _bits(bodies.data, at, known, shape), known & ~unsure, unsure


def _begin(bodies: Bodies, path: PlainPath) -> tuple[Ints, Mask]:
    if path.offset is None:
        return bodies.starts, np.ones(bodies.starts.size, dtype=np.bool_)
    return bodies.starts + path.offset, bodies.lengths > 0


def _inside(bodies: Bodies, at: Ints, size: int) -> Mask:
    inside: Mask = (at >= bodies.starts) & (at + size <= bodies.starts + bodies.lengths)
    return inside


def _gather(data: NDArray[np.uint8], at: Ints, known: Mask, dtype: str) -> NDArray[Any]:
    """What lies at these places, wherever they are aligned; 0 where it is not known."""
    kind = np.dtype(dtype)
    found = np.zeros(at.size, dtype=kind)
    rows = np.flatnonzero(known)
    if rows.size:
        found[rows] = data[at[rows, None] + np.arange(kind.itemsize)].view(kind)[:, 0]
    return found


def _bits(data: NDArray[np.uint8], at: Ints, known: Mask, shape: Shape) -> Ints:
    return to_bits(_gather(data, at, known, DTYPES[shape]), shape)


def _locate(bodies: Bodies, wanted: NDArray[np.uint64], need: int, asked: Mask, descriptor: int | None) -> tuple[Ints, Mask, Mask]:
    """Where `need` bytes at an address lie in the entry's image, whether they do, and whether only their beginning does (the next region may go on).

    Of several regions the one that begins last, as strobe.values.memory has it.
    """
    at = np.zeros(wanted.size, dtype=np.int64)
    found, partly = np.zeros(wanted.size, dtype=np.bool_), np.zeros(wanted.size, dtype=np.bool_)
    if descriptor is None:
        return at, found, partly
    asked = asked & _inside(bodies, bodies.starts + descriptor, WORD)
    rows = np.flatnonzero(asked)
    head = _gather(bodies.data, bodies.starts[rows] + descriptor, np.ones(rows.size, dtype=np.bool_), "<u4").astype(np.int64)
    cursor = bodies.starts[rows] + (head & 0xFFFF)
    end = np.minimum(cursor + (head >> 16), bodies.starts[rows] + bodies.lengths[rows])
    best = np.zeros(wanted.size, dtype=np.uint64)
    for _ in range(REGIONS_MAX):
        alive = cursor + REGION_BYTES <= end
        if not alive.all():
            rows, cursor, end = rows[alive], cursor[alive], end[alive]
        if not rows.size:
            break
        head_bytes = bodies.data[cursor[:, None] + np.arange(REGION_BYTES)]
        address, size = head_bytes.view("<u8")[:, 0], head_bytes.view("<u4")[:, 2].astype(np.int64)
        whole_region = (size <= end - cursor - REGION_BYTES) & (head_bytes.view("<u4")[:, 3] <= max(RegionState))
        body = cursor + REGION_BYTES
        over = (wanted[rows] - address).view(np.int64)
        begins = whole_region & (over >= 0) & (over < size) & ((best[rows] <= address) | ~(found[rows] | partly[rows]))
        chosen = rows[begins]
        whole = over[begins] + need <= size[begins]
        best[chosen], found[chosen], partly[chosen] = address[begins], whole, ~whole
        at[chosen] = (body + over)[begins]
        cursor = np.where(whole_region, body + (size + 7 & ~7), end)
    return at, found, partly
