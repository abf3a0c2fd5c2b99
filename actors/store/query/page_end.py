"""Where polling goes on after a page: the number up to which everything that matches was on that page or one before it."""

from __future__ import annotations

from actors.store.query.scan import Found


def last_seen(order: str, rows: Found, last_n: int) -> list[int]:
    """For each row the number that belongs to a page ending with it. `rows.unseen` is None where nothing that matches is behind the last row.

    By time, a page that ends sooner leaves its other rows unseen too. By thread or duration what is behind a page comes by cursor alone.
    """
    numbers = [row.n for row in rows.rows]
    if order == "arrival":
        return numbers if rows.unseen is not None else [*numbers[:-1], last_n][: len(numbers)]
    if order != "time":
        return [last_n] * len(numbers)
    lowest, found = last_n + 1 if rows.unseen is None else min(rows.unseen, last_n + 1), []
    for n in reversed(numbers):
        found.append(lowest - 1)
        lowest = min(lowest, n)
    return found[::-1]
