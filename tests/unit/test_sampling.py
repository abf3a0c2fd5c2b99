"""Which functions are sampled at which rate: the policy, and how rates are estimated."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from actors.session.collector.sampling import CALL_NS, CALM_WINDOWS, LEFT_OUT_NS, Sampling
from strobe.launch.processor import ProcessorTime
from strobe.model.sampling import Budget, SamplingLimits

LIMITS = SamplingLimits(calls_per_second=100_000, rate=0.01)


def decide(sampling: Sampling, rates: list[float], periods: list[int], limits: SamplingLimits = LIMITS, processor: float = 1.0) -> list[int]:
    return list(map(int, sampling.decide(np.array(rates, dtype=float), np.array(periods, dtype=np.uint32), limits, processor)))


def test_only_hot_functions_are_sampled() -> None:
    assert decide(Sampling(), [0, 99_999, 100_001, 5_000_000], [0, 0, 0, 0]) == [0, 0, 100, 100]


def test_the_rate_is_the_callers() -> None:
    assert decide(Sampling(), [200_000], [0], LIMITS.within(Budget(rate=0.2))) == [5]
    assert decide(Sampling(), [200_000], [0], LIMITS.within(Budget(rate=1))) == [0]
    assert decide(Sampling(), [200_000], [0], LIMITS.within(Budget(calls_per_second=1_000_000))) == [0]
    assert decide(Sampling(), [9e9], [0], LIMITS.within(Budget(calls_per_second=0))) == [0]


def test_a_function_that_calms_down_is_recorded_whole_after_a_while() -> None:
    sampling = Sampling()
    assert decide(sampling, [200_000], [0]) == [100]
    assert decide(sampling, [60_000], [100]) == [100]  # more than half of what is allowed
    for _ in range(CALM_WINDOWS - 1):
        assert decide(sampling, [10], [100]) == [100]
    assert decide(sampling, [300_000], [100]) == [100]  # a burst: counting begins anew
    for _ in range(CALM_WINDOWS - 1):
        assert decide(sampling, [10], [100]) == [100]
    assert decide(sampling, [10], [100]) == [0]


def test_a_budget_of_events_takes_from_the_most_frequent() -> None:
    limits = SamplingLimits(calls_per_second=0, events_per_second=20_000)
    rates = [100.0, 2_000.0, 50_000.0, 90_000.0]
    periods = decide(Sampling(), rates, [0, 0, 0, 0], limits)
    assert periods[:2] == [0, 0]
    recorded = [rate / max(period, 1) for rate, period in zip(rates, periods, strict=True)]
    assert sum(recorded) <= 10_000
    assert sum(recorded) > 8_000
    assert recorded[2] == pytest.approx(recorded[3], rel=0.2)


def test_within_a_budget_nothing_is_sampled() -> None:
    assert decide(Sampling(), [100.0, 2_000.0], [0, 0], SamplingLimits(events_per_second=10_000)) == [0, 0]
    assert decide(Sampling(), [0.0], [0], SamplingLimits(events_per_second=1)) == [0]


def test_overhead_counts_what_is_only_counted_too() -> None:
    limits = SamplingLimits(calls_per_second=0, overhead_percent=5)
    rates = [1_000_000.0]
    [period] = decide(Sampling(), rates, [0], limits, processor=1.0)
    cost_ns = rates[0] / period * CALL_NS + rates[0] * (1 - 1 / period) * LEFT_OUT_NS
    assert cost_ns <= 0.05 * 1e9
    [tighter] = decide(Sampling(), rates, [0], limits, processor=0.6)
    assert tighter > period
    assert decide(Sampling(), rates, [0], limits, processor=0.1) == [1_000_000]  # even counting is more: as little as there is


def test_shares_of_a_budget_are_steady() -> None:
    """A rate that goes up and down a little changes nothing."""
    sampling, limits, generator = Sampling(), SamplingLimits(events_per_second=20_000), np.random.default_rng(7)
    periods = decide(sampling, [50_000, 50_000], [0, 0], limits)
    for _ in range(200):
        after = decide(sampling, (50_000 * generator.uniform(0.85, 1.0, 2)).tolist(), periods, limits)
        assert after == periods


def test_other_limits_count_at_once() -> None:
    sampling = Sampling()
    assert decide(sampling, [200_000], [0]) == [100]
    assert decide(sampling, [200_000], [100], LIMITS.within(Budget(calls_per_second=0))) == [0]


def test_a_budgets_share_makes_no_function_hot() -> None:
    """60,000 calls a second are within the limit, whatever share of them a budget leaves."""
    limits = LIMITS.within(Budget(events_per_second=40_000))
    sampling = Sampling()
    periods = decide(sampling, [60_000.0], [0], limits)
    assert periods == [3]
    assert decide(sampling, [60_000.0], periods, limits) == [3]


def test_the_first_look_at_a_process_counts_from_then_on() -> None:
    """A process that has worked since long ago, and sleeps now."""
    began = time.monotonic_ns()
    processor = ProcessorTime(os.getpid(), began)
    busy = processor.busy(began + 1_000_000_000)
    assert 0 <= busy < 0.5
    assert ProcessorTime(0, began).busy(began + 1) == 0
