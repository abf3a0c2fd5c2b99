"""What is known of the target's processes: which programs they became, which of them are followed, and how they ended."""

from __future__ import annotations

import os
import select
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from actors.session.children.exits import in_words, open_process, wait_status

SHOWN_MAX: Final = 50
KEPT_MAX: Final = 1000
REASONS_MAX: Final = 5
NOT_LOADED: Final = "the recorder could not be loaded (it has no memory for it, or may not open its files), or it ended before"
WATCHED_MAX: Final = 64  # processes whose end is waited for with a file descriptor each


@dataclass(slots=True)
class Process:
    """`followed`: None while that is not known; `why_not` says why it is not, or not fully."""

    pid: int
    parent: int | None
    command: str
    followed: bool | None = None
    why_not: str | None = None
    hooks: int | None = None
    pidfd: int | None = None
    ended: str | None = None


class Processes:
    """Any thread may call."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._known: dict[int, Process] = {}
        self._reasons: Counter[tuple[str, str]] = Counter()
        self.execs = 0

    def exec(self, pid: int, command: str, why_not: str | None, *, shell: bool = False) -> None:
        """It became another program."""
        parent = _parent(pid)
        with self._lock:
            self.execs += 1
            before = self._known.pop(pid, None)
            one = self._known[pid] = Process(pid, parent or (before.parent if before else None), command)
            one.pidfd = before.pidfd if before is not None and before.pidfd is not None else open_process(pid)
            if why_not is not None:
                one.followed, one.why_not = False, why_not
                self._reasons[command, why_not] += 1
            elif shell:
                one.followed, one.why_not = False, "a shell (children.shells); what it starts is followed"
            self._settle()
            while len(self._known) > KEPT_MAX:
                _close(self._known.pop(next(iter(self._known))))

    def settle(self) -> None:
        """How those ended that have ended since."""
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        watched = [one for one in self._known.values() if one.pidfd is not None]
        for one in watched:
            assert one.pidfd is not None
            if select.select([one.pidfd], [], [], 0)[0] and (status := wait_status(one.pidfd)) is not None:
                one.ended = in_words(status)
                _close(one)
        for one in watched[:-WATCHED_MAX]:
            _close(one)

    def close(self) -> None:
        with self._lock:
            for one in self._known.values():
                _close(one)

    def entered(self, pid: int, hooks: int) -> None:
        with self._lock:
            one = self._known.get(pid)
            if one is not None and one.why_not is None:
                one.followed, one.hooks = True, hooks

    def problem(self, pid: int, why: str) -> None:
        with self._lock:
            one = self._known.get(pid)
            self._reasons[one.command if one else f"process {pid}", why] += 1
            if one is not None:
                one.followed, one.why_not = False, why

    def told(self) -> list[str]:
        """Programs that run untraced, and why; the most frequent ones."""
        with self._lock:
            rows = self._reasons.most_common(REASONS_MAX)
            more = len(self._reasons) - len(rows)
        told = [f"{command} was not followed{f' ({count} times)' if count > 1 else ''}: {why}." for (command, why), count in rows]
        return [*told, f"{more} more programs were not followed."] if more > 0 else told

    def shown(self) -> list[dict[str, Any]]:
        """Those that live, and those that were seen last."""
        with self._lock:
            self._settle()
            known = list(self._known.values())[-SHOWN_MAX:]
        return [_shown(one) for one in known]


def _shown(one: Process) -> dict[str, Any]:
    alive = one.ended is None and Path(f"/proc/{one.pid}").exists()
    if one.followed is None and not alive:
        one.followed, one.why_not = False, NOT_LOADED
    found = {
        "pid": one.pid, "parent": one.parent, "command": one.command, "followed": one.followed, "whyNot": one.why_not, "hooks": one.hooks, "alive": alive,
        "exit": one.ended,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value is not None}


def _close(one: Process) -> None:
    if one.pidfd is not None:
        os.close(one.pidfd)
        one.pidfd = None


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
