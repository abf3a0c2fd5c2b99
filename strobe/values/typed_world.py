"""What the values of one program have in common: types, memory, forms. Types that an expression makes (`&x`, `*p@10`) join the table."""

from __future__ import annotations

from typing import Final, Protocol

from strobe.expression import Unavailable
from strobe.model.type_nodes import CUT, Array, Integer, Node, Pointer, TypeId
from strobe.model.types import TypeTable
from strobe.values.forms import Form
from strobe.values.memory import Memory, Missing

ADDRESSES: Final = 1 << 64
_ADDED_MAX: Final = 10_000
_REASONS: Final = {"unreadable": "cannot be read", "cut": "was not copied: a limit", "uncaptured": "was not captured"}


class Units(Protocol):
    """strobe.values.shapes.Shapes."""

    def unit(self, number: TypeId, /) -> int | None: ...


class Forms(Protocol):
    """strobe.values.registry.Formatters."""

    def form(self, table: TypeTable, number: TypeId, /) -> Form | None: ...

    def shapes(self, table: TypeTable, /) -> Units: ...


class World:
    """`table` grows; numbers keep their meaning."""

    def __init__(self, table: TypeTable, memory: Memory, forms: Forms) -> None:
        self.table = table
        self.memory = memory
        self._forms = forms
        self._first = table
        self._added: dict[Node, TypeId] = {}

    def form(self, number: TypeId) -> Form | None:
        """What is added are pointers, arrays and numbers: those have none."""
        return self._forms.form(self._first, number) if number < len(self._first) else None

    def unit(self, number: TypeId) -> int | None:
        """Bytes of a character, of types that are characters of texts."""
        if number < len(self._first):
            return self._forms.shapes(self._first).unit(number)
        node = self.table[number]
        return node.size if isinstance(node, Integer) and node.encoding in ("char", "utf") and node.size in (1, 2, 4) else None

    def read(self, address: int, size: int) -> bytes | Unavailable:
        found = self.memory.read(address % ADDRESSES, size) if size else b""
        return unavailable(found) if isinstance(found, Missing) else found

    def add(self, node: Node) -> TypeId:
        """The number of a type that debug info need not have."""
        if node not in self._added:
            if len(self.table) - len(self._first) >= _ADDED_MAX:
                return CUT
            self._added[node] = len(self.table)
            self.table = TypeTable((*self.table.nodes, node), self.table.cut)
        return self._added[node]

    def pointer_to(self, target: TypeId) -> TypeId:
        node = self.table[target]
        if node.language == "rust":
            return self.add(Pointer(f"*{node.name}", "rust", 8, target))
        space = "" if node.name.endswith("*") else " "
        return self.add(Pointer(f"{node.name}{space}*", node.language, 8, target))

    def array_of(self, element: TypeId, counts: tuple[int | None, ...]) -> TypeId:
        """Of an array, one more dimension."""
        node = self.table.stripped(element)
        if isinstance(node, Array):
            element, counts = node.element, (*counts, *node.counts)
        each, total = self.table.size(element), 1
        for count in counts:
            total *= count or 0
        name = self.table[element].name + "".join(f"[{'' if count is None else count}]" for count in counts)
        return self.add(Array(name, self.table[element].language, None if each is None or None in counts else each * total, element, counts))

    def name(self, number: TypeId) -> str:
        return self.table[number].name

    def stride(self, number: TypeId) -> int:
        """Bytes from one object to the next in an array; 1 where nobody knows (`void`, as in gcc)."""
        return max(1, self.table.size(number) or 1)


def unavailable(missing: Missing) -> Unavailable:
    return Unavailable(f"memory at {missing.address:#x} {_REASONS[missing.reason]}")
