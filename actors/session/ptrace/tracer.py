"""The thread in which a target is held."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def run_as_tracer(work: Callable[[], T]) -> T:
    """`work` in a thread of its own, whose end lets every tracee go. Blocks; raises what `work` raised."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            failure.append(error)

    thread = threading.Thread(target=run, name="tracer")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
