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
from actors.indexer.dwarf.scopes import scopes_of
from actors.indexer.dwarf.type_copies import copy_key
from actors.indexer.dwarf.type_distances import Distances
from actors.indexer.dwarf.type_index import TypeIndex, variable_name
from actors.indexer.dwarf.type_names import TypeNames
from actors.indexer.dwarf.types import defined
from actors.indexer.dwarf.unit import Entry
from strobe.model.type_nodes import CUT, VOID, Language, Node, TypeId
from strobe.model.types import FIRST_NODES

Key = tuple[object, ...]
_SAME_NAME_MAX: Final = 8
_RECORDS: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE})
_LIBRARIES: Final = ("std::", "alloc::", "core::", "hashbrown::")  # what their containers are made of is needed one pointer further
_EMPTY: Final = ("allocator<", "char_traits<", "less<", "hash<", "equal_to<", "_Select1st<", "_Identity<")  # of libstdc++: nothing is ever in them
_NOWHERE: Final = ("_IO_", "_Undefined_class", *_EMPTY)  # glibc's and libstdc++'s own: no program's debug info defines them, or nothing is in them
_DECLARABLE: Final = frozenset({dw.STRUCTURE_TYPE, dw.CLASS_TYPE, dw.UNION_TYPE, dw.ENUMERATION_TYPE})


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one request. `parts`: members, enumerators and the like of all types together. `end`: on the monotonic clock. `pointers`: records that are more
    pointers away from what was asked for are only named (`Opaque`). `statics`: static members count. `pauses`: what waits to be described at `end`
    goes on waiting; without it, what is first referred to after `end` is left out."""

    nodes: int = 4000
    depth: int = 64
    parts: int = 200_000
    end: float = math.inf
    pointers: float = math.inf
    statics: bool = True
    pauses: bool = False

    @property
    def search_end(self) -> float:
        """When a search for one definition is to end."""
        return math.inf if self.pauses else self.end


class Numbering:
    """`cut` counts what limits left out."""

    def __init__(self, limits: Limits, index: TypeIndex) -> None:
        self.limits = limits
        self.cut = 0
        self.nodes: list[Node | None] = list(FIRST_NODES)
        self.dynamic: dict[tuple[bool, int], bool] = {}  # classes with a vtable pointer
        self._names = TypeNames()
        self._index = index
        self._numbers: dict[Key, TypeId] = {}
        self._waiting: deque[tuple[TypeId, Entry, int]] = deque()
        self._depth = 0
        self._parts = 0
        self._distances = Distances()
        self._far: dict[TypeId, Entry] = {}  # records that are only named

    def number(self, entry: Entry | None, *, pointer: bool = False) -> TypeId:
        """`pointer`: it is what a pointer points to. Raises DwarfError where the entry's own bytes are malformed."""
        distance = self._distances.next(pointer)
        found = self.resolved(entry) if distance <= self.limits.pointers else defined(entry)
        if entry is None or found is None:
            return VOID
        keys: set[Key] = {key_of(entry), key_of(found)}
        if self.limits.pointers < math.inf and (copy := copy_key(found)) is not None:
            keys.add(copy)
        for key in keys:
            known = self._numbers.get(key)
            if known is not None:
                self._numbers.update(dict.fromkeys(keys, known))
                self._come_nearer(known, pointer)
                return known
        if len(self.nodes) >= self.limits.nodes or self._depth >= self.limits.depth or (not self.limits.pauses and time.monotonic() > self.limits.end):
            self.cut += 1
            return CUT
        number = self.add(None)
        self._numbers.update(dict.fromkeys(keys, number))
        self._waiting.append((number, found, self._depth + 1))
        self._distances.refer(number, pointer)
        return number

    def is_far(self, number: TypeId, entry: Entry) -> bool:
        """Whether a type that is to be described is only to be named; it waits then for a way to it that is shorter."""
        if self.limits.pointers == math.inf or entry.tag not in _RECORDS:
            return False
        if entry.has(dw.DECLARATION):
            if self._distances.of(number) > self.limits.pointers:
                self._far[number] = entry  # its definition was not looked for
            return False
        if (entry.text(dw.NAME) or "").startswith(_EMPTY) and scopes_of(entry).startswith("std::"):
            return True
        beyond = self._distances.of(number) - self.limits.pointers
        far = beyond > 0 and (beyond > 1 or not scopes_of(entry).startswith(_LIBRARIES))
        if far:
            self._far[number] = entry
        return far

    def _come_nearer(self, number: TypeId, pointer: bool) -> None:
        for nearer in self._distances.refer(number, pointer):
            entry = self._far.pop(nearer, None)
            if entry is not None:
                self._waiting.append((nearer, self.resolved(entry) or entry, self._depth + 1))

    def add(self, node: Node | None) -> TypeId:
        """A number for a type that has no entry of its own."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def next(self) -> tuple[TypeId, Entry] | None:
        """What is to be described next: nearest first, so that a limit leaves out what is farthest."""
        if not self._waiting:
            self.pause()
            return None
        number, entry, self._depth = self._waiting.popleft()
        self._distances.begin(number)
        return number, entry

    def pause(self) -> None:
        """What is referred to from now on is what was asked for."""
        self._depth = 0
        self._distances.begin(None)

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def resolved(self, entry: Entry | None) -> Entry | None:
        """The definition, where the entry only declares a type that some unit defines."""
        found = defined(entry)
        if found is not None and found.tag in _DECLARABLE and found.has(dw.DECLARATION) and not (found.text(dw.NAME) or "").startswith(_NOWHERE):
            return self._index.definition_of(found, self.limits.search_end) or found
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
            found = islice(self._index.variables(variable_name(declared), self.limits.search_end), _SAME_NAME_MAX)
            places += [self._index.variable_definition(entry) for entry in found if entry.unit.signature is None]
        names = (entry.text(at) for entry in places for at in (dw.LINKAGE_NAME, dw.MIPS_LINKAGE_NAME))
        return next((name for name in names if name is not None), None)

    @staticmethod
    def language(entry: Entry) -> Language:
        return language_of(entry.unit) or ""


def key_of(entry: Entry) -> tuple[bool, int]:
    """DWARF 4's type units count their offsets in a section of their own."""
    return entry.unit.signature is not None, entry.offset
