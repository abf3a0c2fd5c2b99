"""How much of what hot functions do is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from strobe.model.base import Noun


class Budget(Noun):
    """What one call of debug_trace asks for; None: as before. `calls_per_second` 0: no function is sampled for being hot."""

    events_per_second: int | None = None
    overhead_percent: float | None = None
    calls_per_second: int | None = None
    rate: float | None = None

    def over(self, former: Budget | None) -> Budget:
        return self if former is None else former.model_copy(update=self.model_dump(exclude_none=True))


class SamplingLimits(Noun):
    """Above `calls_per_second` a function's calls are recorded at `rate`; 0: never. The other two bound all functions together."""

    calls_per_second: int = 100_000
    rate: float = 0.01
    events_per_second: int | None = None
    overhead_percent: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> SamplingLimits:
        return cls(calls_per_second=settings["sampling.callsPerSecond"], rate=settings["sampling.rate"])

    def within(self, budget: Budget | None) -> SamplingLimits:
        """With what a caller asked for instead of what the settings say."""
        return self if budget is None else self.model_copy(update=budget.model_dump(exclude_none=True))


class SampledFunction(Noun):
    """`rate`: the share of its calls that is recorded now; `not_recorded`: how many were counted only."""

    function: str
    rate: float
    not_recorded: int


def by_function(hooks: Iterable[tuple[str, float, int]]) -> list[SampledFunction]:
    """Of (function, rate, calls not recorded) of each hook: a function may have several. Those with most calls left out first."""
    found: dict[str, SampledFunction] = {}
    for function, rate, not_recorded in hooks:
        if rate < 1 or not_recorded:
            before = found.get(function, SampledFunction(function=function, rate=1.0, not_recorded=0))
            found[function] = SampledFunction(function=function, rate=min(before.rate, rate), not_recorded=before.not_recorded + not_recorded)
    return sorted(found.values(), key=lambda one: (-one.not_recorded, one.function))
