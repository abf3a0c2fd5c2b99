"""Whether a type can have what a path asks for: told before anything is read, so that a misspelt member is an error and not an empty page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strobe.expression import Step
from strobe.model.type_nodes import VOID, Array, Opaque, Pointer, Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.forms import Blocks, BTree, Choice, Either, Erased, Form, Inner, Maybe, Nodes, Owner, Parts, Ring, Swiss, Time, Tree
from strobe.values.forms import Sequence as Row
from strobe.values.registry import Formatters

_CHAIN_MAX: Final = 32
Somewhere = tuple[TypeId, ...] | None  # types that a step can lead to; None: only the running program knows


@dataclass(frozen=True, slots=True)
class Problem:
    """The step (its index) that `type_name` has nothing for, and what it has."""

    step: int
    type_name: str
    names: tuple[str, ...]


class PathTypes:
    def __init__(self, table: TypeTable, formatters: Formatters) -> None:
        self._table = table
        self._form = formatters.form

    def problem(self, start: TypeId, steps: Sequence[Step]) -> Problem | None:
        """None: the path can be there."""
        types: Somewhere = (start,)
        for index, step in enumerate(steps):
            if types is None:
                return None
            found: list[TypeId] = []
            for number in types:
                led = self._step(number, step)
                if led is None:
                    return None
                found += led
            if not found:
                names = tuple(dict.fromkeys(name for number in types for name in self._names(number)))
                return Problem(index, self._table[types[0]].name, names)
            types = tuple(dict.fromkeys(found))
        return None

    def _step(self, number: TypeId, step: Step) -> Somewhere:
        if step.kind == "follow":
            return self._followed(self._peeled(number))
        if step.kind == "index":
            return self._element(self._peeled(number), step)
        return self._member(self._record(number), str(step.key))

    def _peeled(self, number: TypeId) -> TypeId:
        """What it is shown as: behind references, newtypes, optionals."""
        for _ in range(_CHAIN_MAX):
            node = self._table.stripped(number)
            form = self._form(self._table, number)
            if isinstance(node, Pointer) and node.form != "pointer":
                number = node.target
            elif isinstance(form, Inner | Maybe | Time):
                number = form.type
            else:
                break
        return number

    def _record(self, number: TypeId) -> TypeId:
        """Behind pointers and smart pointers too."""
        for _ in range(_CHAIN_MAX):
            number = self._peeled(number)
            node, form = self._table.stripped(number), self._form(self._table, number)
            if isinstance(node, Pointer):
                number = node.target
            elif isinstance(form, Owner):
                number = form.target
            else:
                break
        return number

    def _followed(self, number: TypeId) -> Somewhere:
        node, form = self._table.stripped(number), self._form(self._table, number)
        if isinstance(form, Owner):
            return (form.target,)
        if isinstance(node, Array):
            return (node.element,)
        return (node.target,) if isinstance(node, Pointer) and node.target != VOID else ()

    def _element(self, number: TypeId, step: Step) -> Somewhere:
        node, form = self._table.stripped(number), self._form(self._table, number)
        if isinstance(node, Array):
            return (node.element,) if len(node.counts) < 2 else None
        if isinstance(node, Pointer):
            return (node.target,) if node.target != VOID else ()
        match form:
            case Row() | Blocks() | Ring():
                return (form.element,)
            case Nodes() | Tree() | Swiss() if form.shown == "map":
                return self._mapped(form.element)
            case Nodes() | Tree() | Swiss():
                return (form.element,)
            case BTree():
                return (form.value if form.shown == "map" else form.key,)
            case Parts():
                parts = form.parts
                return (parts[step.key][0],) if isinstance(step.key, int) and 0 <= step.key < len(parts) else ()
            case Owner():
                return (form.target,) if form.length is not None else self._element(self._peeled(form.target), step)
            case None:
                return ()
            case _:
                return None  # characters, bits, what only its code knows

    def _mapped(self, pair: TypeId) -> Somewhere:
        """The value's type in a map's pair."""
        form = self._form(self._table, pair)
        if isinstance(form, Parts) and len(form.parts) == 2:
            return (form.parts[1][0],)
        found = self._table.member(pair, "second") or self._table.member(pair, "__1")
        return (found.type,) if found else None

    def _member(self, number: TypeId, name: str) -> Somewhere:
        node, form = self._table.stripped(number), self._form(self._table, number)
        if isinstance(form, Erased | Either) or (isinstance(node, Record) and node.polymorphic and not self._names_match(number, name)):
            return None
        if isinstance(form, Choice):
            return tuple(one for index, one in enumerate(form.types) if name in (self._table[one].name, str(index)))
        if isinstance(form, Parts):
            return (form.parts[int(name)][0],) if name.isdecimal() and int(name) < len(form.parts) else self._plain(number, name)
        return self._plain(number, name)

    def _plain(self, number: TypeId, name: str) -> Somewhere:
        node = self._table.stripped(number)
        if isinstance(node, Opaque):
            return ()
        if not isinstance(node, Record):
            return ()
        last = name.rpartition("::")[2]
        found = [member.type for member in self._table.members(number) if member.name == last]
        found += [static.type for static in node.statics if static.name == last]
        if node.variant_part is not None:
            for variant in node.variant_part.variants:
                for member in variant.members:
                    inner = self._table.member(member.type, last)
                    found += [member.type] if member.name == last else [inner.type] if inner else []
        return tuple(found) if found or not any(base.virtual for base in node.bases) else None

    def _names_match(self, number: TypeId, name: str) -> bool:
        return bool(self._plain(number, name))

    def _names(self, number: TypeId) -> list[str]:
        """What can be asked of it."""
        number = self._record(number)
        node, form = self._table.stripped(number), self._form(self._table, number)
        if isinstance(form, Choice):
            return [self._table[one].name for one in form.types]
        if not isinstance(node, Record) or _is_container(form):
            return []
        variants = node.variant_part.variants if node.variant_part else ()
        return [*(member.name for member in self._table.members(number)), *(one.name for variant in variants for one in variant.members)]


def _is_container(form: Form | None) -> bool:
    return form is not None and not isinstance(form, Parts)
