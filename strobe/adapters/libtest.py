"""Rust's test programs, as they tell of themselves with `--format json` (cargo test, and cargo-nextest that speaks the same)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from strobe.adapters.adapter import Project, Request
from strobe.adapters.native_frames import is_own, place, suggested_traces
from strobe.adapters.rust_panics import failure_of
from strobe.adapters.stepped import SteppedRun
from strobe.adapters.wanted import Wanted
from strobe.model.testing import Failure, NoTests, TestCase, TestStatus

TORN_MAX: Final = 32 << 10
_OUTPUT: Final = re.compile(r'"stdout": ?"')
STATUSES: Final = {"ok": TestStatus.PASSED, "failed": TestStatus.FAILED, "ignored": TestStatus.SKIPPED}


def message_in(text: str, opening: str) -> dict[str, Any] | None:
    """The message of a line; a program that writes to its standard output by itself may have put something before it."""
    start = text.find(opening)
    try:
        found = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def joined(beginning: str, end: str) -> str:
    """A message's text from what there is of it: what lay between, in its output, is left out."""
    slashes = len(beginning) - len(beginning.rstrip("\\"))
    kept = re.sub(r"\\u[0-9a-fA-F]{0,3}$", "", beginning[:-1] if slashes % 2 else beginning)
    line = end.find("\\n")  # from a whole character on
    return f'{kept}\\n… cut …{end[line:]}' if line >= 0 else f'{kept}\\n… cut …" }}'


class LibtestRun(SteppedRun):
    """`known`: names of a suite's tests; what else is told of is not from the framework."""

    opening: str  # of a message

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests) -> None:
        super().__init__(project, request, asked, hint)
        self.torn: dict[str, str] = {}  # the beginning of a message too long for a line, by step

    def messages(self, step: str, text: str) -> list[dict[str, Any]]:
        """Of a line. One with megabytes of a test's output comes in several, or cut off."""
        message = message_in(text, self.opening)
        if message is not None:
            return [*self.rest(step), message]
        start = text.find(self.opening)
        if start >= 0 and _OUTPUT.search(text, start):
            found = self.rest(step)
            self.torn[step] = text[start : start + TORN_MAX]
            return found
        if step in self.torn and text.endswith('"}' if self.opening.startswith('{"') else '" }'):
            return self.rest(step, text[-TORN_MAX:])
        return []

    def rest(self, step: str, end: str = "") -> list[dict[str, Any]]:
        """The message that was begun, once it is known that no more of it comes."""
        beginning = self.torn.pop(step, None)
        message = message_in(joined(beginning, end), self.opening) if beginning is not None else None
        return [message] if message is not None else []

    def told(self, suite: str, message: Mapping[str, Any], known: Mapping[str, Any], at: float, file: str | None) -> None:
        name = str(message.get("name", ""))
        if message.get("type") != "test" or name not in known:
            return
        event = message.get("event")
        if event == "started":
            self.started(name, at, suite=suite, file=file)
        elif event in STATUSES and ((suite, name) in self.book.running or self.turns_out_failed(suite, name, message)):
            self.test_ended(suite, name, message, at, file)

    def turns_out_failed(self, suite: str, name: str, message: Mapping[str, Any]) -> bool:
        """What a test printed by itself looked like its success; the framework's own word comes last."""
        before = self.book.tests.get((suite, name))
        return message.get("event") == "failed" and before is not None and before.status is not TestStatus.FAILED

    def test_ended(self, suite: str, name: str, message: Mapping[str, Any], at: float, file: str | None) -> None:
        status = STATUSES[str(message["event"])]
        text = str(message.get("stdout") or "")
        seconds = message.get("exec_time")
        note = message.get("message")
        failures = [self.failure(suite, name, text, note, file)] if status is TestStatus.FAILED else []
        self.finished_test(
            TestCase(
                name=name, suite=suite, status=status, duration_ms=seconds * 1000 if seconds is not None else None, file=file, failures=failures,
                reason=note if status is TestStatus.SKIPPED else None, output=text or None,
            ), at,
        )  # fmt: skip

    def failure(self, suite: str, name: str, text: str, note: str | None, file: str | None) -> Failure:
        said = failure_of(name, text, note)
        frames = [frame.model_copy(update={"file": place(self.project, self.folder, frame.file) if frame.file else None}) for frame in said.frames]
        own = [frame for frame in frames if is_own(frame)]
        where = place(self.project, self.folder, said.file) if said.file else None
        line = said.line
        if where is None or where.startswith("/"):  # panicked in a library: the project's line that called it
            where, line = (own[0].file, own[0].line) if own else (file, None)
        traces = self.rust_traces(suite, name, frames, where)
        return Failure(name=name, message=said.message, file=where, line=line, stack_trace=frames, suggested_traces=traces)

    def rust_traces(self, suite: str, name: str, frames: Sequence[Any], file: str | None) -> list[str]:
        found = suggested_traces(frames, name, file, [name.rsplit("::", 1)[-1]])
        module = [part for part in name.split("::")[:-1] if part not in ("test", "tests")]
        crate = suite.split("::")[0].replace("-", "_")
        if module:
            found.append("::".join([crate, *module, "**"]))
        return list(dict.fromkeys(found))

    def traces(self, failure: Failure) -> list[str]:
        return suggested_traces(failure.stack_trace, failure.name, failure.file, [failure.name.rsplit("::", 1)[-1]])
