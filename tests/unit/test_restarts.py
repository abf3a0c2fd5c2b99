"""When the supervisor restarts what died."""

from __future__ import annotations

from strobe.supervisor.nursery import describe
from strobe.supervisor.restarts import DEATHS_MAX, DELAY_MAX_S, REST_MAX_S, REST_S, STABLE_S, WINDOW_S, Restarts


def test_first_restart_is_at_once_and_later_ones_back_off() -> None:
    restarts = Restarts()
    assert [restarts.delay_s(now, spread=1.0) for now in (0, 1, 2, 3, 4)] == [0.0, 0.1, 0.2, 0.4, 0.8]


def test_one_death_too_many_in_the_window_is_the_end() -> None:
    restarts = Restarts()
    delays = [restarts.delay_s(n * 2.0) for n in range(DEATHS_MAX + 1)]
    assert None not in delays[:-1] and delays[-1] is None
    assert restarts.total == DEATHS_MAX + 1


def test_after_a_rest_it_starts_anew_and_each_rest_is_longer() -> None:
    restarts, now = Restarts(), 0.0
    rests = []
    for _ in range(7):
        while restarts.delay_s(now := now + 1) is not None:
            pass
        rests.append(restarts.rest_s())
        now += rests[-1] if rests[-1] < STABLE_S else 1
    assert rests == [REST_S, 2 * REST_S, 4 * REST_S, 8 * REST_S, 16 * REST_S, REST_MAX_S, REST_MAX_S]


def test_slow_deaths_are_forgiven() -> None:
    restarts = Restarts()
    assert all(restarts.delay_s(n * (WINDOW_S / DEATHS_MAX + 1)) is not None for n in range(100))


def test_a_stable_minute_starts_anew() -> None:
    restarts = Restarts()
    for now in range(DEATHS_MAX):
        restarts.delay_s(float(now))
    assert restarts.delay_s(DEATHS_MAX + STABLE_S + 1) == 0.0


def test_delays_are_spread_and_bounded() -> None:
    restarts = Restarts()
    restarts.delay_s(0.0)
    seen = {Restarts(deaths=restarts.deaths.copy()).delay_s(0.1) for _ in range(20)}
    assert len(seen) > 1 and all(delay is not None and 0.08 <= delay <= 0.12 for delay in seen)
    assert all(delay is None or delay <= DELAY_MAX_S * 1.2 for delay in (restarts.delay_s(0.2) for _ in range(4)))


def test_ends_in_words() -> None:
    assert describe(-9) == "killed by SIGKILL"
    assert describe(70) == "exit status 70"
    assert describe(None) == "ended"
