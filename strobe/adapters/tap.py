"""TAP, as programs print it: a line a test. Only believed where the stream says that it is TAP: by its version or its plan."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_LINE: Final = re.compile(
    r"^(?P<indent> *)(?P<not>not )?ok\b ?(?P<number>\d+)?(?: - | )?(?P<name>[^#]*?)(?: *# *(?P<directive>(?i:skip\S*|todo))\b:? *(?P<reason>.*))?$"
)
_PLAN: Final = re.compile(r"^1\.\.(?P<count>\d+)(?: *# *(?i:skip)\S* *(?P<reason>.*))?$")


@dataclass(slots=True)
class Point:
    name: str
    ok: bool
    skipped: bool
    reason: str | None
    said: list[str] = field(default_factory=list)  # comments and the block that follow it


@dataclass(slots=True)
class Tap:
    """Fed with lines, in order."""

    points: list[Point] = field(default_factory=list)
    planned: int | None = None
    is_tap: bool = False
    bail: str | None = None

    def feed(self, line: str) -> Point | None:
        """The point that the line is, if it is one."""
        if line.startswith("TAP version "):
            self.is_tap = True
            return None
        plan = _PLAN.match(line)
        if plan is not None:
            self.is_tap, self.planned = True, int(plan["count"])
            return None
        if line.startswith("Bail out!"):
            self.bail = line.removeprefix("Bail out!").strip() or "it gave no reason"
            return None
        match = _LINE.match(line)
        if match is None or match["indent"]:
            if self.points and re.match(r"^\s*#|^\s{2,}", line) and len(self.points[-1].said) < 200:
                self.points[-1].said.append(re.sub(r"^\s*# ?|^  ", "", line))
            return None
        directive = (match["directive"] or "").lower()
        name = match["name"].strip().removeprefix("- ") or f"test {match['number'] or len(self.points) + 1}"
        # A point that is to be done may fail.
        point = Point(name, not match["not"], bool(directive), match["reason"] if directive else None)
        self.points.append(point)
        return point
