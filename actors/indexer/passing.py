"""How a value of any type travels, and which registers and stack slots a function's values get in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from actors.indexer.abi import NOTHING, REFERENCE, Language, Passing, Piece, scalar
from actors.indexer.abi_aggregates import aggregate
from actors.indexer.abi_rust import rust_aggregate
from actors.indexer.dwarf.types import AGGREGATE_TAGS, strip
from actors.indexer.dwarf.unit import Entry

INTEGER_REGISTERS: Final = 6
SSE_REGISTERS: Final = 8


def passing(entry: Entry | None, language: Language) -> Passing:
    """Of a parameter or result of this type; None is void. Raises DwarfError."""
    found = strip(entry)
    if found is None:
        return NOTHING
    if found.tag not in AGGREGATE_TAGS:
        return scalar(found, language)
    return rust_aggregate(found) if language == "rust" else aggregate(found, language)


def returning(entry: Entry | None, language: Language) -> Passing:
    """Of a result. What has three pieces (Rust's pairs with an i128) older compilers have in three registers, newer ones behind a pointer; `parts`: so it
    is not known either whether the arguments begin with that. There are no four registers."""
    how = passing(entry, language)
    if len(how.pieces) <= 2:
        return how
    return REFERENCE if [piece.kind for piece in how.pieces] == ["integer"] * 4 else Passing("unknown", parts=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece of a value, or all of what lies on the stack, is at entry: integer register 0–5, SSE register 0–7, or bytes above the return address."""

    kind: Literal["integer", "sse", "stack"]
    number: int


class Registers:
    """Argument places in order of the parameters. `lost`: from here on nothing is known."""

    def __init__(self) -> None:
        self._integers = 0
        self._sses = 0
        self._stack = 0
        self.lost = False

    def take(self, how: Passing) -> tuple[Place, ...] | None:
        """The places of a value's pieces, or its one place on the stack; None for nothing, and from the first unknown on."""
        if self.lost or how.kind == "nothing":
            return None
        if how.kind == "unknown":
            self.lost = True
            return None
        if how.kind == "reference":
            return self._pieces((Piece("integer"),)) or (self._slot(8, 8),)
        found = self._pieces(how.pieces) if how.kind == "registers" else None
        if found is not None:
            return found
        if how.separate and not how.parts:
            return tuple(one for piece in how.pieces for one in self._pieces((piece,)) or (self._slot(8, 8),))
        if how.parts:
            self.lost = True
            return None
        return (self._slot(how.size, how.align),)

    def _pieces(self, pieces: tuple[Piece, ...]) -> tuple[Place, ...] | None:
        """Registers for all of them; None where there are too few, and then none is taken."""
        integers = sum(piece.kind == "integer" for piece in pieces)
        sses = len(pieces) - integers
        if self._integers + integers > INTEGER_REGISTERS or self._sses + sses > SSE_REGISTERS:
            return None
        return tuple(self._register(piece) for piece in pieces)

    def _register(self, piece: Piece) -> Place:
        if piece.kind == "integer":
            self._integers += 1
            return Place("integer", self._integers - 1)
        self._sses += 1
        return Place("sse", self._sses - 1)

    def _slot(self, size: int, align: int) -> Place:
        at = (self._stack + align - 1) // align * align
        self._stack = at + (size + 7) // 8 * 8
        return Place("stack", at)
