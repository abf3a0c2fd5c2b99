"""Which form a type has: what formatters say about it."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Final

from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values import rust
from strobe.values.forms import Form
from strobe.values.shapes import Shapes

_TABLES_MAX: Final = 64  # type tables whose forms are kept


class Formatters:
    """Made once and kept: it remembers the forms and shapes of the types that it was asked about, for the tables asked last."""

    def __init__(self) -> None:
        self._tables: OrderedDict[int, tuple[TypeTable, Shapes, dict[TypeId, Form | None]]] = OrderedDict()

    @staticmethod
    @cache
    def built_in() -> Formatters:
        return Formatters()

    @staticmethod
    def of(project_root: Path | None) -> tuple[Formatters, list[str]]:
        """With the project's own, and warnings about what is wrong with those."""
        del project_root
        return Formatters.built_in(), []

    def form(self, table: TypeTable, number: TypeId) -> Form | None:
        """None: the type is shown as its language has it."""
        forms = self._kept(table)[2]
        if number not in forms:
            node = table.nodes[number] if 0 <= number < len(table) else None
            forms[number] = rust.form(table, number) if isinstance(node, Record) and node.language == "rust" else None
        return forms[number]

    def shapes(self, table: TypeTable) -> Shapes:
        return self._kept(table)[1]

    def _kept(self, table: TypeTable) -> tuple[TypeTable, Shapes, dict[TypeId, Form | None]]:
        kept = self._tables.get(id(table))
        if kept is None:
            kept = self._tables[id(table)] = (table, Shapes(table, self), {})
            if len(self._tables) > _TABLES_MAX:
                self._tables.popitem(last=False)
        return kept
