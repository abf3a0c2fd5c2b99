"""The indexer's files under `cache/<build-id>/`: written to a temporary name and renamed, checked when read, rebuilt when stale or damaged.

A file is: magic, format version, stamp (of what it was made from), CRC-32 of the body, body. Without a build-id the folder is named after
the file's size, mtime and headers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from actors.indexer.elf import ElfFile
from strobe import paths

FORMAT: Final = 1
CACHE_BYTES_MAX: Final = 4 << 30
_HEADER: Final = struct.Struct("<8sII32sQ")  # magic, format, crc, stamp, body bytes
_MAGIC: Final = b"STRBIDX\0"
HEADER_BYTES: Final = 64


def stamp_of(*files: ElfFile | None, extra: str = "") -> bytes:
    """32 bytes that change when one of the files, or the format, does."""
    digest = hashlib.sha256(f"{FORMAT};{extra}".encode())
    for elf in files:
        if elf is not None:
            stamp = elf.stamp
            digest.update(f"{stamp.path};{stamp.size};{stamp.mtime_ns};{elf.build_id}".encode("utf-8", "surrogateescape"))
    return digest.digest()


def folder_of(elf: ElfFile) -> Path:
    if elf.build_id:
        return paths.cache_folder() / elf.build_id
    headers = hashlib.sha256(elf.data[:65536])
    headers.update(f"{elf.stamp.size};{elf.stamp.mtime_ns}".encode())
    return paths.cache_folder() / f"x{headers.hexdigest()[:39]}"


def write(path: Path, stamp: bytes, body: bytes) -> None:
    """Atomic: a reader sees the old file or the new one. Errors: OSError (disk full, no permission)."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    head = _HEADER.pack(_MAGIC, FORMAT, zlib.crc32(body), stamp, len(body)).ljust(HEADER_BYTES, b"\0")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(head)
            file.write(body)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path, stamp: bytes) -> bytes | None:
    """The body, or None when there is no such file, it was made from something else, or it is damaged (it is removed then)."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    with contextlib.suppress(OSError):  # gone meanwhile, or a home that cannot be written to: then nothing is trimmed either
        os.utime(path)  # when it was last used: see trim
    if len(raw) >= HEADER_BYTES:
        magic, version, crc, made_from, size = _HEADER.unpack_from(raw, 0)
        if magic == _MAGIC and version == FORMAT and made_from == stamp and len(raw) == HEADER_BYTES + size:
            body = raw[HEADER_BYTES:]
            if zlib.crc32(body) == crc:
                return body
    path.unlink(missing_ok=True)
    return None


def _folders() -> Iterator[tuple[float, int, Path]]:
    """(last use, bytes, folder) of each."""
    for folder in paths.cache_folder().iterdir():
        if folder.is_dir():
            facts = [file.stat() for file in folder.iterdir() if file.is_file()]
            yield max((fact.st_mtime for fact in facts), default=0.0), sum(fact.st_size for fact in facts), folder


def trim(bytes_max: int = CACHE_BYTES_MAX) -> int:
    """Removes the folders longest unused until the cache is within its bound. Returns the bytes freed. Errors: OSError."""
    folders = sorted(_folders())
    total = sum(size for _, size, _ in folders)
    freed = 0
    for _, size, folder in folders:
        if total - freed <= bytes_max:
            break
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        folder.rmdir()
        freed += size
    return freed
