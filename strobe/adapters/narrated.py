"""A run whose tests tell of themselves: the events that Strobe's reporters for JavaScript write (agent/reporters), made into the book.

Events, by `ev`: `run` (cwd, pid, total) · `file`, `fileEnd` (file) · `start` (id, path, file, line, pid) · `left` (id, status: its body is over; provisional)
· `parent` (id: was no test, or is none any more) · `end` (id, path, file, line, status, ms, reason, failures, output) · `error` (kind file|hook|unhandled,
message, frames or stack, file, path) · `fileError` (file, code, signal, message, output: its process ended otherwise than by its tests) · `gone` (pid, code,
signal of a process of the runner's) · `trouble` (message: what the run goes on without) · `process` (file, pid) · `names` (names of all there are) · `done`.
`path` is a test's name after those of its suites.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.book import Book
from strobe.adapters.plan import Plan
from strobe.adapters.sources import names_in_sources
from strobe.adapters.v8 import file_path, frames_of, function_name, is_foreign, message_of, own_frames, plain, suggested_traces
from strobe.adapters.wanted import SEPARATOR, flat, inside, no_match, relative
from strobe.model.testing import Crash, Failure, Frame, NoTests, TestCase, TestStatus

LAST_LINES: Final = 20
LINE_MAX: Final = 4000  # of a line that is kept; one may have megabytes
MESSAGE_MAX: Final = 4000
_STATUSES: Final = {"passed": TestStatus.PASSED, "failed": TestStatus.FAILED, "skipped": TestStatus.SKIPPED}
_POOL: Final = re.compile(r"^\[vitest-pool\]|^Worker (?:forks|threads)? ?(?:emitted error|exited unexpectedly)")
_COMPILING: Final = re.compile(
    r"SyntaxError|TS\d+ \[ERROR\]|^error: (?:Unexpected|Expected|Syntax)|Transform failed|Parse failed|PARSE_ERROR|Unexpected token|error TS\d+|TSError"
)


@dataclass(slots=True)
class Known:
    """A test as its id is known. `over`: it ended, as far as its own process knows."""

    key: tuple[str | None, str]
    file: str | None
    line: int | None
    pid: int | None = None
    over: bool = False


class NarratedRun:
    """Adapters differ in `reports_read` (a file that is the last word), in `rerun_line`, and in whether the runner keeps to the tests that were asked for."""

    runs_others: ClassVar[bool] = False

    def __init__(self, project: Project, request: Request, plan: Plan, hint: NoTests) -> None:
        self.project = project
        self.request = request
        self.plan = plan
        self.hint = hint
        self.book = Book()
        self.folder = relative(project.root, request.folder)
        self.known: dict[str, Known] = {}
        self.taken: dict[tuple[str | None, str], str] = {}  # by which id
        self.names: dict[str, None] = {}  # of tests that were left out: what a name that matches none may have meant
        self.open_files: dict[str, int | None] = {}
        self.pids: dict[str, int] = {}
        self.gone: list[tuple[int, int | None, str | None]] = []
        self.cwd: str | None = None  # as the runner sees the request's folder, symbolic links followed
        self.lines: dict[str, deque[str]] = {}
        self.began = False  # the framework came so far as to say what it runs
        self.exit: Exit | None = None
        self.closed = False

    # What the engine calls

    def begin(self) -> Sequence[Step]:
        return self.plan.steps[:1]

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        self.lines.setdefault(step, deque(maxlen=LAST_LINES)).append(plain(text)[:500])

    def event(self, step: str, event: Mapping[str, Any], at: float) -> None:
        handler = getattr(self, f"on_{event.get('ev')}", None)
        if handler is not None:
            handler(event, at)

    def ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        order = [one.name for one in self.plan.steps]
        position = order.index(step)
        if position + 1 < len(order):
            if exit.code == 0:
                return self.plan.steps[position + 1 : position + 2]
            return self.prepare_failed(step, exit)
        self.exit = exit
        self.reports_read(reports, at)
        self.close(at)
        return ()

    def finish(self, at: float) -> None:
        if not self.closed:
            self.exit = self.exit or Exit(killed=True)
            self.close(at)

    # What adapters may do otherwise

    def reports_read(self, reports: Mapping[str, str], at: float) -> None:
        """The files that the step left."""

    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        return None

    def shell(self, *words: str) -> str:
        """A rerun command."""
        return self.plan.rerun + shlex.join(words)

    # Events

    def on_run(self, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        self.cwd = event.get("cwd") or self.cwd
        if isinstance(total := event.get("total"), int):
            self.book.expected = total

    def on_names(self, event: Mapping[str, Any], at: float) -> None:
        self.names.update(dict.fromkeys(str(name) for name in event.get("names", ())))

    def on_process(self, event: Mapping[str, Any], at: float) -> None:
        self.pids[self.place(event.get("file")) or ""] = int(event["pid"])

    def on_file(self, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        if (file := self.place(event.get("file"))) is not None:
            self.open_files[file] = event.get("pid")

    def on_fileEnd(self, event: Mapping[str, Any], at: float) -> None:
        self.open_files.pop(self.place(event.get("file")) or "", None)

    def on_start(self, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        ident = str(event["id"])
        before = self.known.get(ident)
        if before is not None and (not before.over or event.get("pid") is None):
            return  # told by the test's process, and again, later, by the runner
        test = self.remember(event)
        test.over = False
        test.pid = event.get("pid") or self.pids.get(test.file or "") or test.pid
        suite, name = test.key
        self.book.started(name, at, suite=suite, pid=test.pid)

    def on_left(self, event: Mapping[str, Any], at: float) -> None:
        test = self.known.get(str(event["id"]))
        if test is None or test.over:
            return
        test.over = True
        suite, name = test.key
        if self.runs_others and not self.plan.wanted.matches(name):
            self.book.running.pop(test.key, None)
            return
        status = TestStatus.FAILED if event.get("status") == "failed" else TestStatus.PASSED
        failures = [self.failure(one, test, name.split(SEPARATOR)) for one in event.get("failures") or ()]
        self.book.ended(TestCase(name=name, suite=suite, status=status, file=test.file, line=test.line, failures=failures), at)

    def on_end(self, event: Mapping[str, Any], at: float) -> None:
        path = [str(part) for part in event["path"]]
        status = _STATUSES.get(str(event.get("status")), TestStatus.SKIPPED)
        if (status is TestStatus.SKIPPED or self.runs_others) and not self.plan.wanted.matches(SEPARATOR.join(path)):
            self.names[SEPARATOR.join(path)] = None
            self.forget(str(event["id"]))
            return
        test = self.remember(event)
        test.over = True
        suite, name = test.key
        failures = [self.failure(one, test, path) for one in event.get("failures") or ()] if status is TestStatus.FAILED else []
        case = TestCase(
            name=name, suite=suite, status=status, duration_ms=event.get("ms"), file=test.file, line=test.line, failures=failures, output=event.get("output"),
            reason=(event.get("reason") or ("to do" if event.get("todo") else None)) if status is TestStatus.SKIPPED else None,
        )  # fmt: skip
        if status is TestStatus.FAILED and not failures:
            case = case.model_copy(update={"failures": [self.failure({"message": "failed; the framework gave no message"}, test, path)]})
        self.book.ended(case, at)

    def on_error(self, event: Mapping[str, Any], at: float) -> None:
        message = plain(str(event.get("message", ""))).strip()[:MESSAGE_MAX]
        file = self.place(event.get("file"))
        message = message.replace(f"{event.get('file')}: ", "", 1) if file else message
        if event.get("kind") == "hook" and event.get("path"):
            if not self.concerns(event["path"]):
                return
            self.on_end({**event, "id": f"hook {file} {event['path']}", "status": "failed", "failures": [event]}, at)
            return
        if _POOL.search(message) and self.book.running:
            return  # the crash of a worker, which `gone` tells better
        frames = own_frames(self.frames(event))
        at_line = f":{frames[0].line}" if frames and frames[0].file == file else ""
        text = f"{file}{at_line}: {message}" if file else message
        if text not in self.book.errors:
            self.book.errors.append(text)
        if _COMPILING.search(message) and self.book.compile_message is None:
            self.book.compile_message = text

    def on_parent(self, event: Mapping[str, Any], at: float) -> None:
        self.forget(str(event["id"]))

    def forget(self, ident: str) -> None:
        """What began and is no test, or is not one that was asked for."""
        test = self.known.get(ident)
        if test is not None:
            test.over = True
            self.book.running.pop(test.key, None)
            self.book.tests.pop(test.key, None)

    def on_fileError(self, event: Mapping[str, Any], at: float) -> None:
        """A file's process ended by a signal, or with a status that no test explains, or the file could not be loaded."""
        file = self.place(event.get("file"))
        code, signal = event.get("code"), event.get("signal")
        during = [key for key, test in self.by_key().items() if key in self.book.running and test.file == file]
        if during or signal:
            self.crash(code, signal, at, during)
        elif not any(case.file == file for case in self.book.tests.values()):
            said = message_of(str(event.get("output") or event.get("message") or ""))
            self.on_error({"kind": "file", "file": event.get("file"), "message": said, "stack": event.get("output")}, at)
        else:
            self.book.errors.append(f"{file}: its process ended with status {code}, though its tests had ended")

    def on_gone(self, event: Mapping[str, Any], at: float) -> None:
        if event.get("signal") or event.get("code"):
            self.gone.append((int(event["pid"]), event.get("code"), event.get("signal")))

    def on_trouble(self, event: Mapping[str, Any], at: float) -> None:
        """Of our reporter's: what the run goes on without."""
        self.book.errors.append(str(event.get("message")))

    def on_done(self, event: Mapping[str, Any], at: float) -> None:
        self.began = True
        self.book.finished = True

    # Parts of them

    def remember(self, event: Mapping[str, Any]) -> Known:
        """The test of an event, with a name that no other of its file has."""
        ident = str(event["id"])
        test = self.known.get(ident)
        if test is None:
            file = self.place(event.get("file"))
            suite = f"{file} [{event['project']}]" if event.get("project") and file else file
            plain_name = name = SEPARATOR.join(str(part) for part in event["path"])
            times = 1
            while self.taken.setdefault((suite, name), ident) != ident:
                times += 1
                name = f"{plain_name} ({times})"
            test = self.known[ident] = Known((suite, name), file, event.get("line"))
        test.line = event.get("line") or test.line
        return test

    def place(self, file: Any) -> str | None:
        """A file as seen from the project."""
        if not isinstance(file, str) or not file:
            return None
        path = file_path(file)
        if self.cwd is not None and (path + "/").startswith(self.cwd.rstrip("/") + "/"):
            return inside(self.folder, relative(self.cwd, path))
        if not path.startswith("/"):
            return path if is_foreign(path) else inside(self.folder, path.removeprefix("./"))
        return relative(self.project.root, path)

    def frames(self, error: Mapping[str, Any]) -> list[Frame]:
        given = error.get("frames")
        if given:
            raw = [Frame(function=function_name(one.get("function")), file=one.get("file"), line=one.get("line")) for one in given]
        else:
            raw = frames_of(str(error.get("stack") or ""))
        ours = self.request.reporters.rstrip("/").rsplit("/", 1)[-1] + "/"
        raw = [one for one in raw if one.file is None or not (one.file.startswith(self.request.reporters) or re.search(rf"/{ours}(?:bun|deno)\.ts$", one.file))]
        placed = [frame.model_copy(update={"file": self.place(frame.file)}) for frame in raw]
        last_own = max((index for index, frame in enumerate(placed) if own_frames([frame])), default=len(placed) - 1)
        # What called the project is the runner.
        return [frame for frame in placed[: last_own + 1] if not (frame.file or "").startswith(("node:", "ext:"))]

    def failure(self, error: Mapping[str, Any], test: Known, path: Sequence[str]) -> Failure:
        frames = self.frames(error)
        own = own_frames(frames)
        message = message_of(str(error.get("message") or "failed")).removeprefix("Error: ")
        if error.get("diff"):
            message = f"{message}\n{plain(str(error['diff']))}"
        return Failure(
            name=test.key[1], message=message[:MESSAGE_MAX], stack_trace=frames, file=own[0].file if own else test.file, line=own[0].line if own else test.line,
            rerun_command=self.rerun_line(test.file, test.key[1], path), suggested_traces=suggested_traces(frames, test.key[1], test.file),
        )  # fmt: skip

    def concerns(self, path: Sequence[str]) -> bool:
        """Whether a hook (the last of `path`) is of a suite with tests that were asked for."""
        asked = self.plan.wanted.name
        return asked is None or not self.runs_others or flat(asked).startswith(flat(SEPARATOR.join(path[:-1])))

    # The end

    def prepare_failed(self, step: str, exit: Exit) -> Sequence[Step]:
        last = "\n".join(self.lines.get(step, ()))
        how = f"signal {exit.signal}" if exit.signal else f"status {exit.code}"
        self.book.compile_message = last[-MESSAGE_MAX:] or f"{step} ended with {how}"
        self.book.errors.append(f"{step} ended with {how}: {shlex.join(self.plan.steps[0].argv[2:] or self.plan.steps[0].argv)}\n{last}"[:MESSAGE_MAX])
        self.closed = True
        return ()

    def close(self, at: float) -> None:
        """Once nothing more can come: what is still running, and what the exit says that no event did."""
        self.closed = True
        exit = self.exit or Exit()
        if exit.killed:
            self.close_killed(at)
            return
        running = list(self.book.running)
        pids = {one.pid for one in self.book.running.values()}
        died = [one for one in self.gone if one[0] in pids] or [one for one in self.gone if one[2]]
        if exit.signal is not None or (exit.code and self.began and not self.book.finished and not died):
            self.crash(exit.code, exit.signal, at, running)
        elif running or (exit.code and self.began and not self.book.finished):
            _, code, signal = died[0] if died else (0, exit.code, None)
            self.crash(code, signal, at, running)
        elif exit.code == 0 and self.began and not self.book.finished and not self.plan.is_foreign:
            self.book.errors.append(f"{self.plan.framework} ended with status 0 before it said that its tests were through: others may not have run.")
        self.explain(exit)

    def crash(self, code: int | None, signal: str | None, at: float, during: Sequence[tuple[str | None, str]]) -> None:
        step = self.plan.steps[-1]
        how = f"by {signal}" if signal else f"with status {code}"
        self.end_running(TestStatus.LOST, f"The process that ran this test ended {how} before the test did.", at, during)
        if self.book.crash is None:
            names = [name for _, name in during]
            last = list(self.lines.get(step.name, ()))
            self.book.crash = Crash(command=shlex.join(step.argv), exit_code=None if signal else code, signal=signal, during=names, last_lines=last)

    def end_running(self, status: TestStatus, message: str, at: float, keys: Sequence[tuple[str | None, str]]) -> None:
        tests = self.by_key()
        for key in keys:
            begun = self.book.running[key]
            failure = self.failure({"message": message}, tests[key], key[1].split(SEPARATOR))
            file, line = tests[key].file, tests[key].line
            case = TestCase(name=key[1], suite=key[0], status=status, duration_ms=at - begun.since, file=file, line=line, failures=[failure])
            self.book.ended(case, at)

    def complete(self, key: tuple[str | None, str]) -> None:
        """A test that the engine has closed, which knows no more than its name."""
        case, test = self.book.tests[key], self.by_key().get(key)
        if test is None or case.file is not None:
            return
        failure = self.failure({"message": case.failures[0].message if case.failures else "stuck"}, test, key[1].split(SEPARATOR))
        self.book.tests[key] = case.model_copy(update={"file": test.file, "line": test.line, "failures": [failure]})

    def by_key(self) -> dict[tuple[str | None, str], Known]:
        return {test.key: test for test in self.known.values()}

    def close_killed(self, at: float) -> None:
        """What ran is stuck. A file that was begun and runs no test hangs before its first or after its last."""
        if self.book.finished:
            self.book.running.clear()
            return
        busy = {test.file for key, test in self.by_key().items() if key in self.book.running}
        self.end_running(TestStatus.STUCK, "was running when the run was stopped", at, list(self.book.running))
        stuck = [key for key, case in self.book.tests.items() if case.status is TestStatus.STUCK]
        for key in stuck:
            self.complete(key)
        if busy or stuck:
            return
        for file in sorted(self.open_files):
            where = "after its last test" if any(case.file == file for case in self.book.tests.values()) else "before its first test"
            message = f"the file was not done when the run was stopped: {where} (a hook, or code of the file itself)"
            failure = Failure(name=f"({where})", file=file, message=message, suggested_traces=suggested_traces((), "", file))
            self.book.ended(TestCase(name=f"({where})", suite=file, file=file, status=TestStatus.STUCK, failures=[failure]))

    def explain(self, exit: Exit) -> None:
        """Nothing ran: why. Something went wrong that no test did: what was said last."""
        book = self.book
        if self.plan.is_foreign and not self.began and not book.crash:
            self.tell_exit(exit)
            return
        if self.plan.wanted.name and book.errors and not book.tests and not book.crash and self.began:
            book.errors.insert(0, no_match(self.plan.wanted, [*self.names, *names_in_sources(self.project, self.folder)]))
        if book.tests or book.errors or book.crash:
            others = self.runs_others and self.plan.wanted.name  # which may have failed
            if exit.code and not others and not book.errors and not book.crash and not book.count(TestStatus.FAILED):
                book.errors.append(f"{self.plan.framework} ended with status {exit.code}, though no test failed:\n{self.last()}")
            return
        if self.plan.wanted.text and self.began:
            book.errors.append(no_match(self.plan.wanted, [*self.names, *names_in_sources(self.project, self.folder)]))
        elif self.began or not exit.code:
            book.no_tests = self.hint
        else:
            book.errors.append(f"{self.plan.framework} could not start (status {exit.code}):\n{self.last()}")

    def tell_exit(self, exit: Exit) -> None:
        """Of a command that told of no test, the whole is one."""
        name = (self.request.command or "").strip()
        message = f"The command ended with status {exit.code}. Its tests could not be followed: it is not plainly {self.plan.framework}.\n{self.last()}"
        failures = [Failure(name=name, message=message[:MESSAGE_MAX], rerun_command=name)] if exit.code else []
        self.book.ended(TestCase(name=name, status=TestStatus.FAILED if exit.code else TestStatus.PASSED, failures=failures))

    def last(self) -> str:
        return "\n".join(self.lines.get(self.plan.steps[-1].name, ()))[-MESSAGE_MAX:]
