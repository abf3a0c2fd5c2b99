"""Compressed debug sections: zlib and zstd by the gABI's Elf64_Chdr, and the older `.zdebug_` form ("ZLIB" and a big-endian size)."""

from __future__ import annotations

import ctypes
import struct
import zlib
from typing import Final

_ZLIB: Final = 1  # ELFCOMPRESS_ZLIB
_ZSTD: Final = 2  # ELFCOMPRESS_ZSTD
_HEADER: Final = struct.Struct("<IIQQ")
_SIZE_MAX: Final = 8 << 30  # bytes a section may claim to inflate to
_RATIO_MAX: Final = 1100  # deflate cannot exceed 1032:1 (zlib's technical notes); more is a lie about the size


def inflate(raw: bytes, *, flagged: bool) -> bytes:
    """`raw` as it was before compression. `flagged`: SHF_COMPRESSED is set. Raises ValueError in words."""
    if flagged:
        if len(raw) < _HEADER.size:
            raise ValueError("cut short inside its compression header")
        kind, _, size, _ = _HEADER.unpack_from(raw, 0)
        body = raw[_HEADER.size :]
    elif raw[:4] == b"ZLIB" and len(raw) >= 12:
        kind, size, body = _ZLIB, int.from_bytes(raw[4:12], "big"), raw[12:]
    else:
        return raw
    if kind == _ZLIB:
        return _zlib(body, size)
    if kind == _ZSTD:
        return _zstd(body, size)
    raise ValueError(f"compression type {kind} is unknown")


def _zlib(body: bytes, size: int) -> bytes:
    if size > min(_SIZE_MAX, len(body) * _RATIO_MAX + 64):
        raise ValueError(f"claims to inflate to {size} bytes")
    try:
        text = zlib.decompressobj().decompress(body, size + 1)
    except zlib.error as error:
        raise ValueError(f"zlib data is damaged ({error})") from error
    return _checked(text, size)


def _zstd(body: bytes, size: int) -> bytes:
    """Through the system's libzstd: Python has no zstd of its own before 3.14."""
    if size > _SIZE_MAX:
        raise ValueError(f"claims to inflate to {size} bytes")
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise ValueError("is compressed with zstd, and libzstd.so.1 is not installed") from error
    decompress = library.ZSTD_decompress
    decompress.restype = ctypes.c_size_t
    decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    target = ctypes.create_string_buffer(size) if size else ctypes.create_string_buffer(1)
    written = decompress(target, size, body, len(body))
    if library.ZSTD_isError(written):
        raise ValueError("zstd data is damaged")
    return _checked(target.raw[:written], size)


def _checked(text: bytes, size: int) -> bytes:
    if len(text) != size:
        raise ValueError(f"inflates to {len(text)} bytes instead of {size}")
    return text
