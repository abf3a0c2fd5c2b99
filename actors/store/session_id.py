"""Session ids (SPEC §3): `{binary}-{YYYY-MM-DD}-{HH}h{MM}`, local time, `-2`, `-3` … on collision."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import PurePath
from typing import Final

from strobe.paths import safe_name

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+@-]+")
BINARY_CHARACTERS_MAX: Final = 100
COLLISIONS_MAX: Final = 100_000


def new_session_id(binary_path: str, started_at_ns: int, taken: Callable[[str], bool]) -> str:
    """The first id of that binary and minute which is not `taken`. Plain enough to be a file's name."""
    binary = _UNSAFE.sub("_", PurePath(binary_path).name)[:BINARY_CHARACTERS_MAX].lstrip(".-") or "program"
    base = f"{binary}-{datetime.fromtimestamp(started_at_ns / 1e9):%Y-%m-%d-%Hh%M}"
    for number in range(1, COLLISIONS_MAX):
        candidate = base if number == 1 else f"{base}-{number}"
        if not taken(candidate):
            return safe_name(candidate, what="session id")
    raise RuntimeError(f"{COLLISIONS_MAX} sessions named {base}")
