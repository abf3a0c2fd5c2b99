"""A session's hooks as the decoder needs them: by id, and as look-up arrays from hook id to where its values lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from actors.store.scalars import NOTHING, Source, result_of
from strobe.lanes.layout import HOOK_CAPACITY
from strobe.model.probe import Hook, Value

POSITIONS_MAX: Final = 64  # arguments of one function that are looked at


def is_deep(value: Value | None) -> bool:
    """Its payload holds more than the number or text that has a column."""
    return value is not None and value.type is not None and value.home == "payload" and value.source == "payload" and value.scalar == "opaque"


class SourceMap:
    """Hook id → index in `sources`, for one argument position or for the result. Index 0: nothing captured."""

    def __init__(self) -> None:
        self.sources: list[Source] = [NOTHING]
        self.index = np.zeros(256, dtype=np.uint16)

    def put(self, hook: int, source: Source) -> None:
        if source not in self.sources:
            self.sources.append(source)
        if hook >= self.index.size:
            self._grown(hook)
        self.index[hook] = self.sources.index(source)

    def of(self, hooks: NDArray[np.int32], present: NDArray[np.int64]) -> list[tuple[Source, NDArray[np.int64] | None]]:
        """Groups of rows that share a source: (source, rows); rows None means all of them. Rows with nothing captured are in none.

        `present` are the ids that occur in `hooks` (it may hold others); all are known.
        """
        if len(self.sources) == 1 or not hooks.size:
            return []
        index = self.index if present.size == 0 or int(present[-1]) < self.index.size else self._grown(int(present[-1]))
        numbers = np.unique(index[present])
        if numbers.size == 1:
            return [(self.sources[int(numbers[0])], None)] if numbers[0] else []
        each = index.take(hooks)
        return [(self.sources[number], np.flatnonzero(each == number)) for number in numbers.tolist() if number]

    def _grown(self, hook: int) -> NDArray[np.uint16]:
        grown = np.zeros(max(hook + 1, 2 * self.index.size), dtype=np.uint16)
        grown[: self.index.size] = self.index
        self.index = grown
        return grown


class HookTable:
    """`keeps_enters`, `keeps_exits`: by hook id, whether the payloads of such entries are kept whole; `keeps_any`: of some hook."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self.hooks: dict[int, Hook] = {}
        self.known = np.zeros(HOOK_CAPACITY, dtype=np.bool_)
        self.arguments: list[SourceMap] = []
        self.results = SourceMap()
        self.keeps_enters = np.zeros(HOOK_CAPACITY, dtype=np.bool_)
        self.keeps_exits = np.zeros(HOOK_CAPACITY, dtype=np.bool_)
        self.keeps_any = False
        for hook in hooks:
            self.add(hook)

    def add(self, hook: Hook) -> None:
        self.hooks[hook.id] = hook
        self.known[hook.id] = True
        values = hook.plan.arguments[:POSITIONS_MAX]
        while len(self.arguments) < len(values):
            self.arguments.append(SourceMap())
        for position, value in enumerate(values):
            self.arguments[position].put(hook.id, Source.of(value))
        self.results.put(hook.id, Source.of(result_of(hook.plan)))
        plan = hook.plan
        if plan.types is not None or plan.watches:
            self.keeps_enters[hook.id] = plan.image is not None or any(map(is_deep, plan.arguments))
            self.keeps_exits[hook.id] = plan.exit_image is not None or is_deep(plan.result)
            self.keeps_any |= bool(self.keeps_enters[hook.id] or self.keeps_exits[hook.id])
