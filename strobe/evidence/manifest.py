"""The bundle's table of contents, and which names its members may have."""

from __future__ import annotations

import re
from typing import Any, Final

from strobe.model.base import Noun

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MEMBERS_MAX: Final = 10_000
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|/]{1,200}")
NAME_MAX: Final = 1_000


class Member(Noun):
    path: str
    bytes: int
    sha256: str  # lower-case hex


class Manifest(Noun):
    """`environment`: names alone. `build_ids`: path of a program → its GNU build-id. `left_out`: what was not put in, and why."""

    format: int
    created_at: str  # ISO 8601, UTC
    strobe: str
    python: str
    platform: str
    project: str
    commit: dict[str, Any] | None = None  # {id, branch?, changedFiles}
    command: list[str]
    framework: str | None = None
    environment: list[str]
    build_ids: dict[str, str] = {}
    left_out: list[str] = []
    members: list[Member]


def name_problem(name: str) -> str | None:
    """Why a member may not be called so; None when it may."""
    parts = name.split("/")
    if len(name) > NAME_MAX or not name:
        return "its name is empty or too long"
    if name.startswith("/") or "" in parts:
        return "its name is no relative path"
    if ".." in parts or "." in parts:
        return "its name leads out of its folder"
    return None if all(_NAME.fullmatch(part) for part in parts) else "its name has characters that file names do not have everywhere"
