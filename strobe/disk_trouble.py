"""Errors that a file system or a limit causes, as errors that name it and what helps. Standard library only: the shim uses it too.

Errors of the operating system are known by their number; those of libraries that only tell them as text (DuckDB), by that text.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strobe.errors import Code, StrobeError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_CLOSED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
_FILES: Final = (errno.EMFILE, errno.ENFILE)
_OTHERS: Final = (errno.EFBIG, errno.EIO, errno.ENOMEM)


def number_of(error: BaseException) -> int | None:
    """The errno behind it; None: it is about something else."""
    if isinstance(error, OSError):
        return error.errno if error.errno in (*_FULL, *_CLOSED, *_FILES, *_OTHERS) else None
    text = str(error)
    return next((number for number in (*_FULL, *_CLOSED, *_FILES, *_OTHERS) if os.strerror(number) in text), None)


def trouble(error: BaseException, place: Path) -> StrobeError | None:
    """What happened at `place` and what helps; None when the error is not the machine's."""
    number = number_of(error)
    if number is None:
        return None
    said = os.strerror(number)
    if number in _FILES:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        what = f"No more files can be opened ({said}; this process may have {limit:,})."
        return StrobeError(Code.LIMIT_EXCEEDED, what, "Raise the limit (`ulimit -n`), or end sessions.", value=limit)
    if number == errno.ENOMEM:
        return StrobeError(Code.LIMIT_EXCEEDED, f"The machine has no memory left ({said}).", "End programs or sessions; it goes on by itself then.")
    mount, free = file_system(place)
    if number in _CLOSED:
        what = f"{place} cannot be written: {said} (file system {mount})."
        return StrobeError(Code.LIMIT_EXCEEDED, what, "Make it writable, or set STROBE_HOME to a folder that is.", value=str(place))
    if number == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        what = f"A file in {place} has reached the largest size allowed ({said}; limit {limit:,} bytes)."
        return StrobeError(Code.LIMIT_EXCEEDED, what, "Raise the limit (`ulimit -f`), or lower events.maxPerSession.", value=limit)
    what = f"The file system {mount} (of {place}) cannot be written: {said}; {free >> 20:,} MiB are free."
    next_step = "Free space there (`strobe-ctl purge --older-than 1d`), or set STROBE_HOME to another disk. Recording goes on by itself then."
    return StrobeError(Code.LIMIT_EXCEEDED, what, next_step, value=str(mount))


def file_system(place: Path) -> tuple[Path, int]:
    """(where the file system of `place`, or of its nearest folder that exists, is mounted; bytes free)."""
    here = place.absolute()
    while not here.exists() and here != here.parent:
        here = here.parent
    facts = os.statvfs(here)
    while not here.is_mount() and here != here.parent:
        here = here.parent
    return here, facts.f_bavail * facts.f_frsize


def require_room(folder: Path, least: int) -> None:
    """Raises LIMIT_EXCEEDED when fewer than `least` bytes are free."""
    if file_system(folder)[1] < least and (told := trouble(OSError(errno.ENOSPC, ""), folder)) is not None:
        raise told


@contextmanager
def named(place: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Raises such troubles (OSErrors, and of `kinds`) as StrobeError(LIMIT_EXCEEDED); other errors pass as they are."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, (OSError, *kinds)) or (told := trouble(error, place)) is None:
            raise
        raise told from error
