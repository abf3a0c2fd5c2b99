"""Searching sections of many megabytes for a few bytes: glibc's memmem is several times as fast as bytes.find for those."""

from __future__ import annotations

import ctypes
from typing import Final

_LONG: Final = 4096  # bytes to look through; for less a call costs more than it saves
_memmem = ctypes.CDLL(None).memmem
_memmem.restype = ctypes.c_void_p
_memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)


def find(data: bytes, needle: bytes, begin: int, end: int) -> int:
    """Like `data.find(needle, begin, end)`."""
    begin, end = max(0, begin), min(end, len(data))
    if end - begin < _LONG or not needle:
        return data.find(needle, begin, end)
    base = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
    found = _memmem(base + begin, end - begin, needle, len(needle))
    return -1 if found is None else found - base
