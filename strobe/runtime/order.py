"""Who may ask whom (DESIGN §1). Asks only go down this order, so no two actors can ever wait for each other."""

from __future__ import annotations

from typing import Final

MAY_ASK: Final[dict[str, frozenset[str]]] = {
    "ctl": frozenset({"supervisor", "gateway", "stuck_detector", "session", "spawner", "indexer", "store"}),
    "gateway": frozenset({"supervisor", "stuck_detector", "session", "spawner", "indexer", "store"}),
    "supervisor": frozenset({"stuck_detector", "session", "spawner", "indexer", "store"}),
    "session": frozenset({"stuck_detector", "spawner", "indexer"}),
    "stuck_detector": frozenset({"indexer"}),
    "spawner": frozenset(),
    "indexer": frozenset(),
    "store": frozenset(),
}


class AskOrderError(RuntimeError):
    """A programmer's error: an ask that goes up. News goes up as a notice."""


def role_of(name: str) -> str:
    """`session:hello-1` → `session`; `ctl:4711-0` → `ctl`."""
    return name.partition(":")[0]


def check_order(sender: str, to: str) -> None:
    if role_of(to) not in MAY_ASK.get(role_of(sender), frozenset()):
        raise AskOrderError(f"{sender} may not ask {to}: asks go down (strobe.runtime.order)")
