"""Operating errors: what happened, the value at fault, what to do next. Codes are SPEC §4's and go over every wire unchanged.

Raise `StrobeError` for anything a caller can cause or act on. A programmer's error stays an ordinary exception: it crashes the
actor and the supervisor restarts it.
"""

from __future__ import annotations

import enum
from typing import Any


class Code(enum.StrEnum):
    NO_DEBUG_SYMBOLS = "NO_DEBUG_SYMBOLS"
    SIP_BLOCKED = "SIP_BLOCKED"
    SESSION_EXISTS = "SESSION_EXISTS"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    PROCESS_EXITED = "PROCESS_EXITED"
    FRIDA_ATTACH_FAILED = "FRIDA_ATTACH_FAILED"
    INVALID_PATTERN = "INVALID_PATTERN"
    WATCH_FAILED = "WATCH_FAILED"
    TEST_RUN_NOT_FOUND = "TEST_RUN_NOT_FOUND"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    UI_NOT_AVAILABLE = "UI_NOT_AVAILABLE"
    CHANNEL_NOT_FOUND = "CHANNEL_NOT_FOUND"
    ACTOR_UNAVAILABLE = "ACTOR_UNAVAILABLE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    TIMEOUT = "TIMEOUT"


class StrobeError(Exception):
    """An operating error. `what` names the value at fault; `next_step` says what the caller can do."""

    def __init__(self, code: Code, what: str, next_step: str, *, value: Any = None) -> None:
        super().__init__(f"{code}: {what} {next_step}")
        self.code = code
        self.what = what
        self.next_step = next_step
        self.value = value

    def to_wire(self) -> dict[str, Any]:
        """{code, what, nextStep, value?}: the one wire form, in replies between actors and to clients."""
        wire: dict[str, Any] = {"code": str(self.code), "what": self.what, "nextStep": self.next_step}
        if self.value is not None:
            wire["value"] = self.value
        return wire

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> StrobeError:
        return cls(Code(wire["code"]), wire["what"], wire["nextStep"], value=wire.get("value"))
