"""What an expression is evaluated in: whoever holds the target's data implements `Scope` and `Value`.

Evaluation sees values through these protocols alone. Whatever the target's data can cause (an address that cannot be read, a member that
is not there, a variable optimised out) is returned as `Unavailable`; an exception is a programmer's error. Nothing here may write
to the target, run its code or wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from strobe.expression.tree import NOWHERE, Span

COUNT_MAX: Final = 65_536  # of `p@count`


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a truth, a text or null (None).

    unsigned: an integer of C's unsigned kind; `bits` is its width. With bits < 64 it takes part as a signed 64-bit integer, which holds it.
    pointee_bytes: an address; the size of what it points to, 1 where that is not known (`void*`).
    """

    value: int | float | bool | str | None
    unsigned: bool = False
    bits: int = 64
    pointee_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no value: why, and which part of the expression's text asked for it (a `Value` or `Scope` leaves that out)."""

    reason: str
    span: Span = NOWHERE


class Value(Protocol):
    """A value in the target: its type and where it is. Nothing is read before a method needs it. C++ references are the value they refer to."""

    def scalar(self) -> Scalar | Unavailable | None:
        """Numbers, truths, characters (their code), enums (their number), addresses (pointers, and what behaves as one, such as unique_ptr). Of
        anything else None."""

    def text(self) -> str | Unavailable | None:
        """What is a text: char pointers and arrays, std::string, &str. Bytes that are no UTF-8 as surrogate escapes. Of anything else None.
        Asked for only where a text is compared."""

    def enumerator(self, name: str, /) -> int | None:
        """The number that `name` (`Red` or `Color::Red`) has in this value's own type; None when it is no enum or has no such name."""

    def member(self, name: str, /) -> Value | Unavailable:
        """Of a struct, class or union, also inherited or in an anonymous one; `0` of a tuple; `Base::x`. Never asked of a pointer."""

    def index(self, key: int | str, /) -> Value | Unavailable:
        """Of a pointer, an array or a container; a text is the key of a map."""

    def dereference(self) -> Value | Unavailable:
        """What a pointer points to (an array's first element). Where reading fails, this may say so, or the value's own methods later."""

    def address(self) -> Value | Unavailable:
        """A pointer to this value. What is in a register has none."""

    def advance(self, count: int, /) -> Value | Unavailable:
        """A pointer, or an array as a pointer to its first element, plus `count` elements."""

    def span(self, count: int, /) -> Value | Unavailable:
        """`count` (1 to COUNT_MAX) values of this one's type in a row, this one being the first, as an array."""


Outcome: TypeAlias = Value | Scalar | Unavailable


class Scope(Protocol):
    """Where names mean something: a call's entry or exit, a paused thread, or the program as a whole. `None`: there is no such thing."""

    def resolve(self, name: str, /) -> Value | Scalar | Unavailable | None:
        """A variable, static member, enumerator or constant. `::x` is global. A name from backquotes comes as it stood there."""

    def argument(self, key: int | str, /) -> Value | Unavailable | None:
        """Of the call, by number from 0 or by name."""

    def result(self) -> Value | Unavailable | None:
        """What the call returned."""

    def cast(self, type_name: str, pointers: int, address: int, /) -> Value | Unavailable | None:
        """The pointer with the value `address` and the type `type_name` with so many stars."""

    def near(self, name: str, /) -> Sequence[str]:
        """Names that are like one that could not be resolved, the best first."""
