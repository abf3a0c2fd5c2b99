"""From a lane's own clock to ns since the session's start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def to_session_ns(ticks: NDArray[np.uint64], clock: Sequence[int] | None, started_ns: int) -> NDArray[np.int64]:
    """`clock` is [tsc0, mono0, tsc1, mono1], two points of the line from ticks to CLOCK_MONOTONIC; None: ticks are that already."""
    if clock is None:
        return ticks.view(np.int64) - np.int64(started_ns)
    tsc0, mono0, tsc1, mono1 = clock
    since = (ticks - np.uint64(tsc0)).view(np.int64)  # may be negative: wraps rightly
    # Doubles are exact to 1 ns for 52 days around tsc0, which is at most seconds away.
    scaled = since * ((mono1 - mono0) / (tsc1 - tsc0))
    return scaled.astype(np.int64) + np.int64(mono0 - started_ns)
