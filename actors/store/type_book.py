"""A session's bundles of types, by key: unpacked when first asked for, and kept as long as they are in use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from actors.store.reading import Reading
from strobe.values.bundle import Bundle

KEPT_MAX: Final = 16


class TypeBook:
    """Used by the ingest thread (add, stored) and all query threads."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._keys = set(keys)
        self._fresh: dict[str, bytes] = {}  # not committed yet
        self._bundles: OrderedDict[str, Bundle | None] = OrderedDict()

    def add(self, key: str, body: bytes) -> bool:
        """False: it is there already."""
        with self._lock:
            if key in self._keys:
                return False
            self._keys.add(key)
            self._fresh[key] = body
            return True

    def stored(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._fresh.pop(key, None)

    def bundle(self, key: str, reading: Reading) -> Bundle | None:
        """None: there is none, or it is damaged."""
        with self._lock:
            if key in self._bundles:
                self._bundles.move_to_end(key)
                return self._bundles[key]
            body = self._fresh.get(key)
        if body is None:
            found = reading.execute("SELECT body FROM types WHERE key = ?", [key]).fetchall()
            body = found[0][0] if found else None
        bundle = None if body is None else _unpacked(body)
        with self._lock:
            self._bundles[key] = bundle
            while len(self._bundles) > KEPT_MAX:
                self._bundles.popitem(last=False)
        return bundle


def _unpacked(body: bytes) -> Bundle | None:
    try:
        return Bundle.unpack(body)
    except ValueError:
        return None
