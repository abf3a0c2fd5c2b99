"""Finding one's way in the records of Rust's library, whatever they are wrapped in: layouts change with its versions, what is inside stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strobe.model.type_nodes import Array, Integer, Node, Pointer, Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.forms import Number

_WRAPPERS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Part:
    """What lies in an object at `offset`."""

    table: TypeTable
    type: TypeId
    offset: int = 0

    @property
    def node(self) -> Node:
        return self.table.stripped(self.type)

    @property
    def size(self) -> int:
        return self.table.size(self.type) or 0

    def member(self, name: str) -> Part | None:
        found = self.table.member(self.type, name)
        return None if found is None or found.bit_size is not None else Part(self.table, found.type, self.offset + found.offset)

    def path(self, *paths: str) -> Part | None:
        """The first that there is of `a.b.c`; `?Some` is what the variant of that name holds."""
        for path in paths:
            found: Part | None = self
            for name in path.split("."):
                found = None if found is None else found.variant(name[1:]) if name.startswith("?") else found.member(name)
            if found is not None:
                return found
        return None

    def variant(self, name: str) -> Part | None:
        node = self.node
        if not isinstance(node, Record) or node.variant_part is None:
            return None
        members = (member for variant in node.variant_part.variants for member in variant.members)
        found = next((member for member in members if member.name == name), None)
        return None if found is None else Part(self.table, found.type, self.offset + found.offset)

    def unwrapped(self) -> Part:
        """What is in it once all that holds but one thing is taken away: `usize` of Cell<UnsafeCell<usize>>, a pointer of Option<NonNull<T>>."""
        part = self
        for _ in range(_WRAPPERS_MAX):
            inner = part._only()
            if inner is None:
                break
            part = inner
        return part

    def _only(self) -> Part | None:
        node = self.node
        if not isinstance(node, Record):
            return None
        if node.variant_part is not None:
            some = self.variant("Some")
            return some if some is not None and not node.members else None
        sized = [member for member in node.members if self.table.size(member.type) != 0]
        if len(sized) != 1 or (node.form == "union" and sized[0].offset):
            return None
        return Part(self.table, sized[0].type, self.offset + sized[0].offset)

    def number(self) -> Number | None:
        inner = self.unwrapped()
        return Number(inner.offset, inner.size) if isinstance(inner.node, Integer) and 1 <= inner.size <= 8 else None

    def pointer(self) -> tuple[int, Part] | None:
        """(where it lies, what it points to) of a thin pointer."""
        inner = self.unwrapped()
        return (inner.offset, Part(self.table, inner.node.target)) if isinstance(inner.node, Pointer) and inner.node.size == 8 else None

    def element(self) -> Part | None:
        """The first of an array."""
        return Part(self.table, self.node.element, self.offset) if isinstance(self.node, Array) else None

    def argument(self, name: str) -> TypeId | None:
        """A type that the record is generic over."""
        node = self.node
        if not isinstance(node, Record):
            return None
        return next((one.type for one in node.template if one.name == name and not one.is_value), None)


def head(name: str) -> tuple[str, str, str]:
    """(`alloc`, `Vec`, `i32`) of `alloc::vec::Vec<i32>`; empty texts for what is in no crate's module."""
    plain, bracket, rest = name.partition("<")
    parts = plain.split("::")
    if len(parts) < 2 or (bracket and not rest.endswith(">")):
        return "", "", ""
    return parts[0], parts[-1], rest[:-1] if bracket else ""
