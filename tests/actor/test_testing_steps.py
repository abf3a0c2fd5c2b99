"""One step of a test run with a real keeper: what is kept of a verdict, and its end when the keeper is gone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, cast

from actors.session.testing.steps import LINE_BYTES_MAX, LiveStep
from strobe.adapters.adapter import Exit, Run, Step, Stream
from strobe.model.testing import StuckTest

WAIT_S = 10.0
SLEEPS = Step("sleeps", ("/bin/sh", "-c", "sleep 1000 & sleep 1000; true"), "/")


def running(group: int) -> list[int]:
    """Processes of a group that are no zombies."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(int(path.name))
    return found


def until_gone(group: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while running(group):
        assert time.monotonic() < deadline, running(group)
        time.sleep(0.01)


def until_begun(group: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while len(running(group)) < 3:
        assert time.monotonic() < deadline, running(group)
        time.sleep(0.01)


def test_a_verdict_is_known_to_who_takes_over(tmp_path: Path) -> None:
    first = LiveStep(SLEEPS, tmp_path / "process", dict(os.environ), time.monotonic_ns())
    group = os.getpgid(first.pid)
    stuck = StuckTest(name="waits", elapsed_ms=2000, diagnosis="deadlock, proven: …", kind="deadlock")
    assert not first.condemned_before
    first.condemn([stuck])
    second = LiveStep(SLEEPS, tmp_path / "process", dict(os.environ), time.monotonic_ns())
    try:
        assert second.condemned_before == [stuck] and second.pid == first.pid
    finally:
        second.close()
    until_gone(group)
    first.close()


def test_a_tree_ends_though_its_keeper_is_gone(tmp_path: Path) -> None:
    live = LiveStep(SLEEPS, tmp_path / "process", dict(os.environ), time.monotonic_ns())
    group = os.getpgid(live.pid)
    until_begun(group)
    os.kill(live._keeper.status().keeper_pid, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_S
    while not live._keeper.lost():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    live.close()
    until_gone(group)


class Heard:
    """What an adapter is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.events: list[dict[str, Any]] = []

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        self.lines.append(text)

    def event(self, step: str, event: dict[str, Any], at: float) -> None:
        self.events.append(event)


def advanced(live: LiveStep) -> Heard:
    heard, exit_ = Heard(), None
    deadline = time.monotonic() + WAIT_S
    while exit_ is None:
        exit_ = live.advance(cast("Run", heard))
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert exit_ == Exit(0)
    live.close()
    return heard


def test_of_a_line_without_end_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    script = "printf begin; head -c 30000000 /dev/zero | tr '\\0' x; printf 'panicked here'; echo; echo next"
    live = LiveStep(Step("prints", ("/bin/sh", "-c", script), "/"), tmp_path / "process", dict(os.environ), time.monotonic_ns())
    long, after = advanced(live).lines
    assert long.startswith("beginx") and long.endswith("xpanicked here") and len(long) <= LINE_BYTES_MAX
    assert after == "next"


def test_events_that_are_torn_are_counted_and_the_others_heard(tmp_path: Path) -> None:
    script = """printf '{"a": 1}\\n{"torn": \\n{"b": 2}\\n' >> "$STROBE_TEST_EVENTS" """
    live = LiveStep(Step("reports", ("/bin/sh", "-c", script), "/", events=True), tmp_path / "process", dict(os.environ), time.monotonic_ns())
    heard = advanced(live)
    assert heard.events == [{"a": 1}, {"b": 2}] and live.unread == 1
