"""When to restart what died: at once, later, or no more. Pure: the clock is the caller's."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Final

DEATHS_MAX: Final = 5
WINDOW_S: Final = 30.0
STABLE_S: Final = 60.0
DELAY_MAX_S: Final = 5.0
REST_S: Final = 30.0
REST_MAX_S: Final = 600.0


@dataclass(slots=True)
class Restarts:
    """One actor's deaths. The sixth within 30 s is one too many: it rests, each time twice as long, and is tried anew."""

    deaths: deque[float] = field(default_factory=deque)
    total: int = 0
    rests: int = 0

    def delay_s(self, now: float, spread: float | None = None) -> float | None:
        """Seconds until the restart after a death at `now`; None: give up. Backs off 0, 0.1, 0.2, 0.4 … s, ±20 %."""
        if self.deaths and now - self.deaths[-1] > STABLE_S:
            self.deaths.clear()
            self.rests = 0
        self.deaths.append(now)
        self.total += 1
        while now - self.deaths[0] > WINDOW_S:
            self.deaths.popleft()
        recent = len(self.deaths)
        if recent > DEATHS_MAX:
            return None
        spread = random.uniform(0.8, 1.2) if spread is None else spread
        return 0.0 if recent == 1 else min(DELAY_MAX_S, 0.1 * 2 ** (recent - 2)) * spread

    def rest_s(self) -> float:
        """After `delay_s` gave up: seconds until it is worth another try, 30, 60, 120 … 600."""
        self.rests += 1
        self.deaths.clear()
        return float(min(REST_MAX_S, REST_S * 2 ** (self.rests - 1)))
