"""Batches that cannot be taken or decoded: kept as a file for whoever looks into it, counted as lost, and acknowledged, so that one bad
batch never stops a session's stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from strobe.paths import private_folder

FILES_MAX: Final = 32
BYTES_MAX: Final = 4 << 20
REJECTED: Final = "rejected"  # the cause under which their events are counted


def keep(folder: Path, name: str, header: Mapping[str, Any], frames: Sequence[Any], error: Exception) -> Path | None:
    """Writes the batch to `folder`; None when that holds enough already, or the batch is too large."""
    private_folder(folder)
    if sum(1 for _ in folder.iterdir()) >= FILES_MAX or sum(len(frame) for frame in frames) > BYTES_MAX:
        return None
    path = folder / f"{name}.msgpack"
    whole = {"error": repr(error), "header": dict(header), "frames": [bytes(frame) for frame in frames]}
    path.write_bytes(msgpack.packb(whole, default=repr))
    path.chmod(0o600)
    return path


def events_in(header: Mapping[str, Any], frames: Sequence[Any]) -> int:
    """How many events a batch holds, as far as that can be told."""
    match header.get("kind"):
        case "records" if frames:
            return int(np.count_nonzero(np.frombuffer(frames[0], dtype=np.uint8)))
        case "output":
            return len(header.get("segments") or ())
        case "event":
            return len(header.get("events") or ())
        case _:
            return 0
