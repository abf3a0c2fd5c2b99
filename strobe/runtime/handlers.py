"""`@handles` and `@on_notice`: which method takes which message, collected and checked when the class is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from strobe.protocol.base import Ask, Message

_F = TypeVar("_F", bound=Callable[..., Any])
_HANDLES = "_strobe_handles"
_NOTICES = "_strobe_notices"


@dataclass(frozen=True, slots=True)
class Handler:
    method: str
    message: type[Ask]
    completes: bool


@dataclass(frozen=True, slots=True)
class Handlers:
    """What one class answers and listens to, by message type."""

    asks: dict[str, Handler]
    notices: dict[str, tuple[str, type[Message]]]




def handles(message: type[Ask], *, completes: bool = False) -> Callable[[_F], _F]:
    """Marks `async def method(self, ask, context) -> REPLY` as the one handler of `message`.

    At the ask's deadline the handler is cancelled, unless `completes`: then it runs to its end, its late reply goes nowhere.
    """

    def mark(method: _F) -> _F:
        setattr(method, _HANDLES, (message, completes))
        return method

    return mark


def on_notice(message: type[Message]) -> Callable[[_F], _F]:
    """Marks `async def method(self, notice)`; the actor's HELLO subscribes to it."""

    def mark(method: _F) -> _F:
        setattr(method, _NOTICES, message)
        return method

    return mark


def collect(cls: type) -> Handlers:
    """Raises TypeError when a message has two handlers or an ask names no reply."""
    found = Handlers({}, {})
    for method in _method_names(cls):
        function = getattr(cls, method)
        if (mark := getattr(function, _HANDLES, None)) is not None:
            message, completes = mark
            if not hasattr(message, "REPLY"):
                raise TypeError(f"{cls.__name__}.{method}: {message.__name__} names no REPLY")
            _only_one(cls, found.asks.get(message.TYPE), method, message.TYPE)
            found.asks[message.TYPE] = Handler(method, message, completes)
        if (heard := getattr(function, _NOTICES, None)) is not None:
            _only_one(cls, found.notices.get(heard.TYPE), method, heard.TYPE)
            found.notices[heard.TYPE] = (method, heard)
    return found


def _method_names(cls: type) -> list[str]:
    """Every attribute name of the class and its bases once, bases first."""
    return list(dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base)))


def _only_one(cls: type, earlier: object, method: str, message_type: str) -> None:
    if earlier is not None:
        raise TypeError(f"{cls.__name__}: {message_type} has two handlers, {earlier} and {method}")
