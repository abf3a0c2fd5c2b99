"""Places in a type by path, as formatters write them: `_M_impl._M_start`, `__base_[2]`, `_M_t.@1` (formatters/README.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import Pointer, Record, TemplateArgument, TypeId

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_FIRST: Final = re.compile(r"@\d{1,3}|\[\d{1,3}\]|[A-Za-z_$][\w$]*")
_NEXT: Final = re.compile(r"\[\d{1,3}\]|\.(?:@\d{1,3}|[A-Za-z_$][\w$]*)")
_STEPS_MAX: Final = 32
_NESTING_MAX: Final = 128  # a tuple of n elements is as many bases deep
_LOOKED_MAX: Final = 5000
_INLINE: Final = re.compile(r"::(?:__cxx11|__\d+|__ndk1|__Cr|__fs|_V2|__debug|__cxx1998)(?=::)")
_LEAVES: Final = ("_Head_base", "__tuple_leaf")  # bases of std::tuple that hold one element each: of libstdc++, of libc++


@dataclass(frozen=True, slots=True)
class Place:
    """`offset` bytes from the object's start; `bits` of a bit field, from the `shift`-th on."""

    type: TypeId
    offset: int
    bits: int = 0
    shift: int = 0


@lru_cache(1024)
def steps_of(path: str) -> tuple[str, ...] | None:
    """None: it is no path. The empty path is the object itself."""
    found: list[str] = []
    at = 0
    while at < len(path):
        match = (_NEXT if found else _FIRST).match(path, at)
        if match is None or len(found) >= _STEPS_MAX:
            return None
        found.append(match[0].removeprefix("."))
        at = match.end()
    return tuple(found)


@lru_cache(4096)
def stem(name: str) -> str:
    """`std::vector` of `std::vector<int>`: without template arguments and the libraries' inline namespaces; C's keywords left out too."""
    plain = _INLINE.sub("", name.removeprefix("struct ").removeprefix("union ").removeprefix("class ").removeprefix("enum "))
    if not plain.endswith(">"):
        return plain
    depth = 0
    for at in range(len(plain) - 1, -1, -1):
        depth += (plain[at] == ">" and plain[at - 1] != "-") - (plain[at] == "<")
        if depth == 0:
            return plain[:at]
    return plain


class Places:
    """In the types of one table."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def at(self, number: TypeId, path: str) -> Place | None:
        """None: the type has no such place."""
        steps = steps_of(path)
        if steps is None:
            return None
        place: Place | None = Place(number, 0)
        for step in steps:
            if place is None:
                return None
            place = self._step(place, step)
        return place

    def type(self, number: TypeId, path: str) -> TypeId | None:
        """`*path`: what the pointer there points to."""
        if not path.startswith("*"):
            place = self.at(number, path)
            return None if place is None else place.type
        pointer = self.type(number, path[1:])
        node = None if pointer is None else self.shapes.node(pointer)
        return node.target if isinstance(node, Pointer) else None

    def argument(self, number: TypeId, index: int) -> TemplateArgument | None:
        node = self.shapes.node(number)
        return node.template[index] if isinstance(node, Record) and index < len(node.template) else None

    def constant(self, number: TypeId, path: str) -> int | None:
        """The value of a template argument: the path ends with its number."""
        head, _, index = path.rpartition("@")
        if not index.isdigit():
            return None
        owner = self.type(number, head.removesuffix("."))
        argument = None if owner is None else self.argument(owner, int(index))
        if argument is None or not argument.is_value or argument.value is None:
            return None
        return argument.value if isinstance(argument.value, int) else int.from_bytes(argument.value, "little", signed=True)

    def _step(self, place: Place, step: str) -> Place | None:
        if step.startswith("@"):
            argument = self.argument(place.type, int(step[1:]))
            return None if argument is None or argument.is_value else Place(argument.type, place.offset)
        if step.startswith("["):
            return self._leaf(place, int(step[1:-1]))
        found = self._member(place.type, step, 0, [_LOOKED_MAX])
        return None if found is None else Place(found.type, place.offset + found.offset, found.bits, found.shift)

    def _member(self, number: TypeId, name: str, nesting: int, left: list[int]) -> Place | None:
        """The record's own members, those of anonymous ones, then those of bases."""
        record = self.shapes.node(number)
        left[0] -= 1
        if not isinstance(record, Record) or nesting > _NESTING_MAX or left[0] < 0:
            return None
        inside = []
        for member in record.members:
            if member.name == name:
                return Place(member.type, member.offset, member.bit_size or 0, member.bit_offset)
            if not member.name:
                inside.append((member.type, member.offset))
        inside += [(base.type, base.offset) for base in record.bases if base.offset is not None]
        for inner, offset in inside:
            found = self._member(inner, name, nesting + 1, left)
            if found is not None:
                return Place(found.type, found.offset + offset, found.bits, found.shift)
        return None

    def _leaf(self, place: Place, index: int) -> Place | None:
        """The element `index` of a tuple."""
        waiting = [(place.type, place.offset)]
        for _ in range(_LOOKED_MAX):
            if not waiting:
                return None
            number, offset = waiting.pop()
            record = self.shapes.node(number)
            if not isinstance(record, Record):
                continue
            if stem(record.name).endswith(_LEAVES) and record.template and record.template[0].value == index:
                return self._held(record, offset)
            waiting += [(base.type, offset + base.offset) for base in record.bases if base.offset is not None]
        return None

    def _held(self, leaf: Record, offset: int) -> Place | None:
        """An element without a size is the leaf's base."""
        if leaf.members:
            return Place(leaf.members[0].type, offset + leaf.members[0].offset)
        return Place(leaf.template[1].type, offset) if len(leaf.template) > 1 else None
