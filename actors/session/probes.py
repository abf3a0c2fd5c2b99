"""What the user wants traced and what is installed for it: the only copy of both. Pure: differences in, differences out."""

from __future__ import annotations

from dataclasses import dataclass, field

from strobe.errors import Code, StrobeError
from strobe.lanes.layout import HOOK_CAPACITY
from strobe.model.probe import Hook, Place, Plan, Refused
from strobe.protocol.spawner import Patch

PATTERNS_MAX = 1000


@dataclass
class Installed:
    """One hook in the target: `patch` is None where the fallback installed it. `earlier`: ids it had with other plans; a call may still be on its way
    with one, and where the process died while it was exchanged, nobody knows which one counts: flags are set for all."""

    hook: Hook
    patch: Patch | None
    enabled: bool = True
    earlier: list[int] = field(default_factory=list)
    base: Plan | None = None  # without watches, where there are some


@dataclass
class Difference:
    """What has to happen so that the installed hooks match the wanted places."""

    install: dict[int, Place]  # by runtime address
    enable: list[Installed]
    disable: list[Installed]


@dataclass
class Probes:
    """Patterns in the order they were added; hooks by runtime address (one hook a function, however many patterns want it)."""

    patterns: list[str] = field(default_factory=list)
    installed: dict[int, Installed] = field(default_factory=dict)
    refused: dict[int, Refused] = field(default_factory=dict)
    next_id: int = 1

    def changed_patterns(self, add: list[str], remove: list[str]) -> list[str]:
        """The patterns as they would be. Errors: INVALID_PATTERN for a removal of what is not there, LIMIT_EXCEEDED."""
        for pattern in remove:
            if pattern not in self.patterns:
                known = ", ".join(self.patterns[:10]) or "none"
                raise StrobeError(Code.INVALID_PATTERN, f"{pattern!r} is not active, so it can't be removed.", f"Active patterns: {known}.", value=pattern)
        kept = [pattern for pattern in self.patterns if pattern not in remove]
        changed = kept + [pattern for pattern in dict.fromkeys(add) if pattern not in kept]
        if len(changed) > PATTERNS_MAX:
            raise StrobeError(Code.LIMIT_EXCEEDED, f"{len(changed)} patterns are more than {PATTERNS_MAX}.", "Use wider patterns.", value=len(changed))
        return changed

    def difference(self, wanted: dict[int, Place]) -> Difference:
        """`wanted`: places by runtime address."""
        return Difference(
            install={address: place for address, place in wanted.items() if address not in self.installed and address not in self.refused},
            enable=[item for address, item in self.installed.items() if address in wanted and not item.enabled],
            disable=[item for address, item in self.installed.items() if address not in wanted and item.enabled],
        )

    def new_hooks(self, places: list[Place], addresses: list[int], plans: list[Plan]) -> list[Hook]:
        """Gives ids, which are never reused. Errors: LIMIT_EXCEEDED when the hook table is full."""
        if self.next_id + len(places) > HOOK_CAPACITY:
            room = HOOK_CAPACITY - self.next_id
            what = f"{len(places)} more hooks don't fit: {room} of {HOOK_CAPACITY} left."
            raise StrobeError(Code.LIMIT_EXCEEDED, what, "Narrow the patterns, or start a new session.")
        first = self.next_id
        self.next_id += len(places)
        triples = zip(places, addresses, plans, strict=True)
        return [Hook(id=first + n, place=place, address=address, plan=plan) for n, (place, address, plan) in enumerate(triples)]

    @property
    def active(self) -> list[Installed]:
        return [item for item in self.installed.values() if item.enabled]
