"""A run of pytest or unittest, as Strobe's reporters tell of it (agent/reporters/strobe_pytest.py, strobe_unittest.py): events made into the book."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from strobe.adapters.adapter import Exit, Project, Request, Step
from strobe.adapters.python_project import is_foreign, own_frames, suggested_traces
from strobe.adapters.stepped import SteppedRun, how_ended
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Failure, Frame, NoTests, TestCase, TestStatus

TESTS: Final = "tests"
NONE_RUN: Final = 5  # of pytest; of unittest from Python 3.12 on


@dataclass(slots=True)
class Progress:
    """A test between its start and its finish: what its phases have said so far."""

    file: str | None
    line: int | None
    pid: int | None
    worker: str | None
    status: TestStatus = TestStatus.PASSED
    ms: float = 0
    reason: str | None = None
    output: str | None = None
    failures: list[Failure] = field(default_factory=list)
    has_parts: bool = False  # subtests of its own failed


class PythonRun(SteppedRun):
    framework: str
    rerun_words: tuple[str, ...] = ()  # a shell line's, before a test's name

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests, step: Step) -> None:
        super().__init__(project, request, asked, hint)
        self.first = step
        self.open: dict[str, Progress] = {}
        self.gone: dict[str, Exit] = {}  # workers that died, and how
        self.cwd = request.folder
        self.began = False

    def begin(self) -> Sequence[Step]:
        return self.keep((self.first,))

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return self.cd() + shlex.join((*self.rerun_words, name)) if self.rerun_words else None

    def traces(self, failure: Failure) -> list[str]:
        return suggested_traces(failure.stack_trace, failure.name, failure.file)

    # Events

    def on_run(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.cwd = str(event["cwd"])

    def on_collected(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        self.book.expected = int(event["n"])

    def on_names(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.names.update(dict.fromkeys(str(name) for name in event["names"]))

    def on_start(self, step: str, event: Mapping[str, Any], at: float) -> None:
        name = str(event["id"])
        file, line = self.place(event.get("file")), event.get("line")
        self.open[name] = Progress(file, line, event.get("pid"), event.get("worker"))
        self.started(name, at, suite=self.suite(name, file), pid=event.get("pid"), file=file, line=line)

    def suite(self, name: str, file: str | None) -> str | None:
        return file

    def on_phase(self, step: str, event: Mapping[str, Any], at: float) -> None:
        name = str(event["id"])
        test = self.open.setdefault(name, Progress(None, None, event.get("pid"), event.get("worker")))
        outcome = event["outcome"]
        test.ms += float(event.get("ms") or 0)
        if outcome == "rerun":
            test.failures.clear()
            test.status = TestStatus.PASSED
        elif outcome == "failed":
            test.status = TestStatus.FAILED
            test.has_parts = test.has_parts or event.get("part") is not None
            test.failures.append(self.failure(name, test, event))
            test.output = event.get("output") or test.output
        elif outcome == "skipped" and test.status is TestStatus.PASSED and event.get("part") is None:
            test.status = TestStatus.SKIPPED
            expected = event.get("expected")
            test.reason = event.get("reason") if expected is None else f"failed as expected{': ' + expected if expected else ''}"

    def on_finish(self, step: str, event: Mapping[str, Any], at: float) -> None:
        name = str(event["id"])
        test = self.open.pop(name, None)
        if test is None:
            return
        parts = [one for one in test.failures if one.stack_trace or not test.has_parts]  # of a test that only sums up its parts, those
        self.finished_test(
            TestCase(
                name=name, suite=self.suite(name, test.file), status=test.status, duration_ms=test.ms, file=test.file, line=test.line, reason=test.reason,
                failures=parts or test.failures, output=test.output,
            ), at,
        )  # fmt: skip

    def on_unread(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        file = self.place(event.get("file"))
        message = str(event["message"]).strip()
        own = own_frames(self.frames(event))
        where = f"{file}:{own[-1].line}" if own and own[-1].file == file else file
        self.trouble(f"{where}: {message}" if file and file not in message.split("\n", 1)[0] else message)
        if any(kind in message for kind in ("SyntaxError", "IndentationError", "TabError")):
            self.book.compile_message = self.book.compile_message or self.book.errors[-1]

    def on_skipped(self, step: str, event: Mapping[str, Any], at: float) -> None:
        file = self.place(event.get("file"))
        self.finished_test(TestCase(name=str(event["file"]), suite=file, file=file, status=TestStatus.SKIPPED, reason=event.get("reason")))

    def on_error(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.trouble(str(event["message"]))

    def on_gone(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.gone[str(event["worker"])] = Exit(code=event.get("code"), signal=event.get("signal"))

    def on_lost(self, step: str, event: Mapping[str, Any], at: float) -> None:
        """A worker of xdist died in this test. The controller lives on and starts another."""
        name = str(event["id"])
        test = self.open.pop(name, None)
        how = self.gone.get((test.worker if test else None) or str(event.get("worker")), Exit())
        keys = [key for key in self.book.running if key[1] == name]
        self.crashed(step, how, at, keys)

    def on_end(self, step: str, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        self.book.finished = True

    # The end

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        if exit.signal is not None or self.book.running or (self.began and not self.book.finished):
            self.crashed(step, exit, at)
        if not self.book.finished and not self.began and not self.book.crash:
            self.could_not_start(step, exit)
        elif exit.code and not self.expected_status(exit.code):
            self.trouble(f"{self.framework} ended with status {exit.code}, though no test failed:\n{self.last(step)}")
        self.close()
        return ()

    def expected_status(self, code: int) -> bool:
        book = self.book
        return bool(book.errors or book.crash or book.count(TestStatus.FAILED) or code == NONE_RUN)

    def could_not_start(self, step: str, exit: Exit) -> None:
        self.trouble(f"{self.framework} could not start (it ended {how_ended(exit)}):\n{self.last(step)}")

    # Parts

    def place(self, file: Any) -> str | None:
        """A file as seen from the project."""
        if not isinstance(file, str) or not file:
            return None
        if not file.startswith("/"):
            return inside(self.folder, file) if not file.startswith("../") else self.normal(f"{self.cwd}/{file}")
        if file.startswith(self.cwd.rstrip("/") + "/"):
            return inside(self.folder, relative(self.cwd, file))
        return relative(self.project.root, file)

    def normal(self, path: str) -> str:
        parts: list[str] = []
        for part in path.split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part not in (".", ".."):
                parts.append(part)
        return relative(self.project.root, "/".join(parts))

    def frames(self, event: Mapping[str, Any]) -> list[Frame]:
        return [Frame(function=function, file=self.place(file), line=line) for file, line, function in event.get("frames") or ()]

    def failure(self, name: str, test: Progress, event: Mapping[str, Any]) -> Failure:
        """The place is the innermost of the project's; the stack is told innermost first."""
        frames = self.frames(event)
        own = own_frames(frames) or [frame for frame in frames if not is_foreign(frame.file)]
        where = own[-1] if own else Frame(file=test.file, line=test.line)
        when = {"setup": "in its setup: ", "teardown": "in its teardown: "}.get(str(event.get("when")), "")
        part = f"[{event['part']}] " if event.get("part") else ""
        message = f"{part}{when}{str(event.get('message') or 'failed').strip()}"
        return Failure(
            name=name, file=where.file, line=where.line, message=message, stack_trace=frames[::-1],
            suggested_traces=suggested_traces(frames, name, test.file),
        )  # fmt: skip
