"""Which libraries a target has mapped, and what becomes of hooks in those that go: nothing is ever written to where their code was.

A library that goes takes its hooks along. When the same file comes back to the same place its code is what it was, so thunks, hooks and ids fit again:
they sleep meanwhile.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from actors.session.journal import Journal
from actors.session.probes import Installed
from strobe.model.probe import Module
from strobe.modules import Mapped
from strobe.protocol.spawner import Patch

ASLEEP_MAX: Final = 256  # libraries; of more, the one that went first is forgotten

Key = tuple[str, int, str]


@dataclass(slots=True)
class Asleep:
    """What a library took along."""

    items: dict[int, Installed]
    internal: list[Patch]


class Libraries:
    """Of one target. `known`: what was mapped at the last look."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.known: dict[Key, Module] = {}
        self._asleep: dict[Key, Asleep] = {}

    def look(self, mapped: Sequence[Mapped], unchanged: Callable[[Patch], bool] | None = None) -> list[Mapped]:
        """Those that are new. `unchanged` is given where libraries may have gone and come back since the last look: whether a patch is still there."""
        now = {one.key: one for one in mapped}
        patched = self._patched() if unchanged else []
        for key in [key for key in self.known if key not in now or (unchanged and self._came_back(self.known[key], patched, unchanged))]:
            self._sleep(key, self.known.pop(key))
        fresh = [one for key, one in now.items() if key not in self.known]
        self.known = {key: one.module for key, one in now.items()}
        return fresh

    def wake(self, fresh: Iterable[Mapped], wanted: Iterable[int]) -> tuple[list[Installed], list[Patch]]:
        """Hooks of new libraries that were there before, as far as they are wanted: installed as far as the journal goes, to be patched; and the
        recorder's own."""
        asleep = [self._asleep.pop(one.key) for one in fresh if one.key in self._asleep]
        addresses = set(wanted)
        items = [item for one in asleep for address, item in one.items.items() if address in addresses]
        internal = [patch for one in asleep for patch in one.internal]
        self._journal.probes.installed |= {item.hook.address: item for item in items}
        self._journal.internal += internal
        return items, internal

    def _patched(self) -> list[tuple[int, Patch]]:
        found = [(item.hook.address, item.patch) for item in self._journal.probes.installed.values() if item.patch]
        return sorted(found, key=lambda pair: pair[0])

    def _came_back(self, module: Module, patched: Sequence[tuple[int, Patch]], unchanged: Callable[[Patch], bool]) -> bool:
        """Unmapped and mapped again: its own bytes are there. One patch tells, as all were written. `patched`: by address."""
        first = bisect.bisect_left(patched, module.start, key=lambda pair: pair[0])
        return first < len(patched) and patched[first][0] < module.end and not unchanged(patched[first][1])

    def _sleep(self, key: Key, module: Module) -> None:
        probes = self._journal.probes
        inside = {address for address in probes.installed if module.start <= address < module.end}
        items = {address: probes.installed.pop(address) for address in inside}
        internal = [patch for patch in self._journal.internal if module.start <= patch.address < module.end]
        self._journal.internal = [patch for patch in self._journal.internal if patch not in internal]
        probes.refused = {address: refused for address, refused in probes.refused.items() if not module.start <= address < module.end}
        if items or internal:
            self._asleep[key] = Asleep({address: item for address, item in items.items() if item.patch}, internal)
            while len(self._asleep) > ASLEEP_MAX:
                del self._asleep[next(iter(self._asleep))]
