"""Texts and elements in rows: strings, vectors, deques."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import Opaque, TypeId
from strobe.values import texts
from strobe.values.arrays import COUNT_MAX, more, row
from strobe.values.forms import Bits, Blocks, Ring, Sequence, Text
from strobe.values.inside import WORD, FormShape, number_in, unread, word_in
from strobe.values.memory import Missing
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_BLOCKS_MAX: Final = 1000  # read of one deque


class TextShape(FormShape):
    """`is_guess`: of a type that is declared only; another library's would be made otherwise."""

    __slots__ = ("form", "is_guess")
    is_key = True

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Text) -> None:
        super().__init__(shapes, number, size)
        self.form, self.is_guess = form, isinstance(shapes.node(number), Opaque)

    def shown(self, view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        form, unit = self.form, self.form.unit
        length = None if form.length is None else number_in(form.length, data, at)
        if not form.inline:
            if length is not None and length > COUNT_MAX:
                return self.invalid()
            start = word_in(data, at + form.data)
            text = view.text(texts.at_pointer(view, start + form.skip if start else 0, unit, length))
            return f"<{self.name}>" if self.is_guess and isinstance(text, str) and text.startswith("<unreadable") else text
        raw = data[at + form.data : at + self.size]
        raw = raw[: len(raw) - len(raw) % unit]
        if length is None:
            return texts.said(texts.ended(raw, unit)[0], unit, cut=False)
        if length * unit > len(raw):
            return self.invalid()
        limit = view.limits.text
        return view.text(texts.said(raw[: min(length, limit) * unit], unit, cut=length > limit))


class SequenceShape(FormShape):
    __slots__ = ("form", "unit")

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Sequence) -> None:
        super().__init__(shapes, number, size)
        self.form = form
        self.unit = form.stride if form.as_text and form.stride in texts.CODECS else None

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        form = self.form
        start = address + form.data if form.inline else word_in(data, at + form.data)
        count = self._count(data, at, start)
        if count is None or (start == 0 and count):
            return self.invalid()
        if self.unit is not None:
            return view.text(self._text(view, data, at, start, count, self.unit))
        if count == 0:
            return []
        if form.inline:
            inside = form.data + count * form.stride <= self.size
            return row(view, form.element, start, count, form.stride, depth, data, at + form.data) if inside else self.invalid()
        return row(view, form.element, start, count, form.stride, depth - 1) if depth > 0 else [more(count)]

    def _count(self, data: bytes, at: int, start: int) -> int | None:
        form = self.form
        if form.count is not None:
            count = number_in(form.count, data, at)
        elif form.end is not None and form.stride > 0:
            count, rest = divmod(word_in(data, at + form.end) - start, form.stride)
            if rest:
                return None
        else:
            return None
        return count if 0 <= count <= COUNT_MAX else None

    def _text(self, view: View, data: bytes, at: int, start: int, count: int, unit: int) -> Json:
        shown = min(count, view.limits.text)
        if self.form.inline:
            begin = at + self.form.data
            return texts.of_characters(data[begin : begin + shown * unit], unit, cut=shown < count)
        raw, missing = view.prefix(start, shown * unit)
        if missing is not None and not raw:
            return str(missing)
        return texts.of_characters(raw[: len(raw) - len(raw) % unit], unit, cut=missing is not None or shown < count)


class BitsShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Bits) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        form = self.form
        start = address + form.data if form.inline else word_in(data, at + form.data)
        if form.count is not None:
            count = number_in(form.count, data, at)
        else:
            last = 0 if form.end_bit is None else number_in(form.end_bit, data, at)
            count = (word_in(data, at + (form.end or 0)) - start) * 8 + last
        if not 0 <= count <= COUNT_MAX or (start == 0 and count):
            return self.invalid()
        if count == 0:
            return []
        if depth <= 0 and not form.inline:
            return [more(count)]
        shown = min(count, view.limits.elements)
        if form.inline:
            raw, missing = data[at + form.data : at + self.size], None
        else:
            raw, missing = view.prefix(start, (shown + 7) // 8)
        bits = int.from_bytes(raw, "little")
        found: list[Json] = [bool(bits >> index & 1) for index in range(min(shown, 8 * len(raw)))]
        if missing is not None:
            return unread(missing, found, count) if found else str(missing)
        return found if shown == count else [*found, more(count - shown)]


class BlocksShape(FormShape):
    """Blocks of elements, and a row of pointers to them."""

    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Blocks) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        form = self.form
        if form.stride <= 0 or form.per_block <= 0:
            return self.invalid()
        place = self._iterators(data, at) if form.finish is not None else self._mapped(data, at)
        if place is None:
            return self.invalid()
        pointers, skip, count = place
        if count == 0:
            return []
        return self._blocks(view, pointers, skip, count, depth - 1) if depth > 0 else [more(count)]

    def _iterators(self, data: bytes, at: int) -> tuple[int, int, int] | None:
        """libstdc++: (where the pointer to the first block is, elements left out of it, how many elements)."""
        form = self.form
        start, finish = at + form.start, at + (form.finish or 0)
        cur, first, node = word_in(data, start), word_in(data, start + WORD), word_in(data, start + 3 * WORD)
        end_cur, end_first, end_node = word_in(data, finish), word_in(data, finish + WORD), word_in(data, finish + 3 * WORD)
        skip, rest = divmod(cur - first, form.stride)
        last, end_rest = divmod(end_cur - end_first, form.stride)
        blocks, odd = divmod(end_node - node, WORD)
        count = blocks * form.per_block + last - skip
        is_sound = not (rest or end_rest or odd) and 0 <= skip <= form.per_block and 0 <= last <= form.per_block and 0 <= count <= COUNT_MAX
        return (node, skip, count) if is_sound else None

    def _mapped(self, data: bytes, at: int) -> tuple[int, int, int] | None:
        """libc++: the same."""
        form = self.form
        if form.first is None or form.count is None:
            return None
        first, count = number_in(form.first, data, at), number_in(form.count, data, at)
        if first > COUNT_MAX or count > COUNT_MAX:
            return None
        return word_in(data, at + form.start) + first // form.per_block * WORD, first % form.per_block, count

    def _blocks(self, view: View, pointers: int, skip: int, count: int, depth: int) -> Json:
        form = self.form
        found: list[Json] = []
        shown = min(count, view.limits.elements)
        for _ in range(_BLOCKS_MAX):
            if len(found) >= shown:
                break
            block = view.word(pointers)
            if isinstance(block, Missing):
                return unread(block, found, count) if found else str(block)
            taken = min(shown - len(found), form.per_block - skip)
            part = row(view, form.element, block + skip * form.stride, taken, form.stride, depth)
            found += part
            if len(part) != taken or (part and isinstance(part[-1], str) and part[-1].startswith("<")):
                break
            pointers, skip = pointers + WORD, 0
        return found if len(found) >= count else [*found, more(count - len(found))]


class RingShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Ring) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        form = self.form
        start = word_in(data, at + form.data)
        capacity, first, count = (number_in(one, data, at) for one in (form.capacity, form.first, form.count))
        if count == 0:
            return []
        if form.stride == 0:
            capacity = max(capacity, count)  # elements without a size need no room
        if not count <= capacity <= COUNT_MAX or first >= capacity or form.stride < 0:
            return self.invalid()
        if depth <= 0:
            return [more(count)]
        shown = min(count, view.limits.elements)
        head = min(shown, capacity - first)
        found = row(view, form.element, start + first * form.stride, head, form.stride, depth - 1)
        if len(found) == head and shown > head:
            found += row(view, form.element, start, shown - head, form.stride, depth - 1)
        return found if len(found) != shown or shown == count else [*found, more(count - shown)]
