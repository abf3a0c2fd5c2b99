"""Files only their owner reads. (No umask for this: targets inherit ours, and theirs must be the caller's.)"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_private(path: Path, *, append: bool = True) -> BinaryIO:
    """For writing, 0600."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, 0o600), "wb")
