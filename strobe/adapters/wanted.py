"""What a request asks to run of a suite: all of it, tests whose name holds a text, one test, one file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from strobe.adapters.adapter import Project, Request

NEAREST_MAX: Final = 5
SEPARATOR: Final = " > "  # between a test's name and the suites it lies in


@dataclass(frozen=True, slots=True)
class Wanted:
    """`file` relative to the request's folder."""

    name: str | None = None
    exact: bool = False
    file: str | None = None

    @property
    def text(self) -> str:
        return "::".join(part for part in (self.file, self.name) if part)

    def matches(self, name: str) -> bool:
        if self.name is None:
            return True
        asked, given = flat(self.name), flat(name)
        return asked == given if self.exact else asked in given

    def pattern(self) -> str | None:
        """As a regular expression of JavaScript over names joined by spaces. A test's own name may hold a separator ("is true when 3 > 2")."""
        if self.name is None:
            return None
        escaped = f"(?:{SEPARATOR}| )".join(js_escape(part) for part in self.name.split(SEPARATOR))
        return f"^{escaped}$" if self.exact else escaped


def flat(name: str) -> str:
    """A name however its parts were joined."""
    return " ".join(name.replace(SEPARATOR, " ").split())


def js_escape(text: str) -> str:
    """\ufffd stands for half of a surrogate pair, which no argument can hold."""
    return re.sub(r"[.*+?^${}()|[\]\\/]", r"\\\g<0>", text).replace("\ufffd", ".")


def wanted(project: Project, request: Request) -> Wanted:
    """`test` is a part of names, a test file, or `FILE::whole name`; `exact` asks for one whole name."""
    if request.test is None:
        return Wanted()
    folder = relative(project.root, request.folder)
    file, parted, name = request.test.partition("::")
    if _is_file(project, folder, file):
        return Wanted(file=file, name=name, exact=True) if parted and name else Wanted(file=file)
    return Wanted(name=request.test, exact=request.exact)


def _is_file(project: Project, folder: str, file: str) -> bool:
    return bool(re.search(r"\.[cm]?[jt]sx?$", file)) and not file.startswith("/") and project.exists(inside(folder, file))


def inside(folder: str, path: str) -> str:
    return path if folder in ("", ".") else f"{folder}/{path}"


def relative(root: str, path: str) -> str:
    """`path` as seen from `root` where it lies in it, else as it is; "." for `root` itself."""
    base = root.rstrip("/")
    if path.rstrip("/") == base:
        return "."
    return path[len(base) + 1 :] if path.startswith(base + "/") else path


def no_match(asked: Wanted, names: Iterable[str]) -> str:
    """Why nothing ran, with the names that come nearest."""
    near = nearest(asked.name or asked.file or "", list(dict.fromkeys(names)))
    there = f" Nearest: {', '.join(repr(name) for name in near)}." if near else " There are no tests of a like name."
    return f"No test matches {asked.text!r}.{there}"


def nearest(asked: str, names: Sequence[str]) -> list[str]:
    """At most NEAREST_MAX, the likest first."""
    text = flat(asked).lower()
    asked_own = flat(asked.rsplit(SEPARATOR, 1)[-1]).lower()
    words = set(re.findall(r"\w+", text))

    def likeness(name: str) -> float:
        other = flat(name).lower()
        shared = len(words & set(re.findall(r"\w+", other))) / (len(words) or 1)
        own = flat(re.split(r" > |::|[./](?=\w+$)", name)[-1]).lower()
        last = max(difflib.SequenceMatcher(None, part, own).quick_ratio() for part in (text, asked_own))
        return max(difflib.SequenceMatcher(None, text, other).quick_ratio(), last) + shared

    ranked = sorted(((likeness(name), name) for name in names[:5000]), key=lambda pair: (-pair[0], pair[1]))
    return [name for score, name in ranked[:NEAREST_MAX] if score >= 0.5]
