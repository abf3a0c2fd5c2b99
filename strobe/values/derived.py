"""Which classes an object of a class may be of: those that have it as a base and whose vtables are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.bundle import Code

DERIVED_MAX: Final = 24  # classes that an object of another is tried for
_BASES_MAX: Final = 64


@dataclass(frozen=True, slots=True, order=True)
class Derived:
    """`place`: where in its file the part that is the base points to; `top`: how far into the object it lies. `steps`: classes between the two.
    `is_told`: debug info says where the base is, too."""

    steps: int
    place: int
    top: int
    type: TypeId
    is_told: bool


def derived_classes(table: TypeTable, codes: Sequence[Code]) -> dict[TypeId, list[Derived]]:
    """By base, of those with the fewest classes between first."""
    parts: dict[TypeId, dict[int, int]] = {}  # class → top → place
    for code in codes:
        parts.setdefault(code.type, {}).setdefault(code.top, code.address)
    found: dict[TypeId, list[Derived]] = {}
    for number, places in parts.items():
        bases = list(_bases(table, number))
        counts = [base for base, _, _ in bases]
        for base, offset, steps in bases:
            tops = [offset] if offset is not None else [top for top in places if top]
            for top in tops:
                if top in places:
                    is_told = offset is not None and counts.count(base) == 1
                    found.setdefault(base, []).append(Derived(steps, places[top], top, number, is_told))
    return {base: sorted(ones)[:DERIVED_MAX] for base, ones in found.items()}


def _bases(table: TypeTable, number: TypeId) -> Iterator[tuple[TypeId, int | None, int]]:
    """(base, where it is, classes between); None in place of where: only the running program knows."""
    waiting: deque[tuple[TypeId, int | None, int]] = deque([(number, 0, 0)])
    for _ in range(_BASES_MAX):
        if not waiting:
            return
        whole, start, steps = waiting.popleft()
        node = table.stripped(whole)
        for base in node.bases if isinstance(node, Record) else ():
            one = (base.type, None if start is None or base.offset is None else start + base.offset, steps + 1)
            yield one
            waiting.append(one)
