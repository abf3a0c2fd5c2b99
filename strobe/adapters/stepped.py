"""A run whose tests are in programs of their own, or told by events: what the adapters for native code, Python and Go share."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.book import Book
from strobe.adapters.wanted import Wanted, no_match, relative
from strobe.errors import Code, StrobeError
from strobe.model.testing import Crash, Failure, NoTests, TestCase, TestStatus

LAST_LINES: Final = 20
MESSAGE_MAX: Final = 4000
LINE_MAX: Final = 4000  # of a line that is kept; one may have megabytes
# What tells a tool that an agent or another runner has started it, and changes what it prints or runs.
SCRUBBED: Final = (
    "CLAUDECODE", "AGENT", "AI_AGENT", "REPL_ID", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID", "STROBE_TEST_EVENTS", "STROBE_TEST_ONLY", "RUST_TEST_NOCAPTURE", "GTEST_OUTPUT", "GTEST_FILTER",
    "GTEST_COLOR", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE", "GTEST_LIST_TESTS", "TEST_PREMATURE_EXIT_FILE", "XML_OUTPUT_FILE",
    "NEXTEST", "NEXTEST_RUN_ID", "MAKEFLAGS", "MFLAGS",
)  # fmt: skip
_FOR_MACHINES: Final = re.compile(r'^\{ ?"(?:reason|type|Time|Action|ImportPath)"')
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def plain(text: str) -> str:
    return _ANSI.sub("", text)


def surroundings(request: Request, more: Mapping[str, str | None] | None = None) -> dict[str, str | None]:
    """Environment of a step: the request's, over what the adapter needs, without what would change the run behind its back."""
    env: dict[str, str | None] = dict.fromkeys(name for name in SCRUBBED if name != "STROBE_TEST_EVENTS")
    env.update(more or {})
    env.update(request.env)
    return env


def tool(project: Project, name: str, install: str) -> str:
    """Absolute path of a program. Errors: VALIDATION_ERROR with how to get it."""
    found = project.program(name)
    if found is None:
        raise StrobeError(Code.VALIDATION_ERROR, f"{name} is not on the PATH.", f"{install} Or give `env` a PATH that has it.", value=name)
    return found


def refuse(what: str, next_step: str, value: object) -> StrobeError:
    return StrobeError(Code.VALIDATION_ERROR, what, next_step, value=value)


def how_ended(exit: Exit) -> str:
    return f"by {exit.signal}" if exit.signal else f"with status {exit.code}"


class SteppedRun:
    """`handlers`: what follows a step by its name, set where the step is made."""

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests) -> None:
        self.project = project
        self.request = request
        self.asked = asked
        self.hint = hint
        self.book = Book()
        self.folder = relative(project.root, request.folder)
        self.steps: dict[str, Step] = {}
        self.lines: dict[str, deque[str]] = {}
        self.names: dict[str, None] = {}  # of all tests: what a name that matches none may have meant
        self.places: dict[tuple[str | None, str], tuple[str | None, int | None]] = {}  # file and line of those that began
        self.closed = False

    # What the engine calls

    def begin(self) -> Sequence[Step]:
        raise NotImplementedError

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if not _FOR_MACHINES.match(text):
            self.lines.setdefault(step, deque(maxlen=LAST_LINES)).append(plain(text)[:500])
        self.on_line(step, stream, text, at)

    def event(self, step: str, event: Mapping[str, Any], at: float) -> None:
        handler: Callable[[str, Mapping[str, Any], float], None] | None = getattr(self, f"on_{event.get('ev')}", None)
        if handler is not None:
            handler(step, event, at)

    def ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        more = self.on_ended(step, exit, reports, at)
        return self.keep(more)

    def finish(self, at: float) -> None:
        if self.closed:
            return
        self.closed = True
        self.end_running(TestStatus.STUCK, "was running when the run was stopped", at)
        if self.book.finished:
            self.explain()

    # What adapters do

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        """A line of a step's output, as it is."""

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        raise NotImplementedError

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return None

    def traces(self, failure: Failure) -> list[str]:
        return []

    # Parts of them

    def keep(self, steps: Sequence[Step]) -> Sequence[Step]:
        for step in steps:
            self.steps[step.name] = step
        return steps

    def last(self, step: str) -> str:
        return "\n".join(self.lines.get(step, ()))[-MESSAGE_MAX:]

    def cd(self) -> str:
        return "" if self.folder == "." else f"cd {shlex.quote(self.folder)} && "

    def started(self, name: str, at: float, suite: str | None = None, pid: int | None = None, file: str | None = None, line: int | None = None) -> None:
        self.places[(suite, name)] = (file, line)
        self.book.started(name, at, suite=suite, pid=pid)

    def finished_test(self, case: TestCase, at: float | None = None) -> None:
        """Adds to its failures what only the adapter knows."""
        failures = [self.completed(one, case.suite) for one in case.failures]
        if case.status is TestStatus.FAILED and not failures:
            said = Failure(name=case.name, file=case.file, line=case.line, message="failed; the framework gave no message")
            failures = [self.completed(said, case.suite)]
        self.book.ended(case.model_copy(update={"failures": failures}), at)

    def completed(self, failure: Failure, suite: str | None) -> Failure:
        changes: dict[str, Any] = {"message": failure.message[:MESSAGE_MAX]}
        if failure.rerun_command is None:
            changes["rerun_command"] = self.rerun_line(suite, failure.name)
        if not failure.suggested_traces:
            changes["suggested_traces"] = self.traces(failure)
        return failure.model_copy(update=changes)

    def end_running(self, status: TestStatus, message: str, at: float, keys: Sequence[tuple[str | None, str]] | None = None) -> list[str]:
        """Ends tests that are running as STUCK or LOST. Returns their names."""
        chosen = list(self.book.running) if keys is None else list(keys)
        for key in chosen:
            begun = self.book.running[key]
            file, line = self.places.get(key, (None, None))
            failure = Failure(name=key[1], file=file, line=line, message=message)
            case = TestCase(name=key[1], suite=key[0], status=status, duration_ms=at - begun.since, file=file, line=line, failures=[failure])
            self.finished_test(case)
        return [key[1] for key in chosen]

    def crashed(self, step: str, exit: Exit, at: float, keys: Sequence[tuple[str | None, str]] | None = None) -> None:
        """The first crash of a run is the one told; every test that it took is."""
        names = self.end_running(TestStatus.LOST, f"The process that ran this test ended {how_ended(exit)} before the test did.", at, keys)
        if self.book.crash is None:
            command = shlex.join(self.steps[step].argv)
            last = list(self.lines.get(step, ()))
            self.book.crash = Crash(command=command, exit_code=None if exit.signal else exit.code, signal=exit.signal, during=names, last_lines=last)

    def trouble(self, text: str) -> None:
        if text not in self.book.errors:
            self.book.errors.append(text[:MESSAGE_MAX])

    def compile_failed(self, message: str) -> None:
        self.book.compile_message = message[:MESSAGE_MAX]
        self.trouble(message)

    def explain(self) -> None:
        """Nothing ran, and nothing says why: no test of that name, or no tests at all."""
        if self.book.tests or self.book.errors or self.book.crash:
            return
        if self.asked.text:
            self.trouble(no_match(self.asked, self.names))
        else:
            self.book.no_tests = self.hint

    def close(self) -> None:
        self.closed = True
        self.explain()
