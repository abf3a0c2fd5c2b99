"""What a value is shown as (README.md), from its type and the memory it lies in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.model.types import TypeTable
from strobe.values.memory import Memory, Missing
from strobe.values.view import Json, Limits, Symbols, View

if TYPE_CHECKING:
    from strobe.values.registry import Formatters

__all__ = ["HAND_BASE", "Json", "Limits", "Reader", "Symbols"]
HAND_BASE: Final = 0xFFFF_FE00_0000_0000  # where bytes in hand are "mapped": no user address of x86_64
_DEFAULT: Final = Limits()


class Reader:
    """Never raises on damaged memory or types; its answers are bounded (view.VALUES_MAX values, Limits).

    Making one is cheap: what is worked out about types is kept by the formatters, for each table. A table must not be changed or made anew each time.
    """

    def __init__(self, table: TypeTable, memory: Memory, formatters: Formatters, limits: Limits = _DEFAULT, symbols: Symbols | None = None) -> None:
        self._shapes = formatters.shapes(table)
        self._memory, self._limits, self._symbols = memory, limits, symbols

    def at(self, number: TypeId, address: int) -> Json:
        """The object of type `number` at `address`."""
        return View(self._shapes, self._memory, self._limits, self._symbols).place(number, address, self._limits.depth)

    def of(self, number: TypeId, data: bytes) -> Json:
        """The object of type `number` whose bytes are `data`, wherever it was; at least as many as it has, those of a register may be more."""
        return View(self._shapes, _Hand(data, self._memory), self._limits, self._symbols).place(number, HAND_BASE, self._limits.depth)


class _Hand:
    """Bytes in hand before another memory."""

    __slots__ = ("_data", "_memory")

    def __init__(self, data: bytes, memory: Memory) -> None:
        self._data, self._memory = data, memory

    def read(self, address: int, size: int) -> bytes | Missing:
        at = address - HAND_BASE
        if not 0 <= at <= len(self._data):
            return self._memory.read(address, size)
        found = self._data[at : at + size]
        return found if len(found) == size else Missing("uncaptured", address + len(found))
