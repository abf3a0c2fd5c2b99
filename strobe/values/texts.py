"""Texts: characters at an address or in the object, and bytes that are no text."""

from __future__ import annotations

import base64
from typing import Final

from strobe.values.memory import Missing
from strobe.values.view import CUT, MORE, Json, Shape, View

CODECS: Final = {1: "utf-8", 2: "utf-16-le", 4: "utf-32-le"}
_CHUNK: Final = 64  # most texts are shorter: read first


def said(raw: bytes, unit: int, *, cut: bool) -> str:
    """Texts as they are; what is no text in base64. `cut`: there is more of it."""
    more = MORE if cut else ""
    try:
        return raw.decode(CODECS[unit]) + more
    except UnicodeDecodeError as error:
        if cut and error.end == len(raw) and len(raw) - error.start < 4:
            return raw[: error.start].decode(CODECS[unit], "replace") + more  # cut inside a character
    return f"base64:{base64.b64encode(raw).decode()}{more}"


def of_characters(raw: bytes, unit: int, *, cut: bool) -> str:
    """A row of characters that nobody calls a text: one only if it has no 0 but at its end."""
    end = len(raw)
    while end >= unit and not any(raw[end - unit : end]):
        end -= unit
    if _zero(raw[:end], unit) is None:
        return said(raw[:end], unit, cut=cut)
    return f"base64:{base64.b64encode(raw).decode()}{MORE if cut else ''}"


def ended(raw: bytes, unit: int) -> tuple[bytes, bool]:
    """(what is before the first 0, whether there is one)."""
    end = _zero(raw, unit)
    return (raw, False) if end is None else (raw[:end], True)


def _zero(raw: bytes, unit: int) -> int | None:
    """Where the first 0 is."""
    at = raw.find(bytes(unit))
    while at >= 0 and at % unit:
        at = raw.find(bytes(unit), at + 1)
    return None if at < 0 else at


def at_pointer(view: View, address: int, unit: int, length: int | None) -> Json:
    """The text at `address`: of `length` characters, or up to a 0."""
    if address == 0 and not length:
        return None if length is None else ""
    limit = view.limits.text * unit
    if length is not None:
        return _of_length(view, address, unit, length, limit)
    raw, missing = view.prefix(address, min(_CHUNK * unit, limit + unit))
    found, is_whole = ended(raw, unit)
    if not is_whole and missing is None and len(raw) < limit + unit:
        raw, missing = view.prefix(address, limit + unit)
        found, is_whole = ended(raw, unit)
    if not found and not is_whole:
        return str(missing) if missing is not None else MORE
    return said(found[: len(found) - len(found) % unit][:limit], unit, cut=not is_whole or len(found) > limit)


def _of_length(view: View, address: int, unit: int, length: int, limit: int) -> Json:
    size = max(0, min(length * unit, limit))
    raw, missing = view.prefix(address, size)
    if missing is not None and not raw:
        return str(missing)
    return said(raw[: len(raw) - len(raw) % unit], unit, cut=missing is not None or length * unit > limit)


class TextPointerShape(Shape):
    """`char *`. Beyond depth too: a text leads nowhere further."""

    __slots__ = ("unit",)
    is_key = True
    size: int

    def __init__(self, unit: int) -> None:
        super().__init__(8)
        self.unit = unit

    def show(self, view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        return view.text(at_pointer(view, int.from_bytes(data[at : at + 8], "little"), self.unit, None)) if view.left > 0 else CUT


class TextArrayShape(Shape):
    """`char[16]`: up to its first 0."""

    __slots__ = ("unit",)
    is_key = True
    size: int

    def __init__(self, count: int, unit: int) -> None:
        super().__init__(count * unit)
        self.unit = unit

    def show(self, view: View, data: bytes, at: int, _address: int, _depth: int, /) -> Json:
        limit = view.limits.text * self.unit
        found, _ = ended(data[at : at + min(self.size, limit + self.unit)], self.unit)
        return view.text(said(found[:limit], self.unit, cut=len(found) > limit)) if view.left > 0 else CUT

    def apart(self, view: View, address: int, _depth: int, missing: Missing | None, /) -> Json:
        raw, missing = view.prefix(address, min(self.size, (view.limits.text + 1) * self.unit))
        found, is_whole = ended(raw, self.unit)
        if not found and not is_whole:
            return str(missing)
        limit = view.limits.text * self.unit
        return said(found[: len(found) - len(found) % self.unit][:limit], self.unit, cut=not is_whole or len(found) > limit)
