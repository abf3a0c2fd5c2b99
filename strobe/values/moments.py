"""Times of seconds and nanoseconds: Rust's Duration, Instant and SystemTime."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from strobe.model.type_nodes import TypeId
from strobe.values.forms import Moment
from strobe.values.inside import FormShape, number_in
from strobe.values.times import instant
from strobe.values.view import Json, View

if TYPE_CHECKING:
    from strobe.values.shapes import Shapes

_BILLION: Final = 10**9
_UNITS: Final = (("s", _BILLION), ("ms", 10**6), ("us", 1000))


class MomentShape(FormShape):
    __slots__ = ("form",)

    def __init__(self, shapes: Shapes, number: TypeId, size: int, form: Moment) -> None:
        super().__init__(shapes, number, size)
        self.form = form

    def shown(self, _view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        seconds, nanoseconds = number_in(self.form.seconds, data, at), number_in(self.form.nanoseconds, data, at)
        if nanoseconds >= _BILLION:
            return self.invalid()
        if not self.form.since:
            return duration(seconds, nanoseconds)
        bits = 8 * self.form.seconds.size
        seconds -= (1 << bits) if bits and seconds >> (bits - 1) else 0
        if self.form.since == "boot":
            return f"{'-' if seconds < 0 else ''}{_seconds(abs(seconds * _BILLION + nanoseconds))}"
        return _calendar(seconds, nanoseconds) or self.invalid()


def duration(seconds: int, nanoseconds: int) -> str:
    """In the largest unit of which there is one, as Rust's own `Debug` has it."""
    whole = seconds * _BILLION + nanoseconds
    for unit, size in _UNITS:
        if whole >= size:
            number, rest = divmod(whole, size)
            fraction = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{number}{'.' if fraction else ''}{fraction} {unit}"
    return f"{whole} ns"


def _seconds(nanoseconds: int) -> str:
    number, rest = divmod(nanoseconds, _BILLION)
    return f"{number}.{rest:09d} s"


def _calendar(seconds: int, nanoseconds: int) -> str | None:
    """With as many digits as it needs, by threes."""
    digits = next(unit for unit in (1, 1000, 10**6, _BILLION) if nanoseconds * unit % _BILLION == 0)
    return instant(seconds + Fraction(nanoseconds, _BILLION), Fraction(1, digits))
