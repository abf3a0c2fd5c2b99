"""Smart pointers, and values whose type only the program's code knows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values.arrays import COUNT_MAX, row
from strobe.values.forms import Erased, Number, Owner
from strobe.values.inside import WORD, FormShape, number_in, word_in
from strobe.values.memory import Missing
from strobe.values.pointers import followed
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_POINTER_TO_FUNCTION: Final = re.compile(r"\(\*\)\s*\(")
_ONES: Final = (1 << 64) - 1  # a Weak that never had an owner
_HANDLERS: Final = ("_Function_handler<", "__function::__func<", "__func<")


class OwnerShape(FormShape):
    __slots__ = ("form", "target")

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Owner) -> None:
        super().__init__(shapes, number, size)
        self.form, self.target = form, shapes.resolved(form.target)

    def shown(self, view: View, data: bytes, at: int, _address: int, depth: int, /) -> Json:
        form = self.form
        pointer = word_in(data, at + form.pointer)
        if pointer in (0, _ONES):
            return None
        counts = {} if form.control is None else counted(view, word_in(data, at + form.control), form.counts)
        if counts and next(iter(counts.values())) == 0:
            return "<expired>"
        name = self.shapes.name(form.target)
        if form.length is None:
            return followed(view, pointer + form.skip, self.target, depth, name, extra=counts)
        count = number_in(form.length, data, at)
        if count > COUNT_MAX:
            return self.invalid()
        if depth <= 0:
            return f"<{count} {name} at {pointer:#x}>"
        stride = self.shapes.bytes_of(form.target)
        return {"@": f"{pointer + form.skip:#x}", **counts, "*": row(view, form.target, pointer + form.skip, count, stride, depth - 1)}


def counted(view: View, block: int, counts: tuple[tuple[str, Number], ...]) -> dict[str, Json]:
    """What is counted in the block at this address; nothing where it is not there."""
    found: dict[str, Json] = {}
    for name, number in counts if block else ():
        raw = view.fetch(block + number.offset, number.size)
        if isinstance(raw, Missing):
            return {}
        found[f"@{name}"] = number_in(replace(number, offset=0), raw, 0)
    return found


class ErasedShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Erased) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        code = word_in(data, at + self.form.code)
        if code == 0:
            return None
        if self.form.kind == "function":
            return self._function(view, code, data, at)
        return self._any(view, code, data, at, address, depth)

    def _any(self, view: View, code: int, data: bytes, at: int, address: int, depth: int) -> Json:
        number = view.dynamic(code)
        manager = (view.symbols.function(code) if view.symbols else None) or ""
        if number is None:
            return f"<{self.name} {code:#x}{' ' + manager if manager else ''}>"
        size = self.shapes.bytes_of(number)
        is_boxed = size > self.form.small or "_Manager_external" in manager or "_LargeHandler" in manager
        if is_boxed and "_Manager_internal" not in manager and "_SmallHandler" not in manager:
            pointer = word_in(data, at + self.form.offset)
            value = view.place(number, pointer, depth - 1) if depth > 0 else f"<{self.shapes.name(number)} at {pointer:#x}>"
        else:
            value = self.inner(view, number, self.form.offset, data, at, address, depth)
        return {self.shapes.name(number): value}

    def _function(self, view: View, code: int, data: bytes, at: int) -> Json:
        """Which function, or which class of function object, is called."""
        if self.form.boxed:
            return self._object(view, code)
        name = view.symbols.function(code) if view.symbols else None
        if name is None:
            return f"<function at {code:#x}>"
        target = _handled(name)
        if target is not None and _POINTER_TO_FUNCTION.search(target):
            return view.function(word_in(data, at + self.form.offset))
        return f"<{target or name}>"

    def _object(self, view: View, address: int) -> Json:
        """The function object at this address, whose vtable tells its class; what it calls comes right after."""
        vtable = view.word(address)
        number = None if isinstance(vtable, Missing) else view.dynamic(vtable)
        if number is None:
            return f"<{self.name}>"
        target = _handled(self.shapes.name(number))
        if target is not None and _POINTER_TO_FUNCTION.search(target):
            function = view.word(address + WORD)
            return str(function) if isinstance(function, Missing) else view.function(function)
        return f"<{target or self.shapes.name(number)}>"


def _handled(name: str) -> str | None:
    """What is called by the library's function or class `name`: libstdc++'s has it as its last template argument, libc++'s as its first."""
    for handler in _HANDLERS:
        start = name.find(handler)
        if start >= 0:
            parts = _arguments(name, start + len(handler))
            return None if not parts else parts[-1] if handler == _HANDLERS[0] else parts[0]
    return None


def _arguments(name: str, at: int) -> list[str]:
    """Template arguments from `at` on to the closing bracket."""
    depth, start = 0, at
    parts: list[str] = []
    for index in range(at, len(name)):
        mark = name[index]
        if mark in "<([{":
            depth += 1
        elif mark in ")]}" or (mark == ">" and name[index - 1] != "-" and depth > 0):
            depth -= 1
        elif depth == 0 and mark in ",>":
            parts.append(name[start:index].strip())
            start = index + 1
            if mark == ">":
                return parts
    return []
