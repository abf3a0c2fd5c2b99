"""Which new programs get the recorder, and how much of it. Cheap: a file is judged once."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from strobe.preflight import inspect
from strobe.preflight.script import interpreters

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "pdksh", "ash", "yash", "fish", "csh", "tcsh", "busybox", "rbash"})
JUDGED_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why_not`: why it must be left alone. `shell`: what it does itself is of no interest, what it starts is."""

    why_not: str | None = None
    shell: bool = False


class Policy:
    """Of one session. `trace_shells`: a shell is a program like any other."""

    def __init__(self, *, trace_shells: bool) -> None:
        self.trace_shells = trace_shells
        self._judged: dict[tuple[int, int, int, int], Verdict] = {}

    def judge(self, path: str) -> Verdict:
        """Of the file at `path`, a script by its interpreter. Errors: OSError, where it cannot be looked at."""
        facts = Path(path).stat()
        if not stat.S_ISREG(facts.st_mode):
            return Verdict("it is no ordinary file")
        key = (facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size)
        verdict = self._judged.get(key)
        if verdict is None:
            verdict = self._judged[key] = self._look(path)
            while len(self._judged) > JUDGED_MAX:
                del self._judged[next(iter(self._judged))]
        return verdict

    def _look(self, path: str) -> Verdict:
        chain = interpreters(Path(path), {})
        if chain:
            return self.judge(chain[0])
        facts = inspect(path)
        if not facts.injectable:
            return Verdict(facts.reason or "it cannot be entered")
        names = {PurePath(path).name, PurePath(os.path.realpath(path)).name}
        return Verdict(shell=not self.trace_shells and bool(names & SHELLS))
