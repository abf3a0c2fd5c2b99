"""Any command: its exit status, the TAP that it prints, the JUnit files that it leaves, and what in its output looks like a failure."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.junit import JUnitCase, read_junit
from strobe.adapters.native_frames import place, suggested_traces
from strobe.adapters.stepped import LINE_MAX, SteppedRun, plain, refuse, surroundings
from strobe.adapters.tap import Point, Tap
from strobe.adapters.wanted import Wanted, inside
from strobe.model.testing import Candidate, Failure, NoTests, TestCase, TestStatus

TESTS: Final = "tests"
LINES_MAX: Final = 2000
FAILURES_MAX: Final = 20
REPORT_BYTES: Final = 8 << 20
# Names that JUnit files have by custom; those that are new or have changed are the run's.
REPORTS: Final = (
    "junit.xml", "report.xml", "test-results.xml", "test-report.xml", "results.xml", "TEST-results.xml", "test-results/junit.xml", "reports/junit.xml",
    "build/junit.xml", "build/test-results.xml", "target/junit.xml", "out/junit.xml",
)  # fmt: skip
_REPORT_FILES: Final = ("**/*junit*.xml", "**/TEST-*.xml", "**/test-results/**/*.xml", "**/*test*report*.xml", "**/*test*results*.xml")
_NAMED_PLACE: Final = re.compile(r"(?P<file>[\w./+-]+\.\w{1,5})['\"]?(?::| line |, line )(?P<line>\d+)")
_PLACED: Final = re.compile(
    r"^\s*(?:[A-Za-z]\w*: )?(?P<file>[\w./+-]*[\w+-]\.\w{1,5}):(?P<line>\d+)(?::\d+)?:? *(?P<message>.*(?i:error|fail|assert|panic|expected).*)$"
)
_LOOKS: Final = re.compile(
    r"(?i)^\W*(?:fail(?:ed|ure)?\b|error\b|assertion\b|panic\b|not ok\b|\[?\s*fail(?:ed)?\s*\]?|✗|✘|×).*|.*\bassert\w*\b.*\bfailed\b.*|^\S+Error: .*"
)
_TARGET: Final = re.compile(r"^(?P<name>test|tests|check)\s*:(?!=)", re.M)
_SCRIPTS: Final = ("run-tests.sh", "run_tests.sh", "runtests.sh", "test.sh", "tests.sh", "scripts/test.sh", "test/run.sh", "tests/run.sh")


@dataclass(frozen=True, slots=True)
class Found:
    """A command that runs a folder's tests, and what says so."""

    command: str
    reason: str
    confidence: int


def found_in(project: Project, folder: str) -> Found | None:
    for name in ("Makefile", "GNUmakefile", "makefile"):
        match = _TARGET.search(project.read(inside(folder, name)) or "")
        if match is not None:
            return Found(f"make {match['name']}", f"{inside(folder, name)} has the target {match['name']!r}", 40)
    for name, tool in (("justfile", "just"), ("Justfile", "just"), ("Taskfile.yml", "task")):
        if re.search(r"^\s*test\b.*:", project.read(inside(folder, name)) or "", re.M):
            return Found(f"{tool} test", f"{inside(folder, name)} has a recipe 'test'", 38)
    if project.exists(inside(folder, "meson.build")):
        for build in ("build", "builddir"):
            if project.exists(inside(folder, f"{build}/build.ninja")):
                return Found(f"meson test -C {build}", f"{inside(folder, 'meson.build')} is there, built in {build}", 45)
    for name in _SCRIPTS:
        if project.exists(inside(folder, name)):
            return Found(f"sh {name}", f"{inside(folder, name)} is there", 35)
    return None


