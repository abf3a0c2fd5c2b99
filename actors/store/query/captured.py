"""What calls were given and what they returned or threw, for the rows of a page: fetched for all of them at once, then one by one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from actors.store.query.typed_values import Captured, TypedValues
from actors.store.reading import Reading
from actors.store.scalars import result_of
from actors.store.schema import UNWOUND, VALUE_COLUMNS
from actors.store.session_file import SessionFile
from strobe.lanes.layout import StringState
from strobe.model.probe import Hook, Value

Columns = dict[str, Any]
NEAR: Final = 4  # numbers for each one wanted: reading the others too costs less than picking out
_STRING: Final = struct.Struct("<HHB")  # layout.STRING
_TYPE_AT: Final = 0  # where the payload of a call that an exception left holds descriptors of its type's name and of its message
_MESSAGE_AT: Final = 8


@dataclass(frozen=True, slots=True)
class CallOf:
    """An event's call. `entered`: the number of its enter, `left` of its exit (None: not known, or not asked for).

    `columns` has hook and flags, and for what is asked a0, a1 … of the enter (else they are fetched) and ret of the exit.
    """

    entered: int | None
    left: int | None
    columns: Columns


class CallValues:
    """For one query, in the read transaction that `reading` is. `prepare` before asking."""

    def __init__(self, file: SessionFile, reading: Reading, typed: TypedValues) -> None:
        self._file = file
        self._run = reading.execute
        self._typed = typed
        self._texts: dict[int, str] = {}
        self._more: dict[tuple[int, int], int] = {}
        self._enters: dict[int, Columns] = {}
        self._payloads: dict[int, bytes] = {}

    def prepare(self, calls: Sequence[CallOf]) -> None:
        """Fetches what arguments and results of these calls need besides their rows."""
        self._fetch_enters([call.entered for call in calls if call.entered is not None and "a0" not in call.columns])
        deep = [call.entered for call in calls if call.entered is not None and len(self._arguments_of(call)) > VALUE_COLUMNS]
        if deep:
            found = self._run(f"SELECT n, position, bits FROM more_values WHERE n IN ({_numbers(deep)})").fetchall()
            self._more |= {(n, position): bits for n, position, bits in found}
        self._fetch_payloads(number for call in calls for number in self._deep(call))
        ids = {bits for call in calls for bits in self._text_ids(call)}
        if ids:
            found = self._run(f"SELECT id, text, truncated FROM strings WHERE id IN ({_numbers(ids)})").fetchall()
            self._texts |= {number: text + "…" * cut for number, text, cut in found}

    def prepare_exceptions(self, calls: Sequence[CallOf]) -> None:
        """Only what `exception` needs."""
        self._fetch_payloads(call.left for call in calls if call.left is not None and call.columns["flags"] & UNWOUND)

    def arguments(self, call: CallOf, hook: Hook) -> list[dict[str, Any]] | None:
        """{name, type, value} of each; None where the enter is not known."""
        columns = self._entered(call)
        if columns is None:
            return None
        shown = [(value, self.argument(call, hook, position)) for position, value in enumerate(hook.plan.arguments)]
        return [{"name": value.name, "type": value.type_name, "value": one} for value, one in shown]

    def argument(self, call: CallOf, hook: Hook, position: int) -> Any:
        value = hook.plan.arguments[position]
        return self._typed.shown(hook, value, self.captured_argument(call, position), hook.plan.image, self._texts)

    def result(self, call: CallOf, hook: Hook, value: Value) -> Any:
        return self._typed.shown(hook, value, self.captured_result(call), hook.plan.exit_image, self._texts)

    def watched(self, call: CallOf, hook: Hook, *, entered: bool) -> dict[str, Any] | None:
        """What the watches of its enter or of its exit read, by label; None where there are none."""
        payload = self._payloads.get((call.entered if entered else call.left) or 0)
        return self._typed.watched(hook, payload, entered=entered) if hook.plan.watches and payload is not None else None

    def captured_argument(self, call: CallOf, position: int) -> Captured:
        columns = self._entered(call) or {}
        bits = columns.get(f"a{position}") if position < VALUE_COLUMNS else self._more.get((call.entered or 0, position))
        return Captured(bits, self._payloads.get(call.entered or 0))

    def captured_result(self, call: CallOf) -> Captured:
        return Captured(call.columns.get("ret"), self._payloads.get(call.left or 0))

    def exception(self, call: CallOf) -> dict[str, str] | None:
        """{type, message?} of what left the call, where that was recorded."""
        payload = self._payloads.get(call.left or 0)
        if payload is None or not call.columns["flags"] & UNWOUND:
            return None
        found = {"type": _text(payload, _TYPE_AT), "message": _text(payload, _MESSAGE_AT)}
        return {name: text for name, text in found.items() if text is not None} or None

    def _entered(self, call: CallOf) -> Columns | None:
        return call.columns if "a0" in call.columns else self._enters.get(call.entered or 0)

    def _arguments_of(self, call: CallOf) -> list[Value]:
        hook = self._file.hooks.get(call.columns["hook"])
        return hook.plan.arguments if hook else []

    def _fetch_enters(self, late: Sequence[int]) -> None:
        if late:
            values = "".join(f", a{k}" for k in range(self._file.value_columns))
            answer = self._run(f"SELECT n AS call{values} FROM raw_calls WHERE n IN ({_numbers(late)})")
            names = [column[0] for column in answer.description or []]
            self._enters |= {row[0]: dict(zip(names, row, strict=True)) for row in answer.fetchall()}

    def _deep(self, call: CallOf) -> Iterable[int]:
        """Numbers of its entries whose payloads are kept."""
        hook = self._file.hooks.get(call.columns["hook"])
        if hook is None:
            return
        kept = hook.plan.types is not None or bool(hook.plan.watches)
        if kept and call.entered is not None:
            yield call.entered
        if call.left is not None and (kept or call.columns["flags"] & UNWOUND):
            yield call.left

    def _fetch_payloads(self, numbers: Iterable[int]) -> None:
        wanted = sorted(set(numbers) - self._payloads.keys())
        if wanted and self._file.counts.snapshot().map.bytes_total:
            only = "" if wanted[-1] - wanted[0] < NEAR * len(wanted) else f" AND n IN ({_numbers(wanted)})"
            self._payloads |= dict(self._run(f"SELECT n, body FROM payloads WHERE n BETWEEN {wanted[0]} AND {wanted[-1]}{only}").fetchall())

    def _text_ids(self, call: CallOf) -> list[int]:
        hook = self._file.hooks.get(call.columns["hook"])
        if hook is None:
            return []
        known = self._entered(call) is not None
        bits = [self.captured_argument(call, position).bits for position, value in enumerate(hook.plan.arguments) if known and value.scalar == "cstring"]
        result = result_of(hook.plan)
        if result is not None and result.scalar == "cstring":
            bits.append(call.columns.get("ret"))
        return [number for number in bits if number is not None and number > 0]


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _text(payload: bytes, at: int) -> str | None:
    if at + _STRING.size > len(payload):
        return None
    offset, length, state = _STRING.unpack_from(payload, at)
    if state not in (StringState.OK, StringState.TRUNCATED) or offset + length > len(payload) or not length:
        return None
    text = payload[offset : offset + length].decode("utf-8", "replace")
    return f"{text}…" if state == StringState.TRUNCATED else text
