"""What was found by comparing payloads one by one, kept so that the next page and the next poll need not compare them again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

REMEMBERED_MAX: Final = 8


@dataclass(slots=True)
class Scanned:
    """Events with numbers in (`low`, `upto`] were compared; `numbers` of the payloads that met it."""

    low: int
    upto: int
    numbers: list[int] = field(default_factory=list)


class ScanCache:
    """Of one session file, used by all query threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Scanned] = OrderedDict()

    def get(self, key: str, low: int) -> Scanned:
        """A copy; a new one where nothing is known from `low` on."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.low > low or kept.upto < low:
                return Scanned(low, low)
            self._kept.move_to_end(key)
            return Scanned(kept.low, kept.upto, list(kept.numbers))

    def put(self, key: str, scanned: Scanned) -> None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.upto - kept.low <= scanned.upto - scanned.low:
                self._kept[key] = scanned
                self._kept.move_to_end(key)
            while len(self._kept) > REMEMBERED_MAX:
                self._kept.popitem(last=False)
