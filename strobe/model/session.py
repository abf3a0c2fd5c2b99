"""A session: one debugged launch. The same words in the catalog, in notices and in replies (SPEC §3, §4)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal

from strobe.model.base import Noun


class SessionState(enum.StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    CRASHED = "crashed"
    STOPPED = "stopped"
    LOST = "lost"


class ChildrenPolicy(Noun):
    """Of programs that children become by exec. `follow`: they get the recorder; `shells`: so do functions of shells."""

    follow: bool = True
    shells: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ChildrenPolicy:
        return cls(follow=settings["children.follow"], shells=settings["children.shells"])


class Capabilities(Noun):
    """What can be done with this target (SPEC §4, debug_launch)."""

    runtime: Literal["native", "python", "node", "deno", "bun", "go", "script", "unknown"]
    runtime_detail: str | None = None
    function_tracing: Literal["full", "partial", "none"]
    breakpoints: Literal["full", "partial", "none"]
    stepping: Literal["full", "partial", "none"]
    output_capture: Literal["full", "partial", "none"]
    limitations: list[str] = []


class SessionRecord(Noun):
    """A row of the catalog. Times are ns since the epoch. `detail` holds what only shows: capabilities, crash summary, limits."""

    session_id: str
    client_id: str
    binary_path: str
    command: list[str]  # argv, redacted
    cwd: str
    project_root: str
    pid: int | None
    state: SessionState
    started_at: int
    started_monotonic_ns: int
    ended_at: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    retained: bool = False
    detail: dict[str, Any] = {}
