"""Values as results: what debug_memory's reply says of each target, as short as the reply's budget asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from strobe.expression import Outcome, Scalar, Unavailable
from strobe.render.budget import json_tokens
from strobe.values.memory import Memory
from strobe.values.reader import Limits, Reader, Symbols
from strobe.values.registry import Formatters
from strobe.values.typed import TypedValue

Result = dict[str, Any]
# From all there is to the least: each is tried until the value fits.
_SHORTER: Final = ((100, 1024, 100), (40, 400, 60), (15, 200, 30), (6, 100, 15), (3, 60, 8), (1, 40, 4))
VALUES_SHARE: Final = 0.4  # of a reply's tokens: a value is in it twice, and there is more than values
LEAST_TOKENS: Final = 40
_NEXT: Final = "Correct this target and read again."


@dataclass(frozen=True, slots=True)
class Shower:
    """Of one look."""

    memory: Memory
    formatters: Formatters
    symbols: Symbols
    depth: int

    def value(self, value: TypedValue, limits: Limits) -> Any:
        reader = Reader(value.world.table, self.memory, self.formatters, limits, self.symbols)
        if value.at is not None and value.bits is None:
            return reader.at(value.type, value.at)
        raw = value.raw()
        return f"<{raw.reason}>" if isinstance(raw, Unavailable) else reader.of(value.type, raw)

    def limits(self, level: int) -> Limits:
        elements, text, members = _SHORTER[level]
        return Limits(max(0, self.depth - max(0, level - 2)), elements, text, members)

    def fitted(self, value: TypedValue, tokens: int) -> tuple[Any, bool]:
        """(what is shown, whether it was shortened to fit)."""
        shown = None
        for level in range(len(_SHORTER)):
            shown = self.value(value, self.limits(level))
            if json_tokens(shown) <= tokens:
                return shown, level > 0
        return shown, True


def share(tokens: int, targets: int) -> int:
    """Tokens that each value may take at least."""
    return max(LEAST_TOKENS, int(tokens * VALUES_SHARE) // max(1, targets))


def outcome_result(label: str, outcome: Outcome, show: Callable[[TypedValue], tuple[Any, bool]], next_step: str = "") -> Result:
    if isinstance(outcome, Unavailable):
        return failure(label, outcome.reason, next_step)
    if isinstance(outcome, Scalar):
        return {"target": label, "type": "calculated", "value": outcome.value}
    if not isinstance(outcome, TypedValue):
        raise TypeError(f"{label} is of a kind that only this process's own scope can make: {type(outcome).__name__}")
    shown, shortened = show(outcome)
    result: Result = {"target": label, "type": outcome.type_name, "value": shown}
    if outcome.at is not None:
        result["address"] = f"{outcome.at:#x}"
    if shortened:
        result["shortened"] = True
    return result


def failure(label: str, reason: str, next_step: str = "") -> Result:
    return {"target": label, "error": reason.rstrip("."), "nextStep": next_step or advice(reason)}


def advice(reason: str) -> str:
    """What the caller can do about it."""
    for words, step in _ADVICE:
        if words in reason:
            return step
    return _NEXT


_ADVICE: Final = (
    ("there is no `", "Write one of the names told, with its scopes: ns::name, file.c::name in backquotes, function::name for its static variable."),
    ("has no member", "Write one of the members told."),
    ("may be", "Write the one that is meant."),
    ("its type. Give `type`", 'Add its type, for instance "type": "i32".'),
    ("there is no type", "Write the type as the source has it, with its scopes, or one of i8 … u64, f32, f64, pointer, bytes, string."),
    ("pointer is null", "Read the pointer itself; there is nothing behind it now."),
    ("cannot be read", "The address is not mapped: read the pointer that it came from."),
    ("is outside", "Use an index within the bounds told."),
    ("has no key", "Read the whole map to see its keys."),
    ("does not say what it points to", "Cast it: *(Order*)name."),
    ("optimised out", "Build with -O0 or -Og, or trace the functions that use it."),
    ("local variable", "Trace the function and read its arguments and result."),
    ("there is no thread", "debug_query shows threadId with verbose; leave it out for the main thread."),
    ("has not used the thread-local", "Read it for another threadId, or later."),
    ("read-only", "Change it where it is built, or write a variable that is not const."),
    ("out of range", "Write a value within the range told."),
    ("room for", "Write a shorter text."),
    ("is no value of", "Write one of the names told, or a number."),
)  # fmt: skip
