"""From the pool's clock to CLOCK_MONOTONIC: which clock may be used, pairs of both, and a line through them that never jumps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strobe.lanes.layout import Clock
from strobe.lanes.machine import machine

_TRIES: Final = 24
_SPAN_NS: Final = 1_000_000_000
_FIRST_NS: Final = 10_000_000  # the baseline from which a first rate is good enough to start (0.01 %)
_LATER_NS: Final = 1_000_000_000
_OFF_MAX_NS: Final = 1_000_000  # taken back in one second: the rate changes by 0.1 % at most


def choose_clock(cpuinfo: str | None = None, clocksource: str | None = None) -> Clock:
    """TSC only where it runs at one rate, in sleep states too, and the kernel itself trusts it on all processors."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    if clocksource is None:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        clocksource = source.read_text() if source.exists() else ""
    flags = next((set(line.split(":", 1)[1].split()) for line in cpuinfo.splitlines() if line.startswith("flags")), set())
    trusted = {"constant_tsc", "nonstop_tsc"} <= flags and clocksource.strip() == "tsc"
    return Clock.TSC if trusted and machine() is not None else Clock.MONOTONIC


@dataclass(frozen=True)
class ClockPair:
    """The same instant in both clocks: ticks, and ns of CLOCK_MONOTONIC."""

    tsc: int
    mono: int


def sample_pair() -> ClockPair:
    """The tightest of a few readings; its error is half of one reading's width, some 100 ns."""
    functions = machine()
    if functions is None:
        raise RuntimeError("the time-stamp counter cannot be read here; choose_clock() says so")
    best: tuple[int, ClockPair] | None = None
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        ticks = functions.read_tsc()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, ClockPair(ticks, (before + after) // 2))
    assert best is not None
    return best[1]


class ClockLine:
    """ns = mono0 + (ticks − tsc0) × rate, corrected each second without a step.

    A new line starts on the old one, at the time of the correction, and its rate takes back within a second what the old one was off.
    So times converted by two lines in succession never swap (the rates differ by less than 1e-6).
    """

    def __init__(self, origin: ClockPair | None = None) -> None:
        first = origin or sample_pair()
        second = sample_pair()
        while second.mono - first.mono < _FIRST_NS:
            time.sleep((_FIRST_NS - (second.mono - first.mono)) / 1e9)
            second = sample_pair()
        self._origin = first
        self._last = second
        self._tsc = second.tsc
        self._mono = second.mono
        self._rate = (second.mono - first.mono) / (second.tsc - first.tsc)
        self._next_ns = second.mono + 10 * _FIRST_NS

    def mono(self, ticks: int) -> int:
        return self._mono + round((ticks - self._tsc) * self._rate)

    def ticks(self, mono_ns: int) -> int:
        return self._tsc + round((mono_ns - self._mono) / self._rate)

    def correct(self, now_ns: int) -> None:
        """Takes a new sample once it is due. Cheap otherwise: call it as often as you like."""
        if now_ns < self._next_ns:
            return
        sample = sample_pair()
        on_line = self.mono(sample.tsc)
        average = (sample.mono - self._origin.mono) / (sample.tsc - self._origin.tsc)
        # The kernel may slew its clock: follow the present rate, smoothed against the error of single samples.
        present = (sample.mono - self._last.mono) / (sample.tsc - self._last.tsc) if now_ns - self._last.mono >= _LATER_NS // 2 else average
        off = sample.mono - on_line
        self._last = sample
        self._tsc, self._mono = sample.tsc, on_line
        if abs(off) > _OFF_MAX_NS:  # the machine slept: one clock stood still. Only a step is right here.
            self._origin, self._mono, off, present = sample, sample.mono, 0, self._rate
            average = present
        self._rate = (average + present) / 2 * (1 + off / _LATER_NS)
        self._next_ns = now_ns + _LATER_NS

    def points(self) -> list[int]:
        """[tsc0, mono0, tsc1, mono1]: two points of the line a second apart, as batches carry them."""
        ticks = round(_SPAN_NS / self._rate)
        return [self._tsc, self._mono, self._tsc + ticks, self._mono + round(ticks * self._rate)]
