"""Durations and points in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Time
from strobe.values.inside import FormShape
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_UNITS: Final = {
    (1, 10**12): "ps", (1, 10**9): "ns", (1, 10**6): "us", (1, 1000): "ms", (1, 1): "s", (60, 1): "min", (3600, 1): "h",
    (86400, 1): "days", (604800, 1): "weeks", (2629746, 1): "months", (31556952, 1): "years",
}  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCHS: Final = {"system_clock": 0, "__file_clock": 6437664000, "_FilesystemClock": 0}  # seconds after 1970 at which a clock's time 0 is
_BILLION: Final = 10**9


class TimeShape(FormShape):
    __slots__ = ("epoch", "form")

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Time) -> None:
        super().__init__(shapes, number, size)
        self.form = form
        self.epoch = next((seconds for name, seconds in _EPOCHS.items() if form.clock and form.clock.endswith(name)), None)

    def shown(self, view: View, data: bytes, at: int, address: int, depth: int, /) -> Json:
        count = self.inner(view, self.form.type, self.form.offset, data, at, address, depth)
        if isinstance(count, int | float) and not isinstance(count, bool):
            unit = Fraction(self.form.numerator, self.form.denominator or 1)
            moment = None if self.epoch is None else instant(self.epoch + Fraction(count) * unit, unit)
            return moment if moment is not None else f"{_plain(count)} {unit_name(unit)}"
        return count


def unit_name(unit: Fraction) -> str:
    return _UNITS.get((unit.numerator, unit.denominator), f"x {unit} s")


def _plain(count: float) -> str:
    return str(int(count)) if isinstance(count, float) and count.is_integer() and abs(count) < 1e15 else str(count)


def instant(seconds: Fraction, unit: Fraction) -> str | None:
    """ISO 8601, as exact as its unit; None where a calendar has no such year."""
    nanoseconds = round(seconds * _BILLION)
    whole, part = divmod(nanoseconds, _BILLION)
    try:
        text = (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return None
    digits = 9 if unit < Fraction(1, 10**6) else 6 if unit < Fraction(1, 1000) else 3 if unit < 1 else 0
    year, rest = text.split("-", 1)
    fraction = f".{part:09d}"[: digits + 1] if digits else ""
    return f"{int(year):04d}-{rest}{fraction}Z"
