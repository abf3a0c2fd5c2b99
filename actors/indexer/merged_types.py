"""Type tables of several files as one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from strobe.model.type_nodes import Node, TypeId
from strobe.model.types import FIRST_NODES, TypeTable

_NUMBERS: Final = frozenset({"TypeId", "TypeId | None"})
_MANY: Final = "tuple[TypeId, ...]"


class MergedTypes:
    """Numbers of a table that was added count `first` higher, but for those that every table has."""

    def __init__(self) -> None:
        self._nodes: list[Node] = list(FIRST_NODES)
        self._cut = 0

    def add(self, table: TypeTable) -> int:
        """`first`."""
        first = len(self._nodes) - len(FIRST_NODES)
        self._cut += table.cut
        own = table.nodes[len(FIRST_NODES) :]
        self._nodes += [_shifted(node, first) for node in own] if first else own
        return first

    def table(self) -> TypeTable:
        return TypeTable(tuple(self._nodes), self._cut)


def shifted_number(number: TypeId, first: int) -> TypeId:
    return number if number < len(FIRST_NODES) else number + first


def _shifted(row: Any, first: int) -> Any:
    """A node, or a row in one, with its numbers of types that much higher."""
    changed: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if field.type in _NUMBERS:
            changed[field.name] = None if value is None else shifted_number(value, first)
        elif field.type == _MANY:
            changed[field.name] = tuple(shifted_number(one, first) for one in value)
        elif is_dataclass(value):
            changed[field.name] = _shifted(value, first)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            changed[field.name] = tuple(_shifted(one, first) for one in value)
    return replace(row, **changed)
