"""Walk programs of types, by number: what has to be copied of an object so that all of it can be shown.

Contained objects (members, bases, arrays of records) are flattened into their owner's program. What is pointed to has a program of its own, shared by
all that point to it with as much depth left: types that contain pointers to themselves end by depth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from strobe.lanes.layout import WalkFlag, WalkOp
from strobe.model.type_nodes import Array, Member, Node, Pointer, Record, TypeId, VariantPart
from strobe.model.types import TypeTable
from strobe.values.behind import behind
from strobe.values.bundle import Code
from strobe.values.forms import Erased, Form, Number
from strobe.values.registry import Formatters
from strobe.values.walk_classes import DYNAMIC_BYTES, ClassSteps
from strobe.values.walk_forms import FormSteps
from strobe.values.walk_steps import BYTES_MAX, NOTHING, Condition, Step, condition

FLEXIBLE_BYTES: Final = 256
POINTER_BYTES: Final = 8
STEPS_MAX: Final = 256  # of one program
_NESTING_MAX: Final = 48


class Programs:
    """Of one type table."""

    def __init__(self, table: TypeTable, formatters: Formatters, elements: int, text: int, codes: Sequence[Code] = ()) -> None:
        self.elements = elements
        self.text = text
        self._table = table
        self._formatters = formatters
        self._shapes = formatters.shapes(table)
        self._made: list[tuple[Step, ...]] = []
        self._numbers: dict[tuple[TypeId, int, int, bool], int] = {}  # (type, depth, where it begins in the program's object, whether it may be derived)
        self._anonymous: dict[tuple[Step, ...], int] = {}
        self._waiting: deque[tuple[int, TypeId, int, int, bool]] = deque()
        self._plain: dict[tuple[TypeId, int], bool] = {}
        self._needed: dict[int, int] = {}
        self._nesting = 0
        self._form_steps = FormSteps(self)
        self._codes = codes
        self._classes = ClassSteps(self, table, [code for code in codes if code.role == "class"])
        self._behind: dict[tuple[str, str], list[Code]] = {}

    def __getitem__(self, program: int) -> tuple[Step, ...]:
        """Its steps. Only what `finish` has finished is whole."""
        return self._made[program]

    def finish(self) -> None:
        """Works out all programs that others refer to."""
        while self._waiting:
            program, number, depth, begin, derived = self._waiting.popleft()
            found = self.object(number, begin, depth)[:STEPS_MAX]
            room = begin + self.size(number)
            steps = [step for step in found if self.reads(step) <= room]
            more = self._classes.derived(number, begin, depth) if derived else []
            self._made[program] = (*steps, *(step for step in more if self.reads(step) <= room + DYNAMIC_BYTES))

    def kept(self, step: Step) -> bool:
        """False: it does nothing. Chains of steps that copy nothing themselves are finite: they follow how objects contain each other."""
        return step.copies or (step.target != NOTHING and any(map(self.kept, self._made[step.target])))

    def needs(self, program: int) -> int:
        """Bytes of its object that a program reads."""
        if program not in self._needed:
            self._needed[program] = max(map(self.reads, self._made[program]), default=0)
        return self._needed[program]

    def reads(self, step: Step) -> int:
        """Bytes of its object."""
        return max(step.reads, self.needs(step.target)) if step.op == WalkOp.WHEN and step.target != NOTHING else step.reads

    def target(self, number: TypeId, depth: int, begin: int = 0, *, derived: bool = False) -> int:
        """Number of the program for an object of the type that begins `begin` bytes into what the program runs on. `derived`: it may be one of a derived
        class, and DYNAMIC_BYTES more of it are there."""
        key = (self._shapes.resolved(number) if self.form(number) is None else number, depth, begin, derived)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._made)
            self._made.append(())
            self._waiting.append((found, number, depth, begin, derived))
        return found

    def anonymous(self, steps: list[Step]) -> int:
        """Number of the program of these steps."""
        if not steps:
            return NOTHING
        key = tuple(steps)
        found = self._anonymous.get(key)
        if found is None:
            found = self._anonymous[key] = len(self._made)
            self._made.append(key)
        return found

    def size(self, number: TypeId) -> int:
        """Bytes, as the reader has them; 0 for what has none."""
        return self._shapes.of(number).size or 0

    def alignment(self, number: TypeId) -> int:
        return self._shapes.alignment(number)

    def behind(self, form: Erased) -> list[Code]:
        """What a value of the form may be."""
        key = (form.kind, form.trait)
        if key not in self._behind:
            self._behind[key] = behind(form, self._codes)
        return self._behind[key]

    def node(self, number: TypeId) -> Node:
        return self._shapes.node(number)

    def resolved(self, number: TypeId) -> TypeId:
        return self._shapes.resolved(number)

    def form(self, number: TypeId) -> Form | None:
        return self._formatters.form(self._table, number)

    def object(self, number: TypeId, at: int, depth: int) -> list[Step]:
        """Steps for an object of the type, `at` bytes into what the program runs on."""
        if self._nesting > _NESTING_MAX or at > BYTES_MAX:
            return []
        self._nesting += 1
        try:
            form = self.form(number)
            if form is not None:
                return self._form_steps.of(form, at, depth, self.size(number))
            node = self._shapes.node(number)
            if isinstance(node, Pointer):
                return self._pointer(node, at, depth)
            if isinstance(node, Array):
                return self._array(node, at, depth)
            return self._record(node, at, depth)[:STEPS_MAX] if isinstance(node, Record) else []
        finally:
            self._nesting -= 1

    def point(self, at: int, number: TypeId, depth: int, skip: int = 0) -> list[Step]:
        """To follow the pointer at `at` to an object of the type, `skip` bytes behind where it points."""
        size = self.size(number)
        if not size:
            return []
        node = self._shapes.node(number)
        more = self._more(node) if isinstance(node, Record) else 0
        flags = WalkFlag.SOFT if more else WalkFlag(0)
        target = self.target(number, depth, skip, derived=more == DYNAMIC_BYTES)
        return [Step(WalkOp.POINT, at, min(skip + size + more, BYTES_MAX), target, flags=flags)]

    def each(self, element: TypeId, stride: int, limit: int, at: int, depth: int) -> list[Step]:
        """For `limit` elements in a row."""
        if limit <= 0 or stride <= 0 or self._is_plain(element, depth):
            return []
        if limit == 1:
            return self.object(element, at, depth)
        return [Step(WalkOp.EACH, at, stride, self.target(element, depth), limit)]

    def _is_plain(self, number: TypeId, depth: int) -> bool:
        """Whether nothing in an object of the type leads out of it."""
        key = (self._shapes.resolved(number), depth)
        if key not in self._plain:
            self._plain[key] = not self.object(number, 0, depth)
        return self._plain[key]

    def when(self, test: Number, low: int, high: int, at: int, steps: list[Step], *, inverted: bool = False) -> list[Step]:
        """`steps` where the number is in low..high; where no step can tell, always: what is copied needlessly does no harm."""
        if not steps:
            return []
        found = condition(test, low, high, at)
        if isinstance(found, Condition):
            return [found.step(self.anonymous(steps), inverted=inverted)]
        return [] if found is inverted else steps

    def _pointer(self, node: Pointer, at: int, depth: int) -> list[Step]:
        if node.size != POINTER_BYTES:
            return []
        unit = self._shapes.unit(node.target) if node.form == "pointer" else None
        if unit is not None:
            return [Step(WalkOp.TEXT, at, unit, limit=self.text)]
        return self.point(at, node.target, depth - 1) if depth > 0 else []

    def _array(self, node: Array, at: int, depth: int) -> list[Step]:
        size = self.size(node.element)
        return self.each(node.element, size, min(node.size // size, self.elements), at, depth) if size and node.size else []

    def _more(self, node: Record) -> int:
        """Bytes that may follow what a record's type says: a derived class's own, or a flexible array's."""
        if node.polymorphic:
            return DYNAMIC_BYTES
        last = self._shapes.node(node.members[-1].type) if node.members else None
        return FLEXIBLE_BYTES if isinstance(last, Array) and not last.size and node.form != "union" else 0

    def _record(self, node: Record, at: int, depth: int) -> list[Step]:
        found: list[Step] = self._classes.virtual_bases(node, at, depth)
        for base in node.bases:
            if base.offset is not None:
                found += self.object(base.type, at + base.offset, depth)
        found += self._members(node.members, at, depth)
        return found + (self._variants(node.variant_part, at, depth) if node.variant_part is not None else [])

    def _members(self, members: tuple[Member, ...], at: int, depth: int) -> list[Step]:
        found: list[Step] = []
        for member in members:
            if member.bit_size is None and not (member.artificial and member.name.startswith("_vptr")):
                found += self.object(member.type, at + member.offset, depth)
        return found

    def _variants(self, part: VariantPart, at: int, depth: int) -> list[Step]:
        """One WHEN for each range of each variant; the one that takes all other values is behind the NOTs of all the others'."""
        told_by = part.discriminant
        size = self.size(told_by.type) if told_by is not None else 0
        if told_by is None or size not in (1, 2, 4, 8):
            return [step for variant in part.variants for step in self._members(variant.members, at, depth)]
        test = Number(told_by.offset, size)
        taken = _merged([one for variant in part.variants for one in _unsigned(variant.values or (), size)])
        found: list[Step] = []
        for variant in part.variants:
            steps = self._members(variant.members, at, depth)
            if variant.values is None:
                for low, high in taken:
                    steps = self.when(test, low, high, at, steps, inverted=True)
                found += steps
            else:
                for low, high in _unsigned(variant.values, size):
                    found += self.when(test, low, high, at, steps)
        return found


def _unsigned(ranges: tuple[tuple[int, int], ...], size: int) -> list[tuple[int, int]]:
    """Ranges of a discriminant of `size` bytes as ranges of an unsigned number."""
    full = 1 << 8 * size
    found: list[tuple[int, int]] = []
    for low, high in ranges:
        if low < 0 <= high:
            found += [(low % full, full - 1), (0, high)]
        elif low <= high:
            found.append((low % full, high % full))
    return found


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found
