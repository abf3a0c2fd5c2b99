"""The expression language's values (strobe.expression.world.Value) over a type table and a memory.

The same for a live process, an event's image and bytes in hand. Nothing is read before it is needed, except the pointer that a reference is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strobe.expression import Scalar, Unavailable, Value
from strobe.model.type_nodes import CUT, VOID, Array, Cut, Enum, Function, Opaque, Pointer, TypeId, Unspecified
from strobe.values import typed_indexing as indexing
from strobe.values import typed_members as members
from strobe.values import typed_rust
from strobe.values.forms import Either, Form, Inner, Maybe, Owner, Text, Time
from strobe.values.memory import Missing
from strobe.values.typed_numbers import choose, number_at
from strobe.values.typed_scalars import BASIC, decoded, scalar_of, text_at, text_end
from strobe.values.typed_world import ADDRESSES, World

_CHAIN_MAX: Final = 32  # newtypes in newtypes
_DECLARATOR: Final = re.compile(r"(?:\*|(?:\[\d{1,9}\])+)\s*$")


@dataclass(frozen=True, slots=True)
class TypedValue:
    """`at`: its address; else `held`, its bytes: calculated, or from a register. `bits`: (size, offset) of a bitfield in the bytes at `at`."""

    world: World
    type: TypeId
    at: int | None = None
    held: bytes | None = None
    bits: tuple[int, int] | None = None

    @property
    def type_name(self) -> str:
        return self.world.name(self.type)

    def size(self) -> int | None:
        return self.world.table.size(self.type)

    def raw(self) -> bytes | Unavailable:
        """Its bytes, a bitfield's as those of its whole type."""
        size = self.size()
        if size is None:
            return Unavailable(f"`{self.type_name}` has no size")
        if self.at is None:
            return (self.held or b"")[:size].ljust(size, b"\0")
        if self.bits is None:
            return self.world.read(self.at, size)
        return self._bitfield(size)

    def scalar(self) -> Scalar | Unavailable | None:
        node = self.world.table.stripped(self.type)
        if isinstance(node, Pointer):
            address = self.pointer()
            return address if isinstance(address, Unavailable) else Scalar(address, unsigned=True, pointee_bytes=self.world.stride(node.target))
        if isinstance(node, Unspecified):
            return Scalar(None) if "nullptr" in node.name else None
        inner = self.inner()
        if isinstance(inner, Unavailable):
            return inner
        if inner is not self:
            return Scalar(None) if inner is None else inner.scalar()
        form = self.form()
        if isinstance(form, Owner) and form.length is None:
            owned = self.pointer()
            return owned if isinstance(owned, Unavailable) else Scalar(owned, unsigned=True, pointee_bytes=self.world.stride(form.target))
        if isinstance(node, Array | Opaque | Function) or self.size() is None:
            return None
        if scalar_of(node, bytes(self.size() or 0)) is None:
            return None
        raw = self.raw()
        return raw if isinstance(raw, Unavailable) else scalar_of(node, raw)

    def text(self) -> str | Unavailable | None:
        node = self.world.table.stripped(self.type)
        if isinstance(node, Pointer):
            return self._text_behind(node)
        if isinstance(node, Array):
            unit = self.world.unit(node.element)
            if unit is None or len(node.counts) != 1:
                return None
            if node.counts[0] is None and self.at is not None:
                return self._text_at(self.at, unit)
            raw = self.raw()
            return raw if isinstance(raw, Unavailable) else decoded(raw[: text_end(raw, unit)], unit)
        inner = self.inner()
        if inner is None or isinstance(inner, Unavailable):
            return inner
        if inner is not self:
            return inner.text()
        form = self.form()
        return indexing.text(self, form) if isinstance(form, Text) else None

    def enumerator(self, name: str, /) -> int | None:
        inner = self.inner()
        node = self.world.table.stripped(inner.type) if isinstance(inner, TypedValue) else None
        return members.enumerator(node, name) if isinstance(node, Enum) else None

    def member(self, name: str, /) -> TypedValue | Unavailable:
        return members.member(self, name)

    def index(self, key: int | str, /) -> TypedValue | Unavailable:
        node = self.world.table.stripped(self.type)
        if isinstance(node, Pointer | Array):
            if isinstance(key, str):
                target = Unavailable("") if isinstance(node, Array) else self.dereference()
                return Unavailable(f"`{self.type_name}` is indexed with a number") if isinstance(target, Unavailable) else target.index(key)
            return self._element(node, key) if isinstance(node, Array) else self._moved(node, int(key))
        return indexing.index(self, key)

    def dereference(self) -> TypedValue | Unavailable:
        node = self.world.table.stripped(self.type)
        if isinstance(node, Array):
            return self._element(node, 0)
        if isinstance(node, Pointer):
            return self._moved(node, 0)
        inner = self.inner()
        if inner is None:
            return Unavailable("it holds no value")
        if isinstance(inner, Unavailable) or inner is not self:
            return inner if isinstance(inner, Unavailable) else inner.dereference()
        form = self.form()
        if not isinstance(form, Owner):
            return Unavailable(f"`{self.type_name}` is no pointer")
        address = self.pointer()
        if isinstance(address, Unavailable):
            return address
        if address == 0:
            return Unavailable("the pointer is null")
        return Unavailable("it has expired: its object is gone") if indexing.is_expired(self, form) else self.world_value(form.target, address)

    def address(self) -> TypedValue | Unavailable:
        if self.at is None:
            return Unavailable("it is not in memory, so it has no address")
        if self.bits is not None:
            return Unavailable("a bitfield has no address")
        return pointer_value(self.world, self.type, self.at)

    def advance(self, count: int, /) -> TypedValue | Unavailable:
        node = self.world.table.stripped(self.type)
        if isinstance(node, Array):
            first = self._element(node, 0, bounded=False)
            if isinstance(first, Unavailable) or first.at is None:
                return first if isinstance(first, Unavailable) else Unavailable("it is not in memory, so nothing points to it")
            return pointer_value(self.world, first.type, first.at + count * self.world.stride(first.type))
        target = node.target if isinstance(node, Pointer) else form.target if isinstance(form := self.form(), Owner) else None
        if target is None:
            return Unavailable(f"`{self.type_name}` is no pointer")
        address = self.pointer()
        return address if isinstance(address, Unavailable) else pointer_value(self.world, target, address + count * self.world.stride(target))

    def span(self, count: int, /) -> TypedValue | Unavailable:
        if self.at is None or self.bits is not None:
            return Unavailable("`@` needs something in memory")
        if self.size() is None:
            return Unavailable(f"`{self.type_name}` has no size, so it has no next one")
        return TypedValue(self.world, self.world.array_of(self.type, (count,)), self.at)

    # What the others are made of

    def form(self) -> Form | None:
        """Of a record; the branch that holds of what has two."""
        form = self.world.form(self.type)
        for _ in range(_CHAIN_MAX):
            if not isinstance(form, Either):
                return form
            form = choose(self, form)
        return None

    def inner(self) -> TypedValue | Unavailable | None:
        """What it is shown as: what is in an atomic or a newtype, and in an optional (None: nothing); else itself."""
        value = self
        for _ in range(_CHAIN_MAX):
            form = value.form()
            if form is None and typed_rust.is_option(value):
                held = typed_rust.of_option(value)
                if not isinstance(held, TypedValue):
                    return held
                value = held
                continue
            if isinstance(form, Maybe):
                there = number_at(value, form.there)
                if isinstance(there, Unavailable):
                    return there
                if not there:
                    return None
            if not isinstance(form, Inner | Maybe | Time):
                return value
            part = value.part(form.type, form.offset)
            if isinstance(part, Unavailable):
                return part
            value = part
        return value

    def part(self, type_: TypeId, offset: int, bits: tuple[int, int] | None = None) -> TypedValue | Unavailable:
        """What is `offset` bytes into it."""
        if self.at is not None:
            return self.world_value(type_, (self.at + offset) % ADDRESSES, bits)
        held = (self.held or b"")[offset:]
        value = TypedValue(self.world, type_, None, held, bits)
        if bits is not None:
            size = value.size() or 0
            whole = int.from_bytes(held[: (sum(bits) + 7) // 8], "little")
            value = TypedValue(self.world, type_, None, self._extended(whole, bits, type_, size))
        return followed(value)

    def world_value(self, type_: TypeId, address: int, bits: tuple[int, int] | None = None) -> TypedValue | Unavailable:
        return followed(TypedValue(self.world, type_, address, None, bits))

    def pointer(self) -> int | Unavailable:
        """The address that a pointer, or what behaves as one, holds."""
        form = self.form()
        if not isinstance(form, Owner):
            raw = self.raw()
            return raw if isinstance(raw, Unavailable) else int.from_bytes(raw, "little")
        word = indexing.word(self, form.pointer)
        if isinstance(word, Unavailable) or word in (0, ADDRESSES - 1):
            return word if isinstance(word, Unavailable) else 0
        return (word + form.skip) % ADDRESSES

    def _bitfield(self, size: int) -> bytes | Unavailable:
        assert self.at is not None and self.bits is not None
        raw = self.world.read(self.at, (sum(self.bits) + 7) // 8)
        return raw if isinstance(raw, Unavailable) else self._extended(int.from_bytes(raw, "little"), self.bits, self.type, size)

    def _extended(self, whole: int, bits: tuple[int, int], type_: TypeId, size: int) -> bytes:
        count, offset = bits
        number = (whole >> offset) & ((1 << count) - 1)
        if getattr(self.world.table.stripped(type_), "signed", False) and count and number >> (count - 1):
            number -= 1 << count
        return (number % (1 << (8 * size))).to_bytes(size, "little")

    def _element(self, node: Array, key: int, *, bounded: bool = True) -> TypedValue | Unavailable:
        first = node.counts[0] if node.counts else None
        if bounded and first is not None and not 0 <= key < first:
            return Unavailable(f"index {key} is outside `{self.type_name}`")
        rest = node.counts[1:]
        kind = self.world.array_of(node.element, rest) if rest else node.element
        size = self.world.table.size(kind)
        return Unavailable(f"the size of `{self.world.name(kind)}` is not known") if size is None else self.part(kind, key * size)

    def _moved(self, node: Pointer, count: int) -> TypedValue | Unavailable:
        """What lies `count` elements behind what the pointer points to."""
        target = self.world.table.stripped(node.target)
        if node.target in (VOID, CUT) or isinstance(target, Cut) or self.world.table.stripped(node.target) == self.world.table[VOID]:
            return Unavailable(f"`{self.type_name}` does not say what it points to: write `*(int*)…`, with the type")
        if isinstance(target, Function):
            return Unavailable(f"`{self.type_name}` points to a function")
        address = self.pointer()
        if isinstance(address, Unavailable):
            return address
        if address == 0:
            return Unavailable("the pointer is null")
        if count and self.world.table.size(node.target) is None:
            return Unavailable(f"the size of `{self.world.name(node.target)}` is not known")
        return self.world_value(node.target, (address + count * self.world.stride(node.target)) % ADDRESSES)

    def _text_behind(self, node: Pointer) -> str | Unavailable | None:
        unit = self.world.unit(node.target)
        if unit is None or node.language == "rust":
            return None
        address = self.pointer()
        if isinstance(address, Unavailable):
            return address
        return Unavailable("the pointer is null") if address == 0 else self._text_at(address, unit)

    def _text_at(self, address: int, unit: int) -> str | Unavailable:
        found = text_at(self.world.memory, address, unit)
        return Unavailable(f"the text is not whole: {found}") if isinstance(found, Missing) else found


def value_at(world: World, type_: TypeId, address: int) -> TypedValue | Unavailable:
    """The value of that type at that address; of a reference, what it refers to."""
    return followed(TypedValue(world, type_, address))


def followed(value: TypedValue) -> TypedValue | Unavailable:
    """What a C++ reference refers to; anything else itself."""
    for _ in range(_CHAIN_MAX):
        node = value.world.table.stripped(value.type)
        if not isinstance(node, Pointer) or node.form == "pointer":
            return value
        raw = value.raw()
        if isinstance(raw, Unavailable):
            return raw
        value = TypedValue(value.world, node.target, int.from_bytes(raw, "little"))
    return value


def pointer_value(world: World, target: TypeId, address: int) -> TypedValue:
    return TypedValue(world, world.pointer_to(target), None, (address % ADDRESSES).to_bytes(8, "little"))


@dataclass(slots=True)
class ProgramScope:
    """Names that were looked up before: variables, types for casts, and what is like those that were not found. There is no call here."""

    world: World
    variables: Mapping[str, Value | Scalar | Unavailable] = field(default_factory=dict)
    types: Mapping[str, TypeId] = field(default_factory=dict)
    nearest: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def resolve(self, name: str, /) -> Value | Scalar | Unavailable | None:
        found = self.variables.get(name)
        return members.named_enumerator(self.world.table, name) if found is None else found

    def argument(self, _key: int | str, /) -> None:
        return None

    def result(self) -> None:
        return None

    def cast(self, type_name: str, pointers: int, address: int, /) -> TypedValue | None:
        target = self.type(type_name)
        if target is None:
            return None
        for _ in range(pointers - 1):
            target = self.world.pointer_to(target)
        return pointer_value(self.world, target, address)

    def type(self, name: str) -> TypeId | None:
        """The program's own type of that name; else a basic one. After that there may be `*` and `[4]`."""
        plain, marks = declarators(name)
        found = self.types.get(name)
        if found is not None:
            return found
        found = self.types.get(plain, VOID if plain == "void" else self.world.add(BASIC[plain]) if plain in BASIC else None)
        for mark in marks if found is not None else ():
            assert found is not None
            counts = tuple(int(count) for count in re.findall(r"\d+", mark))
            found = self.world.array_of(found, counts) if counts else self.world.pointer_to(found)
        return found

    def near(self, name: str, /) -> Sequence[str]:
        return self.nearest.get(name, ())


def declarators(name: str) -> tuple[str, list[str]]:
    """(`int`, [`*`, `[4]`]) for `int *[4]`: innermost first."""
    marks: list[str] = []
    name = name.strip()
    while len(marks) < _CHAIN_MAX and (match := _DECLARATOR.search(name)) and match.start():
        marks.append(match.group().strip())
        name = name[: match.start()].rstrip()
    return name, marks[::-1]