class GenericRun(SteppedRun):
    def __init__(self, project: Project, request: Request, hint: NoTests, command: str) -> None:
        super().__init__(project, request, Wanted(), hint)
        self.command = command
        self.name = " ".join(command.split())[:200]
        self.tap = Tap()
        self.said: deque[str] = deque(maxlen=LINES_MAX)
        self.before: dict[str, str] = {}
        self.names_of: dict[str, Point] = {}

    def begin(self) -> Sequence[Step]:
        self.before = self.reports()
        return self.keep([Step(TESTS, ("/bin/sh", "-c", self.command), self.request.folder, surroundings(self.request))])

    def reports(self) -> dict[str, str]:
        """JUnit files of the project, with what tells one from its next version."""
        found = {}
        paths = [inside(self.folder, name) for name in REPORTS]
        for pattern in _REPORT_FILES:
            paths += self.project.files(inside(self.folder, pattern), 200)
        for path in dict.fromkeys(paths):
            text = self.project.read(path, REPORT_BYTES)
            if text is not None and re.search(r"<testsuites?\b", text[:2000]):
                found[path] = hashlib.sha256(text.encode()).hexdigest()
        return found

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if (None, self.name) not in self.book.running and not self.tap.is_tap and not self.book.tests:
            self.started(self.name, at)
        text = text[:LINE_MAX]
        self.said.append(plain(text))
        if stream != "stdout":
            return
        was_tap = self.tap.is_tap
        point = self.tap.feed(text)
        if self.tap.is_tap:
            self.book.expected = self.tap.planned
            self.book.running.pop((None, self.name), None)
            for one in self.tap.points if not was_tap else [point] if point is not None else []:
                self.tell(one, at)

    def tell(self, point: Point, at: float) -> None:
        """What follows a point is known later: it is told again at the end."""
        status = TestStatus.SKIPPED if point.skipped else TestStatus.PASSED if point.ok else TestStatus.FAILED
        name, number = point.name, 1
        while (None, name) in self.book.tests and self.names_of.get(name) is not point:
            number += 1
            name = f"{point.name} ({number})"
        self.names_of[name] = point
        failures = []
        if status is TestStatus.FAILED:
            placed = next((match for line in point.said if (match := _NAMED_PLACE.search(line))), None)
            file = place(self.project, self.folder, placed["file"]) if placed else None
            message = "\n".join(point.said).strip() or "not ok"
            failures = [Failure(name=name, file=file, line=int(placed["line"]) if placed else None, message=message)]
        self.finished_test(TestCase(name=name, status=status, reason=point.reason, failures=failures), at)

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        self.book.running.pop((None, self.name), None)
        told = self.read_reports(at)
        if self.tap.is_tap and not told:
            self.tap_ended(exit, at)
        elif not told:
            self.whole_ended(exit, at)
        if exit.signal is not None:
            self.crashed(step, exit, at, [])
        elif exit.code and not self.book.count(TestStatus.FAILED) and not self.book.errors:
            self.trouble(f"`{self.name}` ended with status {exit.code}, though no test failed:\n{self.last(step)}")
        self.book.finished = True
        self.close()
        return ()

    def read_reports(self, at: float) -> bool:
        changed = [path for path, digest in self.reports().items() if self.before.get(path) != digest]
        for path in changed:
            text = self.project.read(path, REPORT_BYTES) or ""
            try:
                cases = read_junit(text if "<testsuites" in text[:2000] else f"<testsuites>{re.sub(r'^<[?].*?[?]>', '', text.strip())}</testsuites>")
            except ValueError as broken:
                self.trouble(f"{path} could not be read: {broken}")
                continue
            for case in cases:
                self.reported(case, at)
        return bool(changed) and bool(self.book.tests)

    def reported(self, case: JUnitCase, at: float) -> None:
        name = f"{case.classname}.{case.name}" if case.classname and case.classname != case.name else case.name
        status = TestStatus.SKIPPED if case.skipped else TestStatus.FAILED if case.problems else TestStatus.PASSED
        file = place(self.project, self.folder, case.file) if case.file else None
        failures = [self.placed(name, "\n".join(part for part in (one.message, one.text.strip()) if part), file, case.line) for one in case.problems]
        ms = case.seconds * 1000 if case.seconds is not None else None
        suite = case.suites[-1] if case.suites else None
        self.finished_test(
            TestCase(
                name=name, suite=suite, status=status, duration_ms=ms, file=file, line=case.line, reason=case.reason, failures=failures, output=case.output
            )
        )  # fmt: skip

    def placed(self, name: str, message: str, file: str | None, line: int | None) -> Failure:
        match = next((found for text in message.splitlines() if (found := _PLACED.match(text))), None)
        if match is not None and line is None:
            file, line = place(self.project, self.folder, match["file"]), int(match["line"])
        return Failure(name=name, file=file, line=line, message=message)

    def tap_ended(self, exit: Exit, at: float) -> None:
        for point in self.tap.points:
            self.book.tests.pop((None, next((name for name, one in self.names_of.items() if one is point), point.name)), None)
        self.names_of.clear()
        for point in self.tap.points:
            self.tell(point, at)
        if self.tap.bail is not None:
            self.trouble(f"`{self.name}` gave up: {self.tap.bail}")
        if self.tap.planned is not None and self.tap.planned > len(self.tap.points):
            self.trouble(f"{self.tap.planned - len(self.tap.points)} of {self.tap.planned} planned tests did not run.")

    def whole_ended(self, exit: Exit, at: float) -> None:
        """Nothing tells of tests: the command is one."""
        status = TestStatus.PASSED if exit.code == 0 else TestStatus.LOST if exit.signal else TestStatus.FAILED
        failures = self.looks_like() if status is not TestStatus.PASSED else []
        output = "\n".join(self.said)
        self.finished_test(TestCase(name=self.name, status=status, duration_ms=at, failures=failures, output=output or None))
        if exit.signal is not None:
            self.crashed(TESTS, exit, at, [])
            if self.book.crash is not None:
                self.book.crash = self.book.crash.model_copy(update={"during": [self.name]})

    def looks_like(self) -> list[Failure]:
        found: list[Failure] = []
        for line in self.said:
            match = _PLACED.match(line)
            if match is not None:
                found.append(Failure(name=self.name, file=place(self.project, self.folder, match["file"]), line=int(match["line"]), message=line.strip()))
            elif _LOOKS.match(line):
                found.append(Failure(name=self.name, message=line.strip()))
            if len(found) == FAILURES_MAX:
                break
        last = self.last(TESTS)
        return found or [Failure(name=self.name, message=last or "failed, and said nothing")]

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return self.cd() + self.command

    def traces(self, failure: Failure) -> list[str]:
        words = re.findall(r"\w+", failure.name) if failure.name != self.name else []
        return suggested_traces(failure.stack_trace, None, failure.file, words)


