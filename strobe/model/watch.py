"""Watches: expressions whose values ride on calls."""

from __future__ import annotations

from strobe.errors import Code, StrobeError
from strobe.expression import Chain, Expression, ExpressionError, chain, parse
from strobe.model.base import Noun

WATCHES_MAX = 32
EXPRESSION_MAX = 256
DEREFERENCES_MAX = 4


class Watch(Noun):
    """`on`: patterns of the functions on whose calls it is read; none: all that are traced. `address`: what is there, of `type_name`, instead of what the
    expression says (which then only shows it)."""

    label: str
    expr: str
    on: list[str] = []
    address: int | None = None
    type_name: str | None = None


class ActiveWatch(Noun):
    """What a watch reads: its first variable's address (`None`: an argument, which is elsewhere in each call), the value's size in bytes and its type."""

    label: str
    expr: str
    address: str | None
    size: int | None
    type_name: str | None
    on: list[str] | None = None
    functions: int  # on whose calls it is read at present


def check(watch: Watch) -> tuple[Expression, Chain] | None:
    """None: it is an address. Errors: WATCH_FAILED, naming the place in the text."""
    if watch.address is not None:
        return None
    if len(watch.expr) > EXPRESSION_MAX:
        what = f"Watch {watch.label!r} has {len(watch.expr)} characters; {EXPRESSION_MAX} are the most."
        raise StrobeError(Code.WATCH_FAILED, what, "Shorten it.", value=watch.expr[:80])
    try:
        parsed = parse(watch.expr)
    except ExpressionError as error:
        raise StrobeError(Code.WATCH_FAILED, f"Watch {watch.label!r}: {error.what}", error.next_step, value=watch.expr) from None
    path = chain(parsed)
    if path is None:
        what = f"Watch {watch.label!r} is more than a path from a variable or argument: `{watch.expr}`."
        raise StrobeError(Code.WATCH_FAILED, what, "Watch each value that it needs, e.g. `gCount` and `order->total`.", value=watch.expr)
    if path.dereferences > DEREFERENCES_MAX:
        what = f"Watch {watch.label!r} follows {path.dereferences} pointers; {DEREFERENCES_MAX} are the most."
        raise StrobeError(Code.WATCH_FAILED, what, "Begin nearer to the value, e.g. at an argument of a traced function.", value=watch.expr)
    return parsed, path
