"""What values show (structures, what pointers lead to), compared for calls whose numbers and texts are the same."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from actors.store.divergence.functions import Compared, Functions
from actors.store.divergence.same import Difference, Numbers, differences
from actors.store.divergence.stream import Part
from actors.store.query.captured import CallOf, CallValues
from actors.store.query.typed_values import TypedValues
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND
from actors.store.session_file import SessionFile

CALLS_AT_ONCE: Final = 256
KNOWN_MAX: Final = 50_000  # pairs of captured contents that were the same


@dataclass(slots=True)
class Side:
    """One session, in a read transaction of its own."""

    session_id: str
    file: SessionFile
    reading: Reading
    typed: TypedValues

    def values(self) -> CallValues:
        return CallValues(self.file, self.reading, self.typed)


class Deep:
    """`until`: when (time.monotonic) it stops; `left` counts the events that were not compared since, `shown` those that were."""

    def __init__(self, ours: Side, theirs: Side, functions: Functions, numbers: Numbers, until: float) -> None:
        self._ours, self._theirs = ours, theirs
        self._functions, self._numbers = functions, numbers
        self._until = until
        self._same: set[tuple[bytes, bytes]] = set()
        self.left = self.shown = 0

    def first(self, ours: Part, theirs: Part, end: int) -> int | None:
        """The first row below `end` whose values differ."""
        rows = np.flatnonzero(ours.deep[:end] & theirs.deep[:end])
        for start in range(0, rows.size, CALLS_AT_ONCE):
            if time.monotonic() > self._until:
                self.left += int(rows.size) - start
                return None
            some = rows[start : start + CALLS_AT_ONCE].tolist()
            here = [call_at(self._ours, ours, row) for row in some]
            there = [call_at(self._theirs, theirs, row) for row in some]
            our_values, their_values = self._ours.values(), self._theirs.values()
            our_values.prepare(here)
            their_values.prepare(there)
            for row, one, other in zip(some, here, there, strict=True):
                self.shown += 1
                if not self._are_same(one, our_values, other, their_values):
                    return int(row)
        return None

    def of(self, ours: Part, theirs: Part, row: int) -> list[Difference]:
        """In what two events of the same function differ."""
        one, other = call_at(self._ours, ours, row), call_at(self._theirs, theirs, row)
        our_values, their_values = self._ours.values(), self._theirs.values()
        our_values.prepare([one])
        their_values.prepare([other])
        return self._differences(one, our_values, other, their_values)

    def _are_same(self, one: CallOf, our_values: CallValues, other: CallOf, their_values: CallValues) -> bool:
        contents = _content(one, our_values), _content(other, their_values)
        if contents in self._same:
            return True
        if self._differences(one, our_values, other, their_values):
            return False
        if len(self._same) >= KNOWN_MAX:
            self._same.clear()
        self._same.add(contents)
        return True

    def _differences(self, one: CallOf, our_values: CallValues, other: CallOf, their_values: CallValues) -> list[Difference]:
        here = _shown(one, our_values, self._ours, self._functions.ours)
        there = _shown(other, their_values, self._theirs, self._functions.theirs)
        return differences(here, {name: value for name, value in there.items() if name in here}, self._numbers)


def call_at(side: Side, part: Part, row: int) -> CallOf:
    columns: dict[str, Any] = {"hook": int(part.hook[row]), "flags": int(part.flags[row])}
    values = [int(bits) if known else None for bits, known in zip(part.bits[row].tolist(), part.known[row].tolist(), strict=True)]
    number = int(part.n[row])
    if leaves(int(part.code[row])):
        return CallOf(None, number, {**columns, "ret": values[-1]})
    return CallOf(number, None, columns | {f"a{k}": values[k] for k in range(side.file.value_columns)})


def leaves(code: int) -> bool:
    return code < 0 or bool(code & 1)


def function_of(code: int) -> int:
    return (-code - 2) // 2 if code < 0 else code // 2


def _content(call: CallOf, values: CallValues) -> bytes:
    """A digest of all that was captured of it."""
    captured = values.captured_argument(call, 0) if call.entered is not None else values.captured_result(call)
    digest = hashlib.blake2b(captured.payload or b"", digest_size=16)
    digest.update(repr((call.left is None, sorted(call.columns.items()))).encode())
    return digest.digest()


def _shown(call: CallOf, values: CallValues, side: Side, compared: dict[int, Compared]) -> dict[str, Any]:
    """By name, what is compared of an enter or an exit."""
    number = call.columns["hook"]
    hook, skipped = side.file.hooks[number], compared[number].skipped
    if call.left is not None:
        if call.columns["flags"] & UNWOUND:
            return {"exception": values.exception(call)}
        result = result_of(hook.plan)
        return {} if result is None or "ret" in skipped else {"ret": values.result(call, hook, result)}
    shown = ((value.name, values.argument(call, hook, position)) for position, value in enumerate(hook.plan.arguments))
    return {name or f"#{position}": value for position, (name, value) in enumerate(shown) if name not in skipped}
