"""What travels on the control bus: `[to][from][header][body]`.

header (msgpack map) {proto, id, cause, kind, type, deadline_ms}; body (msgpack) is the message's camelCase dict. `to` and `from` are
actor names (`store`, `session:hello-…`); the router stamps `from` with what it knows of the sender, whatever the sender wrote.
`deadline_ms` is absolute, CLOCK_MONOTONIC in ms: one machine, one clock, so a message that waited in a queue still expires on time.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgpack  # type: ignore[import-untyped]
from pydantic import ValidationError

from strobe.errors import Code, StrobeError
from strobe.model.base import Noun

PROTO: Final = 1

_M = TypeVar("_M", bound=Noun)


class Kind(enum.StrEnum):
    ASK = "ask"
    REPLY = "reply"
    ERROR = "error"
    NOTICE = "notice"
    HELLO = "hello"  # actor → supervisor: I am here, I am ready; supervisor → actor: accepted or not
    PING = "ping"
    PONG = "pong"
    BYE = "bye"  # supervisor → actor: stop now; body {reason}


class EnvelopeError(Exception):
    """Frames that are no envelope. The receiver drops and logs them; it never answers what it cannot read."""


@dataclass(frozen=True, slots=True)
class Header:
    id: str
    kind: Kind
    type: str = ""
    cause: str = ""
    deadline_ms: int = 0  # 0: none


@dataclass(frozen=True, slots=True)
class Envelope:
    to: str
    sender: str
    header: Header
    body: bytes = b""

    def frames(self) -> list[bytes]:
        head = self.header
        packed = pack({"proto": PROTO, "id": head.id, "cause": head.cause, "kind": str(head.kind), "type": head.type, "deadline_ms": head.deadline_ms})
        return [self.to.encode(), self.sender.encode(), packed, self.body]

    def answer(self, kind: Kind, body: bytes) -> Envelope:
        """The reply or error to this ask: same id, type and cause, back to who sent it."""
        return Envelope(self.sender, self.to, Header(self.header.id, kind, self.header.type, self.header.cause), body)


def parse(frames: Sequence[bytes]) -> Envelope:
    """The envelope in four frames. Raises EnvelopeError."""
    if len(frames) != 4:
        raise EnvelopeError(f"{len(frames)} frames instead of 4")
    to, sender, packed, body = frames
    try:
        head = unpack(packed)
        if head["proto"] != PROTO:
            raise EnvelopeError(f"another protocol, this is {PROTO}")
        header = Header(_text(head["id"]), Kind(_text(head["kind"])), _text(head["type"]), _text(head["cause"]), _time(head["deadline_ms"]))
        return Envelope(to.decode(), sender.decode(), header, body)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError, msgpack.UnpackException) as error:
        raise EnvelopeError(f"unreadable header: {type(error).__name__}: {error}"[:200]) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


def _time(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise TypeError("no time")
    return value


def pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(data: bytes) -> Any:
    """Raises ValueError or msgpack.UnpackException. Sizes inside are bounded by the size of `data` (msgpack's own rule)."""
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def pack_model(model: Noun) -> bytes:
    return pack(model.model_dump(by_alias=True))


def unpack_model(model: type[_M], body: bytes) -> _M:
    """Raises StrobeError(VALIDATION_ERROR) naming the field at fault."""
    try:
        return model.model_validate(unpack(body))
    except ValidationError as error:
        raise field_error(model.__name__, error) from error
    except (ValueError, msgpack.UnpackException) as error:
        text = f"The body of a {model.__name__} is not msgpack: {error}."
        raise StrobeError(Code.VALIDATION_ERROR, text, "Send the message's dict packed with msgpack.") from error


def field_error(what: str, error: ValidationError) -> StrobeError:
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "(all)"
    text = f"{what}: field {field}: {first['msg']}"
    return StrobeError(Code.VALIDATION_ERROR, f"{text}.", f"Correct {field}.", value={"field": field, "input": repr(first["input"])[:200]})


def monotonic_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000
