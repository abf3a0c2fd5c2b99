"""How long nobody has needed the node. Pure: the clock is the caller's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class IdleClock:
    """Idle: no MCP client, no call in flight, no live session, no word from strobe-ctl."""

    active_at: float
    clients: int = 0
    calls: int = 0

    def touch(self, now: float) -> None:
        self.active_at = now

    def counted(self, clients: int, calls: int, now: float) -> None:
        """The gateway said so."""
        self.clients, self.calls, self.active_at = clients, calls, now

    def idle_s(self, now: float, live_sessions: int) -> float:
        if self.clients or self.calls or live_sessions:
            self.active_at = now
        return now - self.active_at
