"""Arguments and locals of the frames of a saved stack, as far as its registers and memory hold them, as strobe/values shows values."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from actors.indexer.binary import Binary
from actors.indexer.dwarf import constants as dw
from actors.indexer.dwarf.abbreviations import DwarfError
from actors.indexer.dwarf.functions import origins
from actors.indexer.dwarf.live_scopes import LiveScope, function_at, live_scopes, name_of
from actors.indexer.dwarf.live_values import Held, LiveFrame
from actors.indexer.dwarf.type_graph import TypeGraph
from actors.indexer.dwarf.type_numbering import Limits as TypeLimits
from actors.indexer.dwarf.unit import Entry
from actors.indexer.unwind.walker import Memory as SavedMemory
from actors.indexer.unwind.walker import Step, Unreadable
from strobe.model.probe import Frame, Module, Variable
from strobe.model.type_nodes import TypeId
from strobe.values.memory import Missing
from strobe.values.reader import Limits, Reader
from strobe.values.registry import Formatters

FRAMES_MAX: Final = 16  # that get arguments
VARIABLES_MAX: Final = 64  # of one frame
BUDGET_S: Final = 3.0
NOT_CAPTURED: Final = "<not captured>"
OPTIMISED_OUT: Final = "<optimised out>"
_ARGUMENTS: Final = Limits(depth=1, elements=10, text=200, members=20)
_LOCALS: Final = Limits(depth=3, elements=50, text=500, members=50)


class _Reading:
    """The saved stack and read-only data for strobe/values' readers."""

    def __init__(self, saved: SavedMemory) -> None:
        self._saved = saved

    def read(self, address: int, size: int) -> bytes | Missing:
        try:
            return self._saved.read(address, size).to_bytes(size, "little")
        except Unreadable:
            return Missing("uncaptured", self._saved.end_within(address, size))


class _Names:
    """Of functions, for pointers to them."""

    def __init__(self, name: Callable[[int], str | None]) -> None:
        self._name = name

    def function(self, address: int, /) -> str | None:
        return self._name(address)

    def dynamic(self, address: int, /) -> TypeId | None:
        del address
        return None


@dataclass(slots=True)
class _Found:
    name: str
    type: TypeId
    held: Held


class FrameValues:
    """For one saved stack. `name` gives the name of the function that begins at an address."""

    def __init__(self, saved: SavedMemory, formatters: Formatters, name: Callable[[int], str | None]) -> None:
        self._saved, self._formatters = saved, formatters
        self._names = _Names(name)
        self._end = time.monotonic() + BUDGET_S
        self._graphs: dict[str, TypeGraph] = {}

    def add(self, frames: list[Frame], step: Step, module: Module, binary: Binary, *, local_of: Frame | None) -> list[Frame]:
        """The frames of one step (its inlined ones first) with their arguments; `local_of` with its locals too. As they are where there is no debug
        info, or it is damaged, or time is up."""
        if time.monotonic() > self._end or binary.dwarf is None or binary.finder is None or binary.types is None:
            return frames
        linked = step.address - module.bias - (0 if step.exact else 1)
        symbol = binary.addresses.find(linked)
        if symbol is None:
            return frames
        try:
            function = function_at(binary.dwarf, binary.finder, linked, linked - symbol[1], symbol[0])
            if function is None:
                return frames
            live = LiveFrame(function, linked, module.bias, step.cfa, step.registers, self._saved.read, Unreadable)
            scopes = live_scopes(function, linked)
            graph = self._graphs.setdefault(module.path, TypeGraph(binary.types, TypeLimits(nodes=4000, end=self._end)))
            if len(scopes) != len(frames):  # lines and scopes tell differently what was inlined: only the function itself is sure
                scopes = scopes[-1:]
            untouched = frames[: len(frames) - len(scopes)]
            done = [self._with(frame, scope, live, graph, frame is local_of) for frame, scope in zip(frames[len(untouched) :], scopes, strict=True)]
        except DwarfError:
            return frames
        return [*untouched, *done]

    def _with(self, frame: Frame, scope: LiveScope, live: LiveFrame, graph: TypeGraph, with_locals: bool) -> Frame:
        arguments = [self._find(one, live, graph) for one in scope.arguments[:VARIABLES_MAX]]
        inner = [one for one in scope.locals if _declared(one, frame.line)][:VARIABLES_MAX] if with_locals else []
        named: dict[str, _Found] = {}
        for one in inner:  # one of an inner block hides others of its name
            found = self._find(one, live, graph)
            named.setdefault(found.name, found)
        limits = _LOCALS if with_locals else _ARGUMENTS
        reader = Reader(graph.table(), _Reading(self._saved), self._formatters, limits, self._names)
        shown = [_shown(one, reader, graph) for one in arguments]
        update: dict[str, Any] = {"arguments": shown}
        if with_locals:
            update["locals"] = [_shown(one, reader, graph) for one in named.values()]
        return frame.model_copy(update=update)

    def _find(self, variable: Entry, live: LiveFrame, graph: TypeGraph) -> _Found:
        kind = next((one.reference(dw.TYPE) for one in origins(variable) if one.has(dw.TYPE)), None)
        return _Found(name_of(variable) or "?", graph.type(kind), live.find(variable))


def _declared(variable: Entry, line: int | None) -> bool:
    """Whether the source has come to the variable by then; of those without a line it is not known."""
    at = next((number for one in origins(variable) if (number := one.number(dw.DECL_LINE)) is not None), None)
    artificial = any(one.has(dw.ARTIFICIAL) for one in origins(variable))
    return not artificial and (at is None or line is None or at <= line)


def _shown(found: _Found, reader: Reader, graph: TypeGraph) -> Variable:
    name = graph.table()[found.type].name
    if found.held.address is not None:
        value = reader.at(found.type, found.held.address)
    elif found.held.data is not None:
        value = reader.of(found.type, found.held.data)
    else:
        value = OPTIMISED_OUT if found.held.gone else NOT_CAPTURED
    return Variable(name=found.name, type_name=name, value=value)
