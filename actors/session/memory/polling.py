"""debug_memory's poll: samples at even times, told as `variable_snapshot` events on the timeline's clock.

A thread of its own: an event loop's other work must not move the samples, and theirs not its. Ticks are counted from the start, so that being late
once moves no later one; ticks that have passed are left out and counted.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from actors.session.collector import Collector
from actors.session.memory.looking import Look
from actors.session.memory.showing import Shower
from strobe.errors import StrobeError
from strobe.expression import Scalar, Unavailable
from strobe.render.budget import compact_json
from strobe.values.typed import TypedValue

MS: Final = 1_000_000
SAMPLE_TOKENS: Final = 1500  # all values of one sample
_SHOWN: Final = 120  # characters of a value in an event's text
_STOP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    values: dict[str, Any]
    errors: dict[str, str]

    def text(self) -> str:
        parts = [f"{label} = {_short(value)}" for label, value in self.values.items()]
        return ", ".join([*parts, *(f"{label}: {reason}" for label, reason in self.errors.items())])


@dataclass
class Figures:
    samples: int = 0
    missed: int = 0
    events: int = 0
    first_ns: int = 0
    last_ns: int = 0

    @property
    def achieved_ms(self) -> float | None:
        return (self.last_ns - self.first_ns) / (self.samples - 1) / MS if self.samples > 1 else None


@dataclass
class Poll:
    """`ended` is called from the poll's thread, last of all."""

    id: str
    look: Look
    collector: Collector
    interval_ms: int
    duration_ms: int
    on_change: bool
    ended: Callable[[Poll], None]
    figures: Figures = field(default_factory=Figures)

    def __post_init__(self) -> None:
        self._stop, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name=f"poll {self.id}", daemon=True)
        self._last: Sample | None = None
        self._closing = threading.Lock()
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Its last event is told when this returns. Safe to call again."""
        with self._closing:
            if not self._closed:
                os.write(self._wake, b"\0")
        self.join(timeout_s)

    def join(self, timeout_s: float = _STOP_S) -> None:
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        reason = "it failed"
        try:
            reason = self._sampled()
        except StrobeError as error:
            reason = error.what
        finally:
            self._tell_end(reason)
            with self._closing:
                self._closed = True
                os.close(self._stop)
                os.close(self._wake)
            self.ended(self)

    def _sampled(self) -> str:
        """Why it ended."""
        try:
            process = os.pidfd_open(self.look.memory.pid)
        except ProcessLookupError:
            return "the target has ended"
        try:
            watched = select.poll()
            watched.register(process, select.POLLIN)
            watched.register(self._stop, select.POLLIN)
            return self._ticks(watched, process)
        finally:
            os.close(process)

    def _ticks(self, watched: select.poll, process: int) -> str:
        start = time.monotonic_ns()
        count = self.duration_ms // self.interval_ms + 1
        tick = 0
        while tick < count:
            self._sample(tick)
            late = (time.monotonic_ns() - start) // (self.interval_ms * MS)
            self.figures.missed += max(0, min(late, count - 1) - tick)
            tick = max(tick, late) + 1
            if tick >= count:
                break
            ready = _wait_until(watched, start + tick * self.interval_ms * MS)
            if process in ready:
                return "the target has ended"
            if ready:
                return "the session was stopped"
        return "its time is up"

    def _sample(self, tick: int) -> None:
        with self.collector.holding():
            now = time.monotonic_ns()
            self.look.again()
            sample = take(self.look)
            self.figures.samples += 1
            self.figures.first_ns = self.figures.first_ns or now
            self.figures.last_ns = now
            shown = sample if self._last is None or not self.on_change else _changed(self._last, sample)
            self._last = sample
            if shown.values or shown.errors:
                self.figures.events += 1
                data: dict[str, Any] = {"poll": self.id, "sample": tick, "values": shown.values}
                self._tell(now, shown.text(), data | ({"errors": shown.errors} if shown.errors else {}))

    def _tell_end(self, reason: str) -> None:
        figures = self.figures
        achieved = figures.achieved_ms
        data = {
            "poll": self.id, "done": True, "endedBy": reason, "samples": figures.samples, "missed": figures.missed, "events": figures.events,
            "askedIntervalMs": self.interval_ms, "achievedIntervalMs": None if achieved is None else round(achieved, 3),
        }  # fmt: skip
        pace = "" if achieved is None else f", one each {achieved:.2f} ms (asked: {self.interval_ms})"
        missed = f", {figures.missed} left out" if figures.missed else ""
        self._tell(time.monotonic_ns(), f"{self.id} ended, {reason}: {figures.samples} samples{pace}{missed}", data)

    def _tell(self, ts_ns: int, text: str, data: dict[str, Any]) -> None:
        pid = self.look.memory.pid
        self.collector.tell_timed({"type": "variable_snapshot", "tsNs": ts_ns, "pid": pid, "tid": pid, "text": text, "data": data})


def take(look: Look) -> Sample:
    """All targets as they are now."""
    shower = look.shower()
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    each = max(40, SAMPLE_TOKENS // len(look.request.wanted))
    for wanted in look.request.wanted:
        outcome = look.outcome(wanted)
        if isinstance(outcome, Unavailable):
            errors[wanted.label] = outcome.reason
        else:
            values[wanted.label] = _value(shower, outcome, each)
    return Sample(values, errors)


def _value(shower: Shower, outcome: object, tokens: int) -> Any:
    if isinstance(outcome, Scalar):
        return outcome.value
    assert isinstance(outcome, TypedValue)
    return shower.fitted(outcome, tokens)[0]


def _changed(last: Sample, now: Sample) -> Sample:
    values = {label: value for label, value in now.values.items() if label not in last.values or last.values[label] != value}
    return Sample(values, {label: reason for label, reason in now.errors.items() if last.errors.get(label) != reason})


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _wait_until(watched: select.poll, at_ns: int) -> set[int]:
    """What became ready before. select's timeouts are whole milliseconds: the rest is slept."""
    while (left := at_ns - time.monotonic_ns()) > 0:
        if left < MS:
            time.sleep(left / 1e9)
            return set()
        ready = watched.poll(left // MS)
        if ready:
            return {file for file, _ in ready}
    return set()
