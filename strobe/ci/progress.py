"""How a run is getting on: a live line on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from strobe.ci.suite import Watcher
from strobe.protocol.testing import TestStateReply
from strobe.render.plain import one_line

LINE_EVERY_S: Final = 10.0  # of a log
RUNNING_SHOWN: Final = 3


@contextmanager
def shown(title: str, *, quiet: bool = False) -> Iterator[Watcher | None]:
    """Told each state, it shows it."""
    if quiet:
        yield None
        return
    console = Console()
    if not console.is_terminal:
        yield _Lines(title)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def update(state: TestStateReply) -> None:
            live.update(Text(_line(title, state)), refresh=True)

        yield update


class _Lines:
    """A line when the phase changes, a test fails, and every ten seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._last: tuple[str, int] | None = None
        self._at = 0.0

    def __call__(self, state: TestStateReply) -> None:
        mark, now = (state.phase, state.failed), time.monotonic()
        if mark != self._last or now - self._at >= LINE_EVERY_S:
            self._last, self._at = mark, now
            sys.stdout.write(_line(self._title, state) + "\n")
            sys.stdout.flush()


def _line(title: str, state: TestStateReply) -> str:
    done = state.passed + state.failed + state.skipped
    of = f"/{state.expected}" if state.expected else ""
    parts = [f"{title}: {state.elapsed_ms / 1000:.0f} s", state.phase]
    if state.phase == "compiling":
        parts += [one_line(state.compile_message, 80)] if state.compile_message else []
    else:
        parts.append(f"{done}{of} done, {state.failed} failed")
        parts += [f"{one_line(one.name, 60)} ({one.elapsed_ms / 1000:.0f} s)" for one in state.running[:RUNNING_SHOWN]]
    return "  ".join(parts)