class Generic:
    name = "generic"

    def detect(self, project: Project) -> Sequence[Candidate]:
        folders = {"."} | {path.rpartition("/")[0] for name in ("Makefile", "meson.build", "justfile") for path in project.files(f"*/{name}", 50)}
        found = [(folder, one) for folder in sorted(folders) if (one := found_in(project, folder)) is not None]
        return [Candidate(framework=self.name, confidence=one.confidence, reason=f"{one.reason}: {one.command}", folder=folder) for folder, one in found]

    def start(self, project: Project, request: Request) -> GenericRun:
        command = request.command or self.command_of(project, request)
        if request.test is not None:
            what = "A plain command has no way to choose tests by name."
            raise refuse(what, "Give `command` as the line that runs only this test, or `framework`.", request.test)
        if request.level is not None and request.command is None:
            raise refuse("A plain command has no levels.", f"Give `command` as the line that runs the {request.level} tests.", request.level)
        return GenericRun(project, request, self.hint(), command)

    def command_of(self, project: Project, request: Request) -> str:
        found = found_in(project, request.folder[len(project.root.rstrip("/")) + 1 :] or ".")
        if found is None:
            raise refuse("There is no command that runs tests.", "Give `command`, a shell line.", request.folder)
        return found.command

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        """A command can only be run whole."""
        return request

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"

    def hint(self) -> NoTests:
        hint = "Give `command`: a shell line that runs the tests and ends with a status other than 0 when one fails."
        return NoTests(project="of no language that Strobe knows", hint=hint)

    def no_tests(self, project: Project) -> NoTests | None:
        return None
