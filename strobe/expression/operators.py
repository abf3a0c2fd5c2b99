"""Operators between values of the target and scalars: texts and enum names are compared, pointers are moved, the rest is arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from strobe.expression import arithmetic
from strobe.expression.tree import NOWHERE, Binary, Span
from strobe.expression.world import Outcome, Scalar, Unavailable, Value

_NO_TEXT: Final = "this is no text, and no enum with such a name (a character stands in single quotes)"
_T = TypeVar("_T")


def placed(outcome: _T, span: Span) -> _T:
    """What does not say yet where it went wrong says so."""
    if isinstance(outcome, Unavailable) and outcome.span == NOWHERE:
        return replace(outcome, span=span)
    return outcome


def scalar(outcome: Outcome) -> Scalar | Unavailable:
    found = _scalar_or_none(outcome)
    return Unavailable("this is no number, truth or pointer") if found is None else found


def address(outcome: Outcome) -> int | Unavailable:
    """What a pointer cast starts from: a pointer, an integer, an array (its first element), null."""
    found = _scalar_or_none(outcome)
    if found is None and not isinstance(outcome, Scalar | Unavailable):
        pointer = outcome.advance(0)
        found = pointer if isinstance(pointer, Unavailable) else pointer.scalar()
    if isinstance(found, Unavailable):
        return found
    if found is None or isinstance(found.value, str | float):
        return Unavailable("an address is an integer or a pointer")
    return int(found.value or 0)


def enumerator(outcome: Outcome, name: str) -> Scalar | None:
    if isinstance(outcome, Scalar | Unavailable):
        return None
    number = outcome.enumerator(name)
    return None if number is None else Scalar(number)


def binary(node: Binary, left: Value | Scalar, right: Value | Scalar) -> Outcome:
    """All but `&&` and `||`, which do not always need both sides."""
    sign = node.operator
    compares = sign in arithmetic.COMPARISONS
    one = _compared(left, right) if compares else _scalar_or_none(left)
    other = _compared(right, left) if compares else _scalar_or_none(right)
    if isinstance(one, Unavailable):
        return placed(one, node.left.span)
    if isinstance(other, Unavailable):
        return placed(other, node.right.span)
    if sign in ("+", "-") and (moved := _moved(sign, (left, one), (right, other))) is not None:
        return moved
    if one is None or other is None:
        return Unavailable(f"`{sign}` needs numbers", node.left.span if one is None else node.right.span)
    return arithmetic.binary(sign, one, other)


def _moved(sign: str, left: tuple[Value | Scalar, Scalar | None], right: tuple[Value | Scalar, Scalar | None]) -> Outcome | None:
    """Pointer ± integer, integer + pointer, pointer - pointer; None when it is none of these."""
    (start, one), (end, other) = left, right
    if one is not None and other is not None and one.pointee_bytes is not None and other.pointee_bytes is not None:
        return _difference(one, other) if sign == "-" else Unavailable("pointers are not added")
    if _moves(one) and not isinstance(start, Scalar) and (count := _count(other)) is not None:
        return start.advance(count if sign == "+" else -count)
    if sign == "+" and _moves(other) and not isinstance(end, Scalar) and (count := _count(one)) is not None:
        return end.advance(count)
    return None


def _moves(scalar: Scalar | None) -> bool:
    return scalar is None or scalar.pointee_bytes is not None


def _count(scalar: Scalar | None) -> int | None:
    if scalar is None or not isinstance(scalar.value, int):
        return None
    wrapped = arithmetic.wrap(int(scalar.value), unsigned=False).value
    assert isinstance(wrapped, int)
    return wrapped


def _difference(left: Scalar, right: Scalar) -> Outcome:
    if left.pointee_bytes != right.pointee_bytes or not left.pointee_bytes:
        return Unavailable("these pointers point to types of different sizes")
    bytes_between = arithmetic.wrap(int(left.value or 0) - int(right.value or 0), unsigned=False)
    return arithmetic.binary("/", bytes_between, Scalar(left.pointee_bytes))


def _compared(own: Value | Scalar, opposite: Value | Scalar) -> Scalar | Unavailable:
    """What `own` is beside `opposite`. Beside a text literal: a text, or the number of an enum whose name the literal is."""
    if isinstance(own, Scalar):
        named = enumerator(opposite, own.value) if isinstance(own.value, str) else None
        return own if named is None else named
    if isinstance(opposite, Scalar) and isinstance(opposite.value, str):
        return _text(own, _NO_TEXT) if own.enumerator(opposite.value) is None else scalar(own)
    found = own.scalar()
    beside_text = not isinstance(opposite, Scalar) and opposite.scalar() is None  # a char pointer and a std::string, say
    if found is None or (beside_text and isinstance(found, Scalar) and found.pointee_bytes is not None):
        return _text(own, "this is neither a number nor a text")
    return found


def _text(value: Value, missing: str) -> Scalar | Unavailable:
    text = value.text()
    if text is None:
        return Unavailable(missing)
    return text if isinstance(text, Unavailable) else Scalar(text)


def _scalar_or_none(outcome: Outcome) -> Scalar | Unavailable | None:
    return outcome if isinstance(outcome, Scalar | Unavailable) else outcome.scalar()
