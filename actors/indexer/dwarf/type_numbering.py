"""Numbers for the types of one request: each gets its number when first referred to, and waits to be described."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Final

from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.language import language_of
from actors.indexer.dwarf.type_index import TypeIndex, variable_name
from actors.indexer.dwarf.type_names import TypeNames
from actors.indexer.dwarf.types import defined
from actors.indexer.dwarf.unit import Entry
from strobe.model.type_nodes import CUT, VOID, Language, Node, TypeId
from strobe.model.types import FIRST_NODES

_SAME_NAME_MAX: Final = 8
_DECLARABLE: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE, dw.ENUMERATION_TYPE})


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one request. `parts`: members, enumerators and the like of all types together. `end`: on the monotonic clock."""

    nodes: int = 4000
    depth: int = 64
    parts: int = 200_000
    end: float = math.inf


class Numbering:
    """`cut` counts what limits left out."""

    def __init__(self, limits: Limits, index: TypeIndex) -> None:
        self.limits = limits
        self.cut = 0
        self.nodes: list[Node | None] = list(FIRST_NODES)
        self.dynamic: dict[tuple[bool, int], bool] = {}  # classes with a vtable pointer
        self._names = TypeNames()
        self._index = index
        self._numbers: dict[tuple[bool, int], TypeId] = {}
        self._waiting: deque[tuple[TypeId, Entry, int]] = deque()
        self._depth = 0
        self._parts = 0

    def number(self, entry: Entry | None) -> TypeId:
        """Raises DwarfError where the entry's own bytes are malformed."""
        found = self.resolved(entry)
        if entry is None or found is None:
            return VOID
        keys = {key_of(entry), key_of(found)}
        for key in keys:
            if key in self._numbers:
                return self._numbers[key]
        if len(self.nodes) >= self.limits.nodes or self._depth >= self.limits.depth or time.monotonic() > self.limits.end:
            self.cut += 1
            return CUT
        number = self.add(None)
        self._numbers.update(dict.fromkeys(keys, number))
        self._waiting.append((number, found, self._depth + 1))
        return number

    def add(self, node: Node | None) -> TypeId:
        """A number for a type that has no entry of its own."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def next(self) -> tuple[TypeId, Entry] | None:
        """What is to be described next: nearest first, so that a limit leaves out what is farthest."""
        if not self._waiting:
            self._depth = 0
            return None
        number, entry, self._depth = self._waiting.popleft()
        return number, entry

    def resolved(self, entry: Entry | None) -> Entry | None:
        """The definition, where the entry only declares a type that some unit defines."""
        found = defined(entry)
        if found is not None and found.tag in _DECLARABLE and found.has(dw.DECLARATION):
            return self._index.definition_of(found, self.limits.end) or found
        return found

    def room_for_part(self) -> bool:
        """False: no more members and the like in this request."""
        self._parts += 1
        if self._parts <= self.limits.parts:
            return True
        self.cut += 1
        return False

    def name(self, entry: Entry | None) -> str:
        return self._names.name(entry)

    def linkage_name(self, declared: Entry) -> str | None:
        """Of a variable; LLVM tells a static member's only where it is defined: for one of a type unit, that is in another unit."""
        places = [declared]
        if declared.unit.signature is None:
            places.append(self._index.variable_definition(declared))
        elif not declared.has(dw.LINKAGE_NAME) and not declared.has(dw.CONST_VALUE):
            found = islice(self._index.variables(variable_name(declared), self.limits.end), _SAME_NAME_MAX)
            places += [self._index.variable_definition(entry) for entry in found if entry.unit.signature is None]
        names = (entry.text(at) for entry in places for at in (dw.LINKAGE_NAME, dw.MIPS_LINKAGE_NAME))
        return next((name for name in names if name is not None), None)

    @staticmethod
    def language(entry: Entry) -> Language:
        return language_of(entry.unit) or ""


def key_of(entry: Entry) -> tuple[bool, int]:
    """DWARF 4's type units count their offsets in a section of their own."""
    return entry.unit.signature is not None, entry.offset
