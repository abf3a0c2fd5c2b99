"""One showing of a value: the memory it is read from, what limits it, and what it is inside of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from strobe.model.type_nodes import TypeId
from strobe.values.memory import Memory, Missing

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

Json = Any  # None, bool, int, float, str, list and dict with texts as keys: what JSON can say
VALUES_MAX: Final = 20_000  # shown in one answer, members and elements counted
TEXT_PER_VALUE: Final = 16  # characters
NESTING_MAX: Final = 48  # values inside values, whatever is between them
BLOCK_MAX: Final = 1 << 20  # bytes read at once
_SPACE: Final = 1 << 64
CUT: Final = "<cut>"
MORE: Final = "…"


@dataclass(frozen=True, slots=True)
class Limits:
    """`depth`: pointers followed, one inside the other; a container's elements that lie outside of it count as one, texts as none. `text` in characters."""

    depth: int = 3
    elements: int = 100
    text: int = 1024
    members: int = 100


class Symbols(Protocol):
    def function(self, address: int, /) -> str | None:
        """The name of the function at exactly this address of the process."""

    def dynamic(self, address: int, /) -> TypeId | None:
        """The type that a vtable's or manager function's address stands for."""


class View:
    """`path`: (address, type) of the records being shown. `left`: how many values may still be shown."""

    __slots__ = ("left", "level", "limits", "memory", "path", "shapes", "symbols")

    def __init__(self, shapes: Shapes, memory: Memory, limits: Limits, symbols: Symbols | None) -> None:
        self.shapes, self.memory, self.limits, self.symbols = shapes, memory, limits, symbols
        self.path: set[tuple[int, TypeId]] = set()
        self.left = VALUES_MAX
        self.level = 0

    def fetch(self, address: int, size: int) -> bytes | Missing:
        if 0 < size <= BLOCK_MAX and 0 <= address <= _SPACE - size:
            return self.memory.read(address, size)
        if size == 0:
            return b""
        return Missing("unreadable", address & (_SPACE - 1)) if 0 < size <= BLOCK_MAX else Missing("cut", address)

    def prefix(self, address: int, size: int) -> tuple[bytes, Missing | None]:
        """As many of the bytes as are there, and why not all."""
        found = self.fetch(address, size)
        if not isinstance(found, Missing):
            return found, None
        there = found.address - address
        if not 0 < there < size:
            return b"", found
        begin = self.fetch(address, there)
        return (b"", begin) if isinstance(begin, Missing) else (begin, found)

    def word(self, address: int, size: int = 8) -> int | Missing:
        found = self.fetch(address, size)
        return found if isinstance(found, Missing) else int.from_bytes(found, "little")

    def place(self, number: TypeId, address: int, depth: int) -> Json:
        """The object of type `number` at `address`. `depth`: how many pointers inside of it may be followed."""
        shape = self.shapes.of(number)
        if shape.size is None:
            return shape.apart(self, address, depth, None)
        data = self.fetch(address, shape.size)
        return shape.apart(self, address, depth, data) if isinstance(data, Missing) else shape.show(self, data, 0, address, depth)

    def spend(self, values: int = 1) -> bool:
        """Whether so many more values may be shown."""
        self.left -= values
        return self.left >= 0

    def text(self, shown: Json) -> Json:
        """A text costs as much as the values that take as much room."""
        if isinstance(shown, str):
            self.left -= len(shown) // TEXT_PER_VALUE
        return shown

    def function(self, address: int) -> Json:
        """What a pointer to a function says."""
        if address == 0:
            return None
        name = self.symbols.function(address) if self.symbols else None
        return f"<function at {address:#x}>" if name is None else f"{address:#x} <{name}>"

    def dynamic(self, address: int) -> TypeId | None:
        found = self.symbols.dynamic(address) if self.symbols and address else None
        return found if found is not None and 0 <= found < len(self.shapes.table) else None


class Shape:
    """How objects of one type are shown. `size` None: what has none. `is_object`: it is shown as an object of its members. `is_key`: as a text, number or
    enumerator, which can be a key in an object."""

    __slots__ = ("size",)
    is_object = False
    is_key = False

    def __init__(self, size: int | None) -> None:
        self.size = size

    def show(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        """The object whose bytes, all of them, begin in `data` at `at`, and in memory at `address`."""
        raise NotImplementedError

    def apart(self, _view: View, _address: int, _depth: int, missing: Missing | None, /) -> Json:
        """The object at `address`, of which not all bytes are there, or that has no size (`missing` None)."""
        return CUT if missing is None else str(missing)


class Words(Shape):
    """Always the same text: what there is nothing to read of."""

    __slots__ = ("words",)

    def __init__(self, words: Json, size: int | None = None) -> None:
        super().__init__(size)
        self.words = words

    def show(self, _view: View, _data: bytes, _at: int, _address: int, _depth: int, /) -> Json:
        return self.words

    def apart(self, _view: View, _address: int, _depth: int, _missing: Missing | None, /) -> Json:
        return self.words
