"""The cursor: where a page ended, and what must stay the same on the next one. Opaque to callers, checked when it comes back."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from strobe.errors import Code, StrobeError
from strobe.model.query import Query

_NOT_FILTERS = {"cursor", "limit", "offset", "verbose", "view"}


@dataclass(frozen=True, slots=True)
class Cursor:
    """`last_n` and `settled_ns` fix what the first page saw; `key` is the order key of the last row shown; `total` the count then."""

    query: str
    last_n: int
    settled_ns: int
    newest_ns: int
    total: int
    key: tuple[int, ...]

    def pack(self) -> str:
        return _packed(self._fixed(), self.key)

    def pack_at(self, keys: Iterable[tuple[int, ...]]) -> list[str]:
        """The same cursor at other places."""
        fixed = self._fixed()
        return [_packed(fixed, key) for key in keys]

    def _fixed(self) -> str:
        return json.dumps([self.query, self.last_n, self.settled_ns, self.newest_ns, self.total], separators=(",", ":"))[:-1]


def _packed(fixed: str, key: tuple[int, ...]) -> str:
    return base64.urlsafe_b64encode(f"{fixed},{','.join(map(str, key))}]".encode()).decode().rstrip("=")


def query_hash(session_id: str, query: Query) -> str:
    """Of everything that decides which events there are and in which order; not of the page's size."""
    filters = query.model_dump(mode="json", exclude=_NOT_FILTERS)
    if query.view != "events":
        filters["view"] = query.view  # whose cursors count rows
    return hashlib.sha256(json.dumps([session_id, filters], sort_keys=True).encode()).hexdigest()[:12]


def read_cursor(session_id: str, query: Query, key_length: int) -> Cursor | None:
    """The query's cursor; VALIDATION_ERROR when it is none of ours, or of another query."""
    if query.cursor is None:
        return None
    try:
        padded = query.cursor + "=" * (-len(query.cursor) % 4)
        name, *numbers = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        whole = isinstance(name, str) and all(type(number) is int and abs(number) < 1 << 63 for number in numbers)
    except (ValueError, TypeError):
        name, numbers, whole = "", [], False
    if not whole or len(numbers) < 5:
        raise StrobeError(Code.VALIDATION_ERROR, "cursor is not one that debug_query gave out.", "Leave it out for the first page.", value=query.cursor[:80])
    if name != query_hash(session_id, query) or len(numbers) != 4 + key_length:
        what = "cursor belongs to another query."
        raise StrobeError(Code.VALIDATION_ERROR, what, "Repeat the query's filters and order exactly, or leave cursor out.", value=query.cursor[:80])
    last_n, settled, newest, total, *key = numbers
    return Cursor(name, last_n, settled, newest, total, tuple(key))
