"""What a handler knows of the ask it answers, and the contextvars that carry it along."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from strobe.runtime.envelope import Envelope, monotonic_ms

current_cause: ContextVar[str] = ContextVar("current_cause", default="")


@dataclass(frozen=True, slots=True)
class Context:
    cause: str  # id of the MCP request or command that started it all
    sender: str  # who asked, by the router's knowledge
    deadline_ms: int  # CLOCK_MONOTONIC; 0: none

    @classmethod
    def of(cls, envelope: Envelope) -> Context:
        return cls(envelope.header.cause, envelope.sender, envelope.header.deadline_ms)

    @property
    def deadline_s(self) -> float:
        """Seconds left, never below 0; infinity when there is no deadline."""
        return max(0.0, (self.deadline_ms - monotonic_ms()) / 1000) if self.deadline_ms else float("inf")
