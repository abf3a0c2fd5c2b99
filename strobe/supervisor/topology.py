"""What runs: one line per role."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    module: str = ""  # what `python -m` runs; empty: actors.<name>
    per_session: bool = False  # one per session, from the warm pair; the others run from node start to node end
    late: bool = False  # started when the others are up: no first call waits for it
    on_demand: bool = False  # after a death, restarted by the next ask to it
    keeps_children: bool = False  # its process group outlives it: keepers of targets are in it
    imports: tuple[str, ...] = ()  # what the template imports, from which it is forked; none: it is started
    imported_late: bool = False  # it is forked only when it is started again: at the node's start that would take longer
    scratch: bool = False  # has a temporary folder of its own, swept when it has ended
    stop_order: int = 0  # at shutdown, lower numbers first
    stop_s: float = 22.0  # after BYE; a little more than Actor.STOPPING_S


ROLES: Final = (
    Role("gateway", imports=("actors.gateway.actor",), imported_late=True, stop_order=0, stop_s=8),
    Role("session", per_session=True, imports=("actors.session.actor",), keeps_children=True, stop_order=1),
    Role("spawner", per_session=True, imports=("actors.spawner.actor",), on_demand=True, scratch=True, stop_order=2, stop_s=8),
    Role("stuck_detector", imports=("actors.stuck_detector.actor",), imported_late=True, late=True, stop_order=2, stop_s=4),
    Role("indexer", imports=("actors.indexer.actor",), imported_late=True, late=True, stop_order=2, stop_s=8),
    # Not the store whole: Arrow starts a thread when it is imported
    Role("store", imports=("duckdb", "strobe.protocol.store", "strobe.runtime"), imported_late=True, stop_order=3, stop_s=40),
)


def topology() -> tuple[Role, ...]:
    """The roles of this node. STROBE_ROLES (comma-separated) leaves others out: for tests of one actor."""
    wanted = os.environ.get("STROBE_ROLES")
    if wanted is None:
        return ROLES
    return tuple(role for role in ROLES if role.name in wanted.split(","))
