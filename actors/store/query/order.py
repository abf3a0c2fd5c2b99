"""The orders a page can have: sort keys over a branch, and the condition `after this key`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from actors.store.query.branches import Branch
from strobe.model.query import Query

NO_THREAD: Final = (1 << 62) - 1  # events of no known thread come last


@dataclass(frozen=True, slots=True)
class Order:
    name: str

    def keys(self, branch: Branch) -> list[str]:
        match self.name:
            case "arrival":
                return [branch.n]
            case "time":
                return [branch.ts, branch.n]
            case "thread":
                return [_tid(branch), branch.ts, branch.n]
            case _:
                # Longest first, as ascending numbers; events without a duration come last.
                return [f"-coalesce({branch.duration}, -1)" if branch.duration else "1", branch.ts, branch.n]

    @property
    def key_length(self) -> int:
        return {"arrival": 1, "time": 2}.get(self.name, 3)

    def after(self, branch: Branch, key: tuple[int, ...]) -> str:
        """Lexicographically greater than `key`; the first column's bound stands alone so that whole row groups can be skipped by it."""
        columns = self.keys(branch)
        ors = []
        for index in range(len(columns)):
            same = [f"{columns[k]} = {key[k]}" for k in range(index)]
            ors.append(" AND ".join([*same, f"{columns[index]} > {key[index]}"]))
        return f"{columns[0]} >= {key[0]} AND ({' OR '.join(ors)})"


def order_of(query: Query) -> Order:
    """A poll (afterEventId) follows arrival, unless another order is asked for."""
    if query.order_by == "time" and query.after_event_id is not None:
        return Order("arrival")
    return Order(query.order_by)


def _tid(branch: Branch) -> str:
    if branch.tid is not None:
        return f"coalesce({branch.tid}, {NO_THREAD})"
    # Qualified: `id` must be the thread's, `thread` the event's.
    return f"coalesce((SELECT threads.tid FROM threads WHERE threads.id = {branch.table}.{branch.thread}), {NO_THREAD})"
