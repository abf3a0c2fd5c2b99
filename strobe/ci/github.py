"""What GitHub Actions reads: workflow commands in the log (annotations), and the job's summary in Markdown.

Workflow commands: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from strobe.ci.suite import Outcome
from strobe.model.testing import TestCase
from strobe.render.plain import one_line, visible

ANNOTATIONS_MAX: Final = 10  # errors of one step that GitHub shows
SUMMARY_BYTES_MAX: Final = 900_000  # of the 1 MiB that a step may write
MESSAGE_MAX: Final = 4_000
FAILURES_SHOWN: Final = 50


def escaped_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    return escaped_data(text).replace(":", "%3A").replace(",", "%2C")


def error_commands(outcome: Outcome, project: Path, workspace: Path) -> list[str]:
    """`::error file=…,line=…,title=…::message`; files as seen from the repository's root."""
    found = []
    for case in [*outcome.stuck, *outcome.failed][:ANNOTATIONS_MAX]:
        failure = case.failures[0] if case.failures else None
        file, line = (failure.file, failure.line) if failure and failure.file else (case.file, case.line)
        properties = {"file": _from_root(file, project, workspace), "line": str(line) if line and file else None, "title": one_line(case.name)}
        named = ",".join(f"{name}={escaped_property(value)}" for name, value in properties.items() if value)
        message = visible(failure.message if failure else case.status.value)[:MESSAGE_MAX]
        found.append(f"::error {named}::{escaped_data(message)}")
    if not found and (told := _not_run(outcome)) is not None:
        found.append(f"::error title=strobe-ci::{escaped_data(visible(told)[:MESSAGE_MAX])}")
    return found


def _not_run(outcome: Outcome) -> str | None:
    """Why a run counts as none although no test of it failed."""
    told = [outcome.error, outcome.hint, *(outcome.result.errors if outcome.result else [])]
    return next((text for text in told if text), None)


def _from_root(file: str | None, project: Path, workspace: Path) -> str | None:
    if file is None:
        return None
    path = Path(os.path.normpath(project / file))
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(PurePosixPath(file))


class Guarded:
    """Around texts of the suite's in a log that GitHub reads: what they say is no command."""

    def __init__(self, *, on: bool) -> None:
        self._token = secrets.token_hex(16) if on else None

    def __enter__(self) -> None:
        if self._token:
            print(f"::stop-commands::{self._token}", flush=True)

    def __exit__(self, *_: object) -> None:
        if self._token:
            print(f"::{self._token}::", flush=True)


def summary(outcome: Outcome, more: Sequence[str]) -> str:
    """Markdown. `more`: lines about reruns and flakes, escaped already."""
    text = "\n".join([*_head(outcome), *_failures(outcome), *more, ""])
    encoded = text.encode()
    return text if len(encoded) <= SUMMARY_BYTES_MAX else encoded[:SUMMARY_BYTES_MAX].decode(errors="ignore") + "\n\n… cut"


def _head(outcome: Outcome) -> Iterator[str]:
    result = outcome.result
    yield f"### Tests: {escaped_markdown(outcome.framework or 'not run')}"
    yield ""
    if result is None:
        yield escaped_markdown(visible(outcome.error or outcome.hint or "They could not be run."))
        return
    yield "| passed | failed | skipped | stuck | time |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    yield f"| {result.passed} | {result.failed} | {result.skipped} | {result.stuck} | {result.duration_ms / 1000:.1f} s |"
    for told in [*([outcome.error] if outcome.error else []), *([outcome.hint] if outcome.hint else []), *result.errors]:
        yield f"\n{escaped_markdown(visible(told))}"


def _failures(outcome: Outcome) -> Iterator[str]:
    cases = [*outcome.stuck, *outcome.failed]
    for case in cases[:FAILURES_SHOWN]:
        yield ""
        yield f"<details><summary><code>{_html(one_line(case.name))}</code> {case.status.value}{_place(case)}</summary>\n"
        for failure in case.failures:
            yield fenced(visible(failure.message)[:MESSAGE_MAX])
            if failure.rerun_command:
                yield f"Rerun: {inline(failure.rerun_command)}\n"
        yield "</details>"
    if len(cases) > FAILURES_SHOWN:
        yield f"\n… and {len(cases) - FAILURES_SHOWN} more."


def _place(case: TestCase) -> str:
    file, line = next(((one.file, one.line) for one in case.failures if one.file), (case.file, case.line))
    return f" ({_html(one_line(file))}{f':{line}' if line else ''})" if file else ""


def fenced(text: str) -> str:
    """A block that no text in it can end."""
    fence = "`" * max(3, 1 + _longest_ticks(text))
    return f"\n{fence}text\n{text}\n{fence}\n"


def inline(text: str) -> str:
    ticks = "`" * (1 + _longest_ticks(text))
    return f"{ticks} {one_line(text, 500)} {ticks}"


def _longest_ticks(text: str) -> int:
    longest = here = 0
    for sign in text:
        here = here + 1 if sign == "`" else 0
        longest = max(longest, here)
    return longest


def escaped_markdown(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()#+-!|~" else sign for sign in _html(text))


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def append_summary(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", errors="backslashreplace") as output:
        output.write(text + "\n")
