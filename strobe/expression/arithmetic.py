"""C's arithmetic on 64-bit integers and doubles. What C leaves undefined is defined: integers wrap, the rest is unavailable."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from strobe.expression.world import Scalar, Unavailable

_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_COMPARE: Final[dict[str, Callable[[int | float | str, int | float | str], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISONS: Final = frozenset(_COMPARE)
_INTEGERS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_REALS: Final[dict[str, Callable[[float, float], float]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_TOO_WIDE: Final = Unavailable("this integer has more than 64 bits, which is more than expressions calculate with")

Number = int | float


def wrap(value: int, *, unsigned: bool) -> Scalar:
    """The integer that 64 bits make of it."""
    value &= _MASK
    return Scalar(value if unsigned or value < _SIGN else value - (1 << 64), unsigned=unsigned)


def truth(scalar: Scalar) -> bool | Unavailable:
    if isinstance(scalar.value, str):
        return Unavailable("a text is neither true nor false: compare it")
    return bool(scalar.value)


def unary(sign: str, scalar: Scalar) -> Scalar | Unavailable:
    """`-`, `+`, `~`."""
    number = _number(scalar)
    if isinstance(number, Unavailable):
        return number
    if isinstance(number.value, float):
        return Unavailable("`~` needs an integer") if sign == "~" else Scalar(-number.value if sign == "-" else number.value)
    value = int(number.value or 0)
    return wrap({"-": -value, "+": value, "~": ~value}[sign], unsigned=number.unsigned)


def binary(sign: str, left: Scalar, right: Scalar) -> Scalar | Unavailable:
    """Everything but `&&`, `||` and what moves a pointer."""
    if sign in COMPARISONS:
        return _compare(sign, left, right)
    one, other = _number(left), _number(right)
    if isinstance(one, Unavailable):
        return one
    if isinstance(other, Unavailable):
        return other
    if isinstance(one.value, float) or isinstance(other.value, float):
        return _real(sign, _as_real(one), _as_real(other))
    return _integer(sign, one, other)


def _number(scalar: Scalar) -> Scalar | Unavailable:
    """As it takes part: a double, or a 64-bit integer, `unsigned` only where it is an unsigned one of 64 bits."""
    value = scalar.value
    if isinstance(value, str):
        return Unavailable("a text takes part in comparisons only")
    if value is None:
        return Unavailable("null takes part in comparisons only")
    if isinstance(value, float):
        return scalar
    value = int(value)
    if not -_SIGN <= value <= _MASK:
        return _TOO_WIDE
    return Scalar(value, unsigned=value >= _SIGN or scalar.pointee_bytes is not None or (scalar.unsigned and scalar.bits >= 64 and value >= 0))


def _as_real(scalar: Scalar) -> float:
    assert isinstance(scalar.value, int | float)
    return float(scalar.value)


def _real(sign: str, left: float, right: float) -> Scalar | Unavailable:
    if sign in _REALS:
        return Scalar(_REALS[sign](left, right))
    if sign != "/":
        return Unavailable(f"`{sign}` needs integers")
    if right != 0.0:
        return Scalar(left / right)
    if left == 0.0 or math.isnan(left):
        return Scalar(math.nan)
    return Scalar(math.copysign(math.inf, left) * math.copysign(1.0, right))


def _integer(sign: str, left: Scalar, right: Scalar) -> Scalar | Unavailable:
    unsigned = left.unsigned or right.unsigned
    one, other = _as_integer(left, unsigned), _as_integer(right, unsigned)
    if sign in _INTEGERS:
        return wrap(_INTEGERS[sign](one, other), unsigned=unsigned)
    if sign in ("<<", ">>"):
        return _shift(sign, left, _as_integer(right, right.unsigned))
    if other == 0:
        return Unavailable("division by zero")
    quotient = abs(one) // abs(other)  # towards zero
    quotient = quotient if (one < 0) == (other < 0) else -quotient
    return wrap(quotient if sign == "/" else one - quotient * other, unsigned=unsigned)


def _shift(sign: str, left: Scalar, count: int) -> Scalar | Unavailable:
    """The result has the type of what is shifted. A negative integer shifted right stays negative."""
    if not 0 <= count < 64:
        return Unavailable(f"a shift by {count} bits; 64-bit integers are shifted by 0 to 63")
    value = _as_integer(left, left.unsigned)
    return wrap(value << count if sign == "<<" else value >> count, unsigned=left.unsigned)


def _as_integer(scalar: Scalar, unsigned: bool) -> int:
    value = wrap(int(scalar.value or 0), unsigned=unsigned).value
    assert isinstance(value, int)
    return value


def _compare(sign: str, left: Scalar, right: Scalar) -> Scalar | Unavailable:
    one, other = left.value, right.value
    if isinstance(one, str) and isinstance(other, str):
        return Scalar(_COMPARE[sign](one, other))
    if one is None or other is None:
        return _compare_null(sign, left, right)
    if isinstance(one, str) or isinstance(other, str):
        return Unavailable("a text is compared with something that is no text")
    if isinstance(one, float) or isinstance(other, float):
        return Scalar(_COMPARE[sign](_rounded(one), _rounded(other)))
    if _wide(one) or _wide(other):
        return Scalar(_COMPARE[sign](one, other))  # exact
    first, second = _number(left), _number(right)
    assert isinstance(first, Scalar)
    assert isinstance(second, Scalar)
    unsigned = first.unsigned or second.unsigned
    return Scalar(_COMPARE[sign](_as_integer(first, unsigned), _as_integer(second, unsigned)))


def _compare_null(sign: str, left: Scalar, right: Scalar) -> Scalar | Unavailable:
    if sign not in ("==", "!="):
        return Unavailable(f"null has no order: `{sign}` needs numbers or texts")
    for scalar in (left, right):
        if scalar.value is not None and scalar.pointee_bytes is None:
            return Unavailable("null is compared with something that is no pointer")
    equal = (left.value or 0) == (right.value or 0)
    return Scalar(equal == (sign == "=="))


def _wide(value: int) -> bool:
    return not -_SIGN <= value <= _MASK


def _rounded(value: Number) -> float:
    """As C converts it before it compares. Python would compare a double with the exact integer."""
    return float(value)
