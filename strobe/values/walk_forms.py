"""Walk steps of each form: what has to be copied so that the reader finds all that the form speaks of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from strobe.lanes.layout import WalkFlag, WalkOp
from strobe.model.type_nodes import TypeId
from strobe.values import forms
from strobe.values.behind import BEHIND_MAX
from strobe.values.bundle import Code
from strobe.values.forms import Form, Number
from strobe.values.walk_steps import IN_PAGE, NOTHING, Condition, Step, is_plain

if TYPE_CHECKING:
    from strobe.values.walk_programs import Programs

ERASED_BYTES: Final = 256  # of a value whose type only the running program knows
GUESSED_BYTES: Final = 2048  # where a number of elements is told in a way that no step can read
NODE_KEYS: Final = 11  # of a node of Rust's maps
_OUTSIDE: Final = (forms.Bits, forms.Nodes, forms.Tree, forms.Blocks, forms.Ring, forms.Swiss, forms.BTree)  # have no element in the object itself


@dataclass(frozen=True, slots=True)
class _Row:
    """Elements `skip` bytes behind the pointer at `data`: as many as `count`, or the pointer at `end`, says, but at most `limit`."""

    data: int
    stride: int
    limit: int
    count: Number | None
    end: int | None = None
    skip: int = 0


class FormSteps:
    """`at`: where the object begins in what the program runs on. Elements outside of their container are one pointer away from it, texts none."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._by_form: dict[type[Any], Callable[[Any, int, int], list[Step]]] = {
            forms.Text: self._text,
            forms.Sequence: self._sequence,
            forms.Bits: self._bits,
            forms.Nodes: self._nodes,
            forms.Tree: self._tree,
            forms.Blocks: self._blocks,
            forms.Ring: self._ring,
            forms.Swiss: self._swiss,
            forms.BTree: self._b_tree,
            forms.Inner: self._inner,
            forms.Parts: self._parts,
            forms.Maybe: self._maybe,
            forms.Choice: self._choice,
            forms.Owner: self._owner,
            forms.Erased: self._erased,
            forms.Time: self._nothing,
            forms.Moment: self._nothing,
            forms.Internet: self._nothing,
            forms.ImaginaryParts: self._nothing,
            forms.Hidden: self._nothing,
        }

    def of(self, form: Form, at: int, depth: int, size: int) -> list[Step]:
        """`size`: of the object."""
        if isinstance(form, forms.Sequence) and form.inline:
            return self._inline(form, at, depth, size)
        if isinstance(form, forms.Either):
            return self._either(form, at, depth, size)
        if isinstance(form, _OUTSIDE):
            if depth <= 0:
                return []
            depth -= 1
        steps: list[Step] = self._by_form[type(form)](form, at, depth)
        return steps

    def _nothing(self, _form: Form, _at: int, _depth: int) -> list[Step]:
        return []

    def _text(self, form: forms.Text, at: int, _depth: int) -> list[Step]:
        if form.inline:
            return []
        if form.length is None:
            return [Step(WalkOp.TEXT, at + form.data, form.unit, limit=self._programs.text)]
        return self._counted(_Row(form.data, form.unit, self._programs.text, form.length, skip=form.skip), at)

    def _sequence(self, form: forms.Sequence, at: int, depth: int) -> list[Step]:
        limit = self._programs.text if form.as_text else self._programs.elements
        if depth <= 0 and not form.as_text:
            return []
        return self._counted(_Row(form.data, form.stride, limit, form.count, form.end), at, form.element, depth - 1)

    def _inline(self, form: forms.Sequence, at: int, depth: int, size: int) -> list[Step]:
        """All that there is room for in the object, where only the running program knows how many there are."""
        fixed = form.count.fixed if form.count is not None and form.count.size == 0 else self._programs.elements
        room = max(0, size - form.data) // form.stride if form.stride > 0 else 0
        return self._programs.each(form.element, form.stride, min(fixed, room, self._programs.elements), at + form.data, depth)

    def _bits(self, form: forms.Bits, at: int, _depth: int) -> list[Step]:
        """Its words as far as elements are shown. Where a pointer says that they end sooner, no more than the word it points to."""
        size = (self._programs.elements + 63) // 64 * 8
        if form.end is None:
            return [Step(WalkOp.POINT, at + form.data, size, flags=WalkFlag.SOFT)]
        words = self._counted(_Row(form.data, 1, size, None, form.end), at)
        return [*words, Step(WalkOp.POINT, at + form.end, 8, flags=WalkFlag.SOFT)]

    def _nodes(self, form: forms.Nodes, at: int, depth: int) -> list[Step]:
        flags = WalkFlag(0) if form.sentinel is None else WalkFlag.SENTINEL
        own = 0 if form.sentinel is None else at + form.sentinel
        target = self._programs.target(form.element, depth, form.value)
        return [Step(WalkOp.LIST, at + form.first, form.size, target, self._programs.elements, flags, form.next, own)]

    def _tree(self, form: forms.Tree, at: int, depth: int) -> list[Step]:
        target = self._programs.target(form.element, depth, form.value)
        return [Step(WalkOp.TREE, at + form.root, form.size, target, self._programs.elements, a=form.left, b=form.right)]

    def _blocks(self, form: forms.Blocks, at: int, depth: int) -> list[Step]:
        limit, target = self._programs.elements, self._programs.target(form.element, depth)
        if form.finish is not None:
            return [Step(WalkOp.BLOCKS, at + form.start, form.stride, target, limit, a=at + form.finish, b=form.per_block)]
        if form.first is None or form.count is None:
            return []
        both = at + form.first.offset | at + form.count.offset << 32
        return [Step(WalkOp.MAPPED, at + form.start, form.stride, target, limit, a=both, b=form.per_block)]

    def _ring(self, form: forms.Ring, at: int, depth: int) -> list[Step]:
        both = at + form.capacity.offset | at + form.first.offset << 32
        target = self._programs.target(form.element, depth)
        return [Step(WalkOp.RING, at + form.data, form.stride, target, self._programs.elements, a=both, b=at + form.count.offset)]

    def _swiss(self, form: forms.Swiss, at: int, depth: int) -> list[Step]:
        target = self._programs.target(form.element, depth)
        return [Step(WalkOp.SWISS, at + form.control, form.stride, target, self._programs.elements, a=at + form.mask.offset)]

    def _b_tree(self, form: forms.BTree, at: int, depth: int) -> list[Step]:
        parts = [self._in_node(form.key, form.keys, form.length, depth), self._in_node(form.value, form.values, form.length, depth)]
        target = self._programs.anonymous([step for part in parts for step in part])
        nodes = self._programs.elements
        return [Step(WalkOp.BTREE, at + form.root, form.leaf_size, target, nodes, a=at + form.height.offset, b=form.edges | form.length << 32)]

    def _in_node(self, kind: TypeId, at: int, length: int, depth: int) -> list[Step]:
        size = self._programs.size(kind)
        if not size or not self._programs.object(kind, 0, depth):
            return []
        return [Step(WalkOp.EACH, at, size, self._programs.target(kind, depth), NODE_KEYS, WalkFlag.COUNTED, a=length)]

    def _inner(self, form: forms.Inner, at: int, depth: int) -> list[Step]:
        return self._programs.object(form.type, at + form.offset, depth)

    def _parts(self, form: forms.Parts, at: int, depth: int) -> list[Step]:
        return [step for kind, offset in form.parts for step in self._programs.object(kind, at + offset, depth)]

    def _maybe(self, form: forms.Maybe, at: int, depth: int) -> list[Step]:
        return self._programs.when(form.there, 0, 0, at, self._programs.object(form.type, at + form.offset, depth), inverted=True)

    def _choice(self, form: forms.Choice, at: int, depth: int) -> list[Step]:
        found: list[Step] = []
        for index, kind in enumerate(form.types):
            found += self._programs.when(form.index, index, index, at, self._programs.object(kind, at + form.offset, depth))
        return found

    def _either(self, form: forms.Either, at: int, depth: int, size: int) -> list[Step]:
        then, otherwise = self.of(form.then, at, depth, size), self.of(form.otherwise, at, depth, size)
        when = self._programs.when
        return [*when(form.test, form.low, form.high, at, then), *when(form.test, form.low, form.high, at, otherwise, inverted=True)]

    def _owner(self, form: forms.Owner, at: int, depth: int) -> list[Step]:
        found: list[Step] = []
        if form.control is not None and form.counts:
            reach = max(number.offset + number.size for _, number in form.counts)
            found.append(Step(WalkOp.POINT, at + form.control, reach))
        if depth <= 0:
            return found
        if form.length is None:
            return found + self._programs.point(at + form.pointer, form.target, depth - 1, form.skip)
        stride = self._programs.size(form.target)
        return found + self._counted(_Row(form.pointer, stride, self._programs.elements, form.length, skip=form.skip), at, form.target, depth - 1)

    def _erased(self, form: forms.Erased, at: int, depth: int) -> list[Step]:
        """As each of the types that it may be, told by where in its page its code is; of others the first bytes."""
        known = self._programs.behind(form)
        found = [step for code in known for step in self._known(form, code, at, depth)]
        if form.kind == "function" or depth <= 0:
            return found
        if form.kind == "dyn" and form.skip:  # its counts too
            return [*found, Step(WalkOp.POINT, at + form.offset, form.skip + ERASED_BYTES, flags=WalkFlag.SOFT)]
        if form.kind == "dyn":
            return [*found, Step(WalkOp.DYNAMIC, at + form.offset, limit=ERASED_BYTES, a=at + form.code)]
        is_told = 0 < len(known) < BEHIND_MAX
        return found if is_told else [*found, Step(WalkOp.POINT, at + form.offset, ERASED_BYTES, flags=WalkFlag.SOFT)]

    def _known(self, form: forms.Erased, code: Code, at: int, depth: int) -> list[Step]:
        """For a value of the code's type."""
        size = self._programs.size(code.type)
        if code.role == "any":
            steps = self._programs.object(code.type, at + form.offset, depth) if size <= form.small else []
        elif depth <= 0:
            steps = []
        else:
            alignment = max(1, self._programs.alignment(code.type))
            steps = self._programs.point(at + form.offset, code.type, depth - 1, -(-form.skip // alignment) * alignment)
        test = Condition(at + form.code, 2, IN_PAGE, code.address & IN_PAGE, code.address & IN_PAGE)
        return [test.step(self._programs.anonymous(steps))] if steps else []

    def _counted(self, row: _Row, at: int, element: TypeId | None = None, depth: int = 0) -> list[Step]:
        """`at`: where the object begins that has the row's pointers and number. Without an element there is nothing to follow in them."""
        target = NOTHING if element is None else self._programs.target(element, depth)
        data, count = at + row.data, row.count
        if row.stride <= 0 or (count is None and row.end is None):
            return []
        if count is None:
            return [Step(WalkOp.ARRAY, data, row.stride, target, row.limit, WalkFlag.END_POINTER, at + (row.end or 0), row.skip)]
        if count.size in (4, 8) and is_plain(count):
            flags = WalkFlag.COUNT_32 if count.size == 4 else WalkFlag(0)
            return [Step(WalkOp.ARRAY, data, row.stride, target, row.limit, flags, at + count.offset, row.skip)]
        if count.size == 0:
            number = min(count.fixed, row.limit)
            each = [] if element is None else self._programs.each(element, row.stride, number, row.skip, depth)
            return [Step(WalkOp.POINT, data, row.skip + number * row.stride, self._programs.anonymous(each))] if number > 0 else []
        return [Step(WalkOp.POINT, data, row.skip + min(row.limit * row.stride, GUESSED_BYTES), flags=WalkFlag.SOFT)]
