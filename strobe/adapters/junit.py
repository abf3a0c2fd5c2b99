"""JUnit XML as test runners leave it: one record a test."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """A <failure> or an <error>."""

    message: str
    text: str


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """`suites`: names of the <testsuite>s around it, outermost first."""

    name: str
    classname: str
    suites: tuple[str, ...]
    file: str | None
    line: int | None
    seconds: float | None
    skipped: bool
    reason: str | None
    problems: tuple[Problem, ...] = field(default_factory=tuple)
    output: str | None = None


def read_junit(text: str) -> list[JUnitCase]:
    """Errors: ValueError for a file that was not written whole."""
    try:
        root = ElementTree.fromstring(text.strip())
    except ElementTree.ParseError as broken:
        raise ValueError(f"not a JUnit report: {broken}") from broken
    return list(_cases(root, (), None))


def _cases(node: ElementTree.Element, suites: tuple[str, ...], file: str | None) -> Iterator[JUnitCase]:
    for child in node:
        if child.tag == "testsuite":
            yield from _cases(child, (*suites, child.get("name", "")), child.get("file", file))
        elif child.tag == "testcase":
            yield _case(child, (*suites, node.get("name", "")) if node.tag == "testsuite" and not suites else suites, file)


def _case(node: ElementTree.Element, suites: tuple[str, ...], file: str | None) -> JUnitCase:
    skipped = node.find("skipped")
    problems = [Problem(one.get("message", ""), one.text or "") for one in node if one.tag in ("failure", "error")]
    output = "".join(one.text or "" for one in node if one.tag in ("system-out", "system-err")) or None
    line, seconds = node.get("line"), node.get("time")
    return JUnitCase(
        name=node.get("name", ""), classname=node.get("classname", ""), suites=suites, file=node.get("file", file),
        line=int(line) if line and line.isdigit() else None, seconds=float(seconds) if seconds else None,
        skipped=skipped is not None, reason=skipped.get("message") if skipped is not None else None,
        problems=tuple(problems), output=output,
    )  # fmt: skip
