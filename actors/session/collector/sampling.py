"""Which functions are sampled, and how: what is called too often is recorded only now and then, and its other calls are counted."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from strobe.model.sampling import SamplingLimits

CALL_NS: Final = 250.0  # what a recorded call costs the target, about (tests/bench/BENCHMARKS.md)
LEFT_OUT_NS: Final = 25.0  # and one that only is counted
CALM_WINDOWS: Final = 20  # so many in a row a function must be called less than half as often as it may, until it is recorded more often again
PERIOD_MAX: Final = 1_000_000
_Numbers = NDArray[np.float64]
Periods = NDArray[np.uint32]


class Sampling:
    """Pure: rates in, periods out. A period of n > 1: of n calls one is recorded; 0: all are."""

    def __init__(self) -> None:
        self._calm: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._limits: SamplingLimits | None = None

    def decide(self, rates: _Numbers, periods: Periods, limits: SamplingLimits, processor: float) -> Periods:
        """`rates`: calls a second of each hook; `processor`: how many processors the target keeps busy. Answers as many periods."""
        if self._calm.size < rates.size:
            self._calm = np.pad(self._calm, (0, rates.size - self._calm.size))
        if limits != self._limits:  # asked for: at once
            self._limits = limits
            self._calm[:] = CALM_WINDOWS
        wanted = self._wanted(rates, periods, limits, processor)
        present = np.maximum(periods, 1)
        less = wanted < present
        self._calm[: rates.size] = np.where(less, self._calm[: rates.size] + 1, 0)
        # At once to fewer records, only after a while to more: a function whose calls come in bursts stays as it is.
        settled = np.where(less & (self._calm[: rates.size] < CALM_WINDOWS), present, wanted)
        return np.where(settled > 1, settled, 0).astype(np.uint32)

    def _wanted(self, rates: _Numbers, periods: Periods, limits: SamplingLimits, processor: float) -> _Numbers:
        """From 1 on. What is sampled already stays so down to half the rate, and what has a share of a budget until it needs less than half of it."""
        wanted = np.ones(rates.size)
        if limits.calls_per_second > 0:
            period = round(1 / limits.rate)
            was_hot = periods >= max(period, 2)  # a budget alone takes less
            wanted[rates > np.where(was_hot, limits.calls_per_second / 2, limits.calls_per_second)] = period
        allowed = self._allowed(rates, limits, processor)
        if allowed is not None:
            cap = _cap(rates / wanted, allowed)
            wanted = np.maximum(wanted, np.ceil(rates / cap))
            present = np.maximum(periods, 1)
            wanted = np.where((wanted < present) & (2 * wanted > present), present, wanted)
        bounded: _Numbers = np.minimum(wanted, PERIOD_MAX)
        return bounded

    def _allowed(self, rates: _Numbers, limits: SamplingLimits, processor: float) -> float | None:
        """Recorded calls a second, of all functions together."""
        bounds = []
        if limits.events_per_second is not None:
            bounds.append(limits.events_per_second / 2)  # a call is two events
        if limits.overhead_percent is not None:
            left_ns = limits.overhead_percent / 100 * processor * 1e9 - float(rates.sum()) * LEFT_OUT_NS
            bounds.append(left_ns / (CALL_NS - LEFT_OUT_NS))
        return max(min(bounds), 1.0) if bounds else None


def _cap(rates: _Numbers, allowed: float) -> float:
    """The rate to which the highest are cut so that all together are `allowed` (water-filling): who calls seldom keeps everything."""
    if float(rates.sum()) <= allowed:
        return float(rates.max(initial=1.0))
    left, count = allowed, rates.size
    for rate in np.sort(rates).tolist():
        if rate * count >= left:
            break
        left -= rate
        count -= 1
    return max(left / max(count, 1), 1e-3)
