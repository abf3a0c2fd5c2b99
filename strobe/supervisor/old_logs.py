"""Every session leaves logs of its own; this keeps their number bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILES_MAX: Final = 400


def prune_logs(folder: Path, keep: set[str]) -> list[Path]:
    """Removes the oldest logs of sessions and spawners beyond 400 files; never those whose stem is in `keep`. Answers what went."""
    files = [path for pattern in ("session-*", "spawner-*") for path in folder.glob(pattern) if path.name.partition(".")[0] not in keep]
    surplus = sorted(files, key=lambda path: path.stat().st_mtime)[: max(0, len(files) - FILES_MAX)]
    for path in surplus:
        path.unlink(missing_ok=True)
    return surplus
