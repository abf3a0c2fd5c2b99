"""The orders a page can have: sort keys over a branch, and the condition `after this key`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from actors.store.query.branches import Branch
from strobe.model.query import Query

NO_THREAD: Final = (1 << 62) - 1  # events of no known thread come last
_KEY_LENGTHS: Final = {"arrival": 1, "time": 2, "thread": 3, "duration": 3}


@dataclass(frozen=True, slots=True)
class Order:
    """arrival: (n). time: (ts, n). thread: (tid or NO_THREAD, ts, n). duration: (minus the duration, or 1 without one; ts, n)."""

    name: str

    @property
    def key_length(self) -> int:
        return _KEY_LENGTHS[self.name]

    @staticmethod
    def keys(branch: Branch) -> list[str]:
        """By duration, of a branch that has one."""
        return [f"-{branch.duration}", branch.ts, branch.n]

    @staticmethod
    def after_duration(key: tuple[int, ...]) -> Callable[[Branch], str]:
        duration, ts, n = -key[0], key[1], key[2]

        def behind(branch: Branch) -> str:
            same = f"{branch.duration} = {duration} AND ({branch.ts} > {ts} OR ({branch.ts} = {ts} AND {branch.n} > {n}))"
            return f"({branch.duration} < {duration} OR ({same}))"

        return behind


def order_of(query: Query) -> Order:
    """A poll (afterEventId) follows arrival, unless another order is asked for."""
    if query.order_by == "time" and query.after_event_id is not None:
        return Order("arrival")
    return Order(query.order_by)
