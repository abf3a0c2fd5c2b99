"""Which form a type has: what formatters say about it. A project's own win over those that come with Strobe."""

from __future__ import annotations

import fnmatch
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Final

from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values import rust
from strobe.values.building import build
from strobe.values.forms import Form
from strobe.values.places import stem
from strobe.values.rules import Rule, read_folder
from strobe.values.shapes import Shapes
from strobe.values.sound import sound

FOLDER: Final = Path(__file__).resolve().parent / "formatters"
PROJECT_FOLDER: Final = ".strobe/formatters"
_TABLES_MAX: Final = 64  # type tables whose forms are kept


class _Rules:
    """By name; those with a `*` are tried one by one."""

    def __init__(self, rules: list[Rule]) -> None:
        self._named: dict[str, list[Rule]] = {}
        self._patterns: list[tuple[str, Rule]] = []
        for rule in rules:
            for name in rule.names:
                if "*" in name:
                    self._patterns.append((name, rule))
                else:
                    self._named.setdefault(name, []).append(rule)

    def of(self, name: str) -> list[Rule]:
        short = stem(name)
        found = [*self._named.get(name, ()), *(self._named.get(short, ()) if short != name else ())]
        return found + [rule for pattern, rule in self._patterns if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(short, pattern)]


class Formatters:
    """Made once and kept: it remembers the forms and shapes of the types that it was asked about, for the tables asked last."""

    def __init__(self, sources: list[_Rules]) -> None:
        self._sources = sources
        self._tables: OrderedDict[int, tuple[TypeTable, Shapes, dict[TypeId, Form | None]]] = OrderedDict()

    @staticmethod
    @cache
    def built_in() -> Formatters:
        return Formatters([_built_in_rules()])

    @staticmethod
    def of(project_root: Path | None) -> tuple[Formatters, list[str]]:
        """With those of the project's `.strobe/formatters/*.toml`, and warnings: what is wrong with which file."""
        if project_root is None:
            return Formatters.built_in(), []
        rules, warnings = read_folder(project_root / PROJECT_FOLDER)
        return (Formatters([_Rules(rules), _built_in_rules()]) if rules else Formatters.built_in()), warnings

    def form(self, table: TypeTable, number: TypeId) -> Form | None:
        """None: the type is shown as its language has it."""
        _, shapes, forms = self._kept(table)
        if number not in forms:
            forms[number] = self._found(shapes, number)
        return forms[number]

    def opaque(self, name: str) -> tuple[int, int] | None:
        """(size, alignment) of a type that is declared only; None where no formatter knows it."""
        return next((rule.opaque for rules in self._sources for rule in rules.of(name) if rule.opaque is not None), None)

    def shapes(self, table: TypeTable) -> Shapes:
        return self._kept(table)[1]

    def _kept(self, table: TypeTable) -> tuple[TypeTable, Shapes, dict[TypeId, Form | None]]:
        kept = self._tables.get(id(table))
        if kept is None:
            kept = self._tables[id(table)] = (table, Shapes(sound(table), self), {})
            if len(self._tables) > _TABLES_MAX:
                self._tables.popitem(last=False)
        return kept

    def _found(self, shapes: Shapes, number: TypeId) -> Form | None:
        """By each name that the type has: those of its typedefs first."""
        for rules in self._sources:
            for named in shapes.chain(number):
                for rule in rules.of(shapes.table.nodes[named].name):
                    form = build(shapes, number, rule)
                    if form is not None:
                        return form
        last = shapes.resolved(number)
        node = shapes.table.nodes[last]
        return rust.form(shapes.table, last) if isinstance(node, Record) and node.language == "rust" else None


@cache
def _built_in_rules() -> _Rules:
    rules, wrong = read_folder(FOLDER)
    assert not wrong, wrong
    return _Rules(rules)
