"""A small real world for expressions: bytes at an address, C's layouts, and values that read them. Nothing in it knows the language's rules."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from strobe.expression import Scalar, Unavailable


@dataclass(frozen=True)
class Type:
    name: str
    size: int

    def scalar(self, memory: Memory, address: int) -> Scalar | Unavailable | None:
        return None


@dataclass(frozen=True)
class Basic(Type):
    """`form`: of the struct module."""

    form: str

    def scalar(self, memory: Memory, address: int) -> Scalar | Unavailable:
        raw = memory.read(address, self.size)
        if isinstance(raw, Unavailable):
            return raw
        return Scalar(struct.unpack("<" + self.form, raw)[0], unsigned=self.form.isupper(), bits=8 * self.size)


@dataclass(frozen=True)
class Enum(Basic):
    names: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Pointer(Type):
    target: Type

    def scalar(self, memory: Memory, address: int) -> Scalar | Unavailable:
        raw = memory.read(address, 8)
        return raw if isinstance(raw, Unavailable) else Scalar(int.from_bytes(raw, "little"), unsigned=True, pointee_bytes=max(1, self.target.size))


@dataclass(frozen=True)
class Array(Type):
    target: Type
    count: int


@dataclass(frozen=True)
class Struct(Type):
    members: tuple[tuple[str, int, Type], ...]


CHAR, INT, UNSIGNED = Basic("char", 1, "b"), Basic("int", 4, "i"), Basic("unsigned int", 4, "I")
LONG, UNSIGNED_LONG, DOUBLE, FLOAT = Basic("long", 8, "q"), Basic("unsigned long", 8, "Q"), Basic("double", 8, "d"), Basic("float", 4, "f")
BOOL = Basic("bool", 1, "?")


def pointer(target: Type) -> Pointer:
    return Pointer(target.name + "*", 8, target)


def array(target: Type, count: int) -> Array:
    return Array(f"{target.name}[{count}]", target.size * count, target, count)


@dataclass
class Memory:
    """`reads` counts what was asked of it."""

    base: int
    data: bytearray = field(default_factory=bytearray)
    reads: int = 0

    def put(self, raw: bytes) -> int:
        """The address of a copy, aligned to 8 bytes."""
        self.data += bytes(-len(self.data) % 8)
        self.data += raw
        return self.base + len(self.data) - len(raw)

    def read(self, address: int, size: int) -> bytes | Unavailable:
        self.reads += 1
        start = address - self.base
        if start < 0 or start + size > len(self.data):
            return Unavailable(f"unreadable at {address:#x}")
        return bytes(self.data[start : start + size])


@dataclass(frozen=True)
class Place:
    """A value of a type, somewhere; a pointer that was calculated has its address in `held` and is nowhere."""

    memory: Memory
    type: Type
    at: int
    held: int | None = None

    def scalar(self) -> Scalar | Unavailable | None:
        if self.held is not None and isinstance(self.type, Pointer):
            return Scalar(self.held, unsigned=True, pointee_bytes=max(1, self.type.target.size))
        return self.type.scalar(self.memory, self.at)

    def text(self) -> str | Unavailable | None:
        if not isinstance(self.type, Pointer | Array) or self.type.target != CHAR:
            return None
        start, found = self._pointed(), bytearray()
        while isinstance(start, int):
            one = self.memory.read(start + len(found), 1)
            if isinstance(one, Unavailable):
                return one
            if one == b"\0":
                return found.decode("utf-8", "surrogateescape")
            found += one
        return start

    def enumerator(self, name: str, /) -> int | None:
        return dict(self.type.names).get(name.removeprefix(self.type.name + "::")) if isinstance(self.type, Enum) else None

    def member(self, name: str, /) -> Place | Unavailable:
        members = self.type.members if isinstance(self.type, Struct) else ()
        for own, offset, type_ in members:
            if own == name:
                return Place(self.memory, type_, self.at + offset)
        return Unavailable(f"`{self.type.name}` has no member `{name}`")

    def index(self, key: int | str, /) -> Place | Unavailable:
        if isinstance(key, str) or not isinstance(self.type, Pointer | Array):
            return Unavailable(f"`{self.type.name}` has no elements")
        if isinstance(self.type, Array) and not 0 <= key < self.type.count:
            return Unavailable(f"index {key} is outside `{self.type.name}`")
        moved = self.advance(key)
        return moved if isinstance(moved, Unavailable) else moved.dereference()

    def dereference(self) -> Place | Unavailable:
        if not isinstance(self.type, Pointer | Array):
            return Unavailable(f"`{self.type.name}` is no pointer")
        start = self._pointed()
        if isinstance(start, Unavailable):
            return start
        return Unavailable("the pointer is null") if start == 0 else Place(self.memory, self.type.target, start)

    def address(self) -> Place | Unavailable:
        if self.held is not None:
            return Unavailable("a calculated pointer has no address")
        return Place(self.memory, pointer(self.type), 0, self.at)

    def advance(self, count: int, /) -> Place | Unavailable:
        if not isinstance(self.type, Pointer | Array):
            return Unavailable(f"`{self.type.name}` is no pointer")
        start = self._pointed()
        if isinstance(start, Unavailable):
            return start
        return Place(self.memory, pointer(self.type.target), 0, (start + count * self.type.target.size) % (1 << 64))

    def span(self, count: int, /) -> Place | Unavailable:
        return Place(self.memory, array(self.type, count), self.at)

    def _pointed(self) -> int | Unavailable:
        if isinstance(self.type, Array):
            return self.at
        scalar = self.scalar()
        assert scalar is not None
        return scalar if isinstance(scalar, Unavailable) else int(scalar.value or 0)


@dataclass
class World:
    """A scope over a memory. `called` counts what was asked of it."""

    memory: Memory
    variables: Mapping[str, Place | Scalar | Unavailable]
    arguments: Sequence[tuple[str, Place]] = ()
    returned: Place | None = None
    types: Mapping[str, Type] = field(default_factory=dict)
    called: int = 0

    def resolve(self, name: str, /) -> Place | Scalar | Unavailable | None:
        self.called += 1
        return self.variables.get(name.removeprefix("::"))

    def argument(self, key: int | str, /) -> Place | None:
        self.called += 1
        if isinstance(key, int):
            return self.arguments[key][1] if key < len(self.arguments) else None
        return dict(self.arguments).get(key)

    def result(self) -> Place | None:
        self.called += 1
        return self.returned

    def cast(self, type_name: str, pointers: int, address: int, /) -> Place | None:
        found = self.types.get(type_name)
        if found is None:
            return None
        for _ in range(pointers):
            found = pointer(found)
        return Place(self.memory, found, 0, address)

    def near(self, name: str, /) -> list[str]:
        return sorted(known for known in self.variables if known[:1] == name[:1])
