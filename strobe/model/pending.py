"""What waits for a client's next launch: patterns, watches, how deep values are captured, how many events there may be."""

from __future__ import annotations

from strobe.model.base import Noun
from strobe.model.sampling import Budget
from strobe.model.watch import Watch


class PendingSet(Noun):
    """In the order added."""

    patterns: list[str] = []
    watches: list[Watch] = []
    depth: int | None = None
    budget: Budget | None = None

    @property
    def empty(self) -> bool:
        return not self.patterns and not self.watches and self.depth is None and self.budget is None


class PendingChange(Noun):
    """One difference. A watch replaces the one of the same label; `depth` and what `budget` has stay as they are where None."""

    add: list[str] = []
    remove: list[str] = []
    add_watches: list[Watch] = []
    remove_watches: list[str] = []
    depth: int | None = None
    budget: Budget | None = None

    def applied(self, to: PendingSet) -> PendingSet:
        kept = [pattern for pattern in to.patterns if pattern not in self.remove]
        replaced = {*self.remove_watches, *(watch.label for watch in self.add_watches)}
        return PendingSet(
            patterns=list(dict.fromkeys([*kept, *self.add])),
            watches=[*(watch for watch in to.watches if watch.label not in replaced), *self.add_watches],
            depth=to.depth if self.depth is None else self.depth,
            budget=to.budget if self.budget is None else self.budget.over(to.budget),
        )

    @classmethod
    def adding(cls, all_of: PendingSet) -> PendingChange:
        return cls(add=all_of.patterns, add_watches=all_of.watches, depth=all_of.depth, budget=all_of.budget)
