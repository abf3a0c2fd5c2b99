"""Walk steps of what only C++ classes have: objects that are larger than the class by which they are known, and bases whose place the vtable tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from strobe.lanes.layout import WalkFlag, WalkOp
from strobe.model.type_nodes import Record, TypeId
from strobe.model.types import TypeTable
from strobe.values.bundle import Code
from strobe.values.derived import Derived, derived_classes
from strobe.values.walk_steps import IN_PAGE, WORD_MAX, Condition, Step

if TYPE_CHECKING:
    from strobe.values.walk_programs import Programs

DERIVED_BYTES: Final = 2048  # of an object of a derived class that is larger than that
DYNAMIC_BYTES: Final = 192  # more than its class says, for an object that may be of a derived class
VTABLE_HEAD: Final = 16  # before where objects point: how far the whole object is, and its type's information


class ClassSteps:
    """`codes`: of classes."""

    def __init__(self, programs: Programs, table: TypeTable, codes: Sequence[Code]) -> None:
        self._programs = programs
        self._derived = derived_classes(table, codes)

    def virtual_bases(self, node: Record, at: int, depth: int) -> list[Step]:
        """Where they are says the vtable, before the place that the object points to."""
        bases = [(base.type, base.slot) for base in node.bases if base.slot is not None and base.slot < 0]
        if node.vtable is None or not bases:
            return []
        pointer = at + node.vtable
        found = [_vtable_head(pointer, max(VTABLE_HEAD, -min(slot for _, slot in bases)))]
        for base, slot in bases:
            if size := self._programs.size(base):
                found.append(Step(WalkOp.NEAR, pointer, size, self._programs.target(base, depth), 0, WalkFlag.TOLD, pointer, slot))
        return found

    def derived(self, number: TypeId, at: int, depth: int) -> list[Step]:
        """What more an object of a derived class leads to. Where a vtable is in its page tells it from most others, wherever the program was loaded."""
        node = self._programs.node(number)
        if not isinstance(node, Record) or node.vtable is None:
            return []
        own = set(self._programs.object(number, at, depth))
        found: list[Step] = []
        for one in self._derived.get(self._programs.resolved(number), ()):
            if one.top or self._programs.size(one.type) > self._programs.size(number) + DYNAMIC_BYTES:
                more = self._whole(one, at + node.vtable, at, depth)
            else:
                more = [step for step in self._programs.object(one.type, at, depth) if step not in own]
            test = Condition(at + node.vtable, 2, IN_PAGE, one.place & IN_PAGE, one.place & IN_PAGE)
            found += [test.step(self._programs.anonymous(more))] if more else []
        return found

    def _whole(self, derived: Derived, pointer: int, at: int, depth: int) -> list[Step]:
        """The object of which this one, at `at`, is only a base, or the beginning: DERIVED_BYTES of it at most."""
        size = self._programs.size(derived.type)
        target = self._programs.target(derived.type, depth)
        if size > DERIVED_BYTES:
            target = self._programs.anonymous([step for step in self._programs.object(derived.type, 0, depth) if self._programs.reads(step) <= DERIVED_BYTES])
        near = Step(WalkOp.NEAR, pointer, min(size, DERIVED_BYTES), target, 0, WalkFlag.SOFT, at - derived.top & WORD_MAX)
        return [near] if derived.is_told else [_vtable_head(pointer, VTABLE_HEAD), near]


def _vtable_head(pointer: int, before: int) -> Step:
    """The words before the place that the vtable pointer at `pointer` points to."""
    return Step(WalkOp.ARRAY, pointer, 8, limit=before // 8, flags=WalkFlag.END_POINTER, a=pointer, b=-before)
