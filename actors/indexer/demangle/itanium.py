"""C++ names, by the C++ runtime's own `__cxa_demangle` (Itanium C++ ABI §3.4), the reference implementation.

The libstdc++ that DuckDB needs anyway is loaded; LLVM's libc++abi serves where it is missing. A call takes about 3 µs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

_LIBRARIES: Final = ("libstdc++.so.6", "libc++abi.so.1")
_NAME_MAX: Final = 64 * 1024  # bytes of a linkage name worth demangling


@cache
def _function() -> Callable[[bytes], bytes | None] | None:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return _bind(library)
    return None


def _bind(library: ctypes.CDLL) -> Callable[[bytes], bytes | None]:
    demangler = library.__cxa_demangle
    demangler.restype = ctypes.c_void_p
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int)]
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    room = ctypes.c_size_t(4096)
    status = ctypes.c_int()
    buffer = libc.malloc(room.value)  # grown by the callee as needed, kept for life

    def run(name: bytes) -> bytes | None:
        nonlocal buffer
        text = demangler(name, buffer, room, status)
        if not text:
            return None
        buffer = text
        return ctypes.string_at(text)

    return run


def available() -> bool:
    return _function() is not None


def demangle(name: str) -> str | None:
    """The full name with parameters, or None when `name` is no C++ linkage name."""
    function = _function()
    if function is None or len(name) > _NAME_MAX:
        return None
    raw = name[1:] if name.startswith("__Z") else name
    text = function(raw.encode("utf-8", "surrogateescape"))
    return None if text is None else text.decode("utf-8", "replace")
