"""Bytes that are too many for a reply: in a file of the session's own folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from actors.session.memory.live import LiveMemory
from actors.session.memory.request import BYTES_MAX
from actors.session.memory.showing import Result, failure
from strobe import paths

FOLDER: Final = "memory"
FOLDER_BYTES_MAX: Final = 256 << 20
FILES_MAX: Final = 1000
PREVIEW: Final = 32
_BLOCK: Final = 1 << 20


def save_bytes(memory: LiveMemory, folder: Path, label: str, address: int, size: int) -> Result:
    """The result of a target of type bytes. What is not readable is left out, and said."""
    if not 0 < size <= BYTES_MAX:
        return failure(label, f"size {size:,} is out of range: 1 to {BYTES_MAX:,} bytes", "Read it in parts.")
    home = paths.private_folder(folder / FOLDER)
    taken = [entry.stat().st_size for entry in home.iterdir()]
    if sum(taken) + size > FOLDER_BYTES_MAX or len(taken) >= FILES_MAX:
        return failure(label, f"the session's files hold {sum(taken):,} of {FOLDER_BYTES_MAX:,} bytes", f"Delete what is not needed in {home}.")
    preview = memory.prefix(address, min(size, PREVIEW))
    if not preview:
        return failure(label, f"memory at {address:#x} cannot be read")
    path, written = _write(memory, home, len(taken), address, size)
    result: Result = {"target": label, "type": "bytes", "address": f"{address:#x}", "size": written, "file": str(path), "preview": preview.hex()}
    if written < size:
        result["note"] = f"Only {written:,} of {size:,} bytes are mapped there"
    return result


def _write(memory: LiveMemory, home: Path, number: int, address: int, size: int) -> tuple[Path, int]:
    """A name of digits alone, new in the folder."""
    while True:
        path = home / f"{number:04d}-{address:x}.bin"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            break
        except FileExistsError:
            number += 1
    written = 0
    with os.fdopen(file, "wb") as out:
        while written < size:
            piece = memory.prefix(address + written, min(_BLOCK, size - written))
            out.write(piece)
            written += len(piece)
            if len(piece) < min(_BLOCK, size - written + len(piece)):
                break
    return path, written
