"""CTest: what it has is asked as JSON; which test runs stands in its own output, where a test's never does; its JUnit report is the truth.

What a test says of itself is read from its output: GoogleTest's and Catch2's failures, and any `file:line: error`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.cpp_project import BUILD, build_folders, build_step, cmake_folders, compiler_errors, source_folder
from strobe.adapters.junit import JUnitCase, read_junit
from strobe.adapters.native_frames import place, suggested_traces
from strobe.adapters.program_run import BUILD_LINES, LEVELS
from strobe.adapters.stepped import LINE_MAX, SteppedRun, refuse, surroundings, tool
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, Failure, NoTests, TestCase, TestStatus

LIST: Final = "list"
TESTS: Final = "tests"
LISTING_MAX: Final = 16 << 20
EXAMPLE: Final = "Add to CMakeLists.txt: enable_testing(), add_executable(sum_test sum_test.c), add_test(NAME sum COMMAND sum_test)"
_BEGAN: Final = re.compile(r"^ *Start +(?P<number>\d+): (?P<name>.*)$")
_ENDED: Final = re.compile(r"^ *\d+/\d+ +Test +#(?P<number>\d+): (?P<rest>.*)$")
_HOW: Final = re.compile(r"(?P<how>Passed|\*\*\*[A-Za-z][^0-9]*?|[A-Z][a-z]+ [a-z]+\*\*\*Exception:?) +(?P<seconds>[\d.]+) sec")
_SIGNALS: Final = {"SegFault": "SIGSEGV", "Illegal": "SIGILL", "Numerical": "SIGFPE", "Interrupt": "SIGINT", "aborted": "SIGABRT", "killed": "SIGKILL"}
_SAID: Final = re.compile(r"^(?P<file>[^\s:][^:\n]*?):(?P<line>\d+)(?::\d+)?: (?:Failure|FAILED:|(?:fatal )?error:|[Aa]ssertion)[^\n]*", re.M)
_ASSERT: Final = re.compile(r"^[^\n:]+: (?P<file>[^\n:]+):(?P<line>\d+): [^\n]*: Assertion [^\n]* failed\.", re.M)


@dataclass(slots=True)
class Known:
    name: str
    labels: tuple[str, ...]
    file: str | None
    line: int | None


class CTestRun(SteppedRun):
    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests, ctest: str, options: Sequence[str]) -> None:
        super().__init__(project, request, asked, hint)
        self.ctest = ctest
        self.options = tuple(options)
        self.known: dict[str, Known] = {}
        self.numbers: dict[int, Known] = {}  # ctest's own, as its output tells them: they count tests that options leave out
        self.listing: list[str] = []
        self.listing_size = 0
        self.build_lines: deque[str] = deque(maxlen=BUILD_LINES)
        self.signals: dict[str, str] = {}
        self.suite = self.folder

    def begin(self) -> Sequence[Step]:
        build = build_step(self.project, self.request)
        return self.keep([build if build is not None else self.list_step()])

    def list_step(self) -> Step:
        argv = (self.ctest, "--test-dir", self.request.folder, "--show-only=json-v1", *self.options)
        return Step(LIST, argv, self.request.folder, surroundings(self.request), phase="compiling")

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if step == BUILD:
            self.build_lines.append(text[:LINE_MAX])
        elif step == LIST and stream == "stdout" and self.listing_size < LISTING_MAX:
            self.listing_size += len(text)
            self.listing.append(text)
        elif step == TESTS and stream == "stdout":
            self.told(text, at)

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        if step == BUILD:
            if exit.code == 0:
                return [self.list_step()]
            self.compile_failed(compiler_errors(list(self.build_lines)))
            self.closed = True
            return ()
        if step == LIST:
            return self.chosen_steps(exit)
        self.tests_ended(exit, reports, at)
        return ()

    # The list

    def chosen_steps(self, exit: Exit) -> Sequence[Step]:
        try:
            listed = json.loads("\n".join(self.listing))
        except ValueError:
            self.trouble(f"ctest could not list the tests (status {exit.code}):\n{self.last(LIST)}")
            self.close()
            return ()
        self.read_list(listed)
        chosen = [one.name for one in self.known.values() if self.is_chosen(one)]
        self.names = dict.fromkeys(self.known)
        self.book.expected = len(chosen)
        if not chosen:
            if self.request.level is not None and self.known and not self.asked.name:
                labels = sorted({label for one in self.known.values() for label in one.labels})
                self.trouble(f"No {self.request.level} tests: no test has such a label or name. Labels: {', '.join(labels) or 'none'}.")
            self.book.finished = True
            self.close()
            return ()
        report = f"{self.request.work}/junit.xml"
        picked = ["-R", f"^({'|'.join(escaped(name) for name in chosen)})$"] if len(chosen) < len(self.known) else []
        argv = (self.ctest, "--test-dir", self.request.folder, *self.options, *picked, "--output-junit", report, "--no-tests=error")
        return [Step(TESTS, argv, self.request.folder, surroundings(self.request), reports=(report,))]

    def read_list(self, listed: Mapping[str, Any]) -> None:
        graph = listed.get("backtraceGraph", {})
        for test in listed.get("tests", ()):
            properties = {one["name"]: one["value"] for one in test.get("properties", ())}
            node = (graph.get("nodes") or [{}])[test.get("backtrace", 0)]
            file = relative(self.project.root, graph["files"][node["file"]]) if "file" in node else None
            self.known[test["name"]] = Known(test["name"], tuple(properties.get("LABELS", ())), file, node.get("line"))

    def is_chosen(self, test: Known) -> bool:
        level = self.request.level
        if level is not None:
            text = " ".join([*test.labels, test.name])
            far = any(LEVELS[one].search(text) for one in ("integration", "e2e") if one in LEVELS)
            if not (LEVELS[level].search(text) or (level == "unit" and not far)):
                return False
        if self.asked.name is None:
            return True
        return test.name == self.asked.name if self.asked.exact else self.asked.name.lower() in test.name.lower()

    # Live

    def told(self, text: str, at: float) -> None:
        began, ended = _BEGAN.match(text), _ENDED.match(text)
        if began is not None and began["name"] in self.known:
            test = self.numbers[int(began["number"])] = self.known[began["name"]]
            self.started(test.name, at, suite=self.suite, file=test.file, line=test.line)
        elif ended is not None and int(ended["number"]) in self.numbers:
            self.live_end(self.numbers[int(ended["number"])], ended["rest"], at)

    def live_end(self, test: Known, rest: str, at: float) -> None:
        if (self.suite, test.name) not in self.book.running:
            return
        match = _HOW.search(rest.removeprefix(test.name))
        how = match["how"] if match else rest.removeprefix(test.name).strip(" .")
        ms = float(match["seconds"]) * 1000 if match else None
        signal = next((name for word, name in _SIGNALS.items() if word in how), None)
        if signal is not None and "Exception" in how:
            self.signals[test.name] = signal
        status = TestStatus.PASSED if how == "Passed" else TestStatus.SKIPPED if "Skipped" in how or "Not Run (Disabled)" in how else TestStatus.FAILED
        message = how.strip("* :")
        failures = [Failure(name=test.name, file=test.file, line=test.line, message=message)] if status is TestStatus.FAILED else []
        self.finished_test(
            TestCase(name=test.name, suite=self.suite, status=status, duration_ms=ms, file=test.file, line=test.line, failures=failures), at
        )  # fmt: skip

    # The end

    def tests_ended(self, exit: Exit, reports: Mapping[str, str], at: float) -> None:
        text = next(iter(reports.values()), None)
        if text is not None:
            try:
                for case in read_junit(f"<testsuites>{text.partition('?>')[2]}</testsuites>"):
                    self.reported(case, at)
            except ValueError as broken:
                self.trouble(f"ctest's report could not be read: {broken}")
        for name, signal in self.signals.items():
            self.died(name, signal, at)
        if exit.signal is not None or self.book.running:
            self.crashed(TESTS, exit, at)
        self.book.finished = text is not None
        if exit.code and not self.book.count(TestStatus.FAILED) and not self.book.crash and not self.book.errors:
            self.trouble(f"ctest ended with status {exit.code}, though no test failed:\n{self.last(TESTS)}")
        self.close()

    def reported(self, case: JUnitCase, at: float) -> None:
        test = self.known.get(case.name)
        if test is None:
            return
        before = self.book.tests.get((self.suite, case.name))
        live = before.failures[0].message if before is not None and before.failures else None
        output = case.output or ""
        status = TestStatus.FAILED if case.problems else TestStatus.SKIPPED if case.skipped or output.strip() == "Disabled" else TestStatus.PASSED
        if before is not None and before.status is TestStatus.FAILED and status is not TestStatus.PASSED:
            status = TestStatus.FAILED  # what could not be run is `skipped` in the report
        self.book.running.pop((self.suite, case.name), None)
        reason = None
        if status is TestStatus.SKIPPED:
            said = re.search(r": Skipped\n([^\n\[]+)", output)
            reason = said[1].strip() if said else "disabled" if output.strip() == "Disabled" else self.skip_reason(case.reason)
        failures = self.failures(test, output, live) if status is TestStatus.FAILED else []
        self.finished_test(
            TestCase(
                name=case.name, suite=self.suite, status=status, duration_ms=case.seconds * 1000 if case.seconds is not None else None, file=test.file,
                line=test.line, reason=reason, failures=failures, output=output or None,
            )
        )  # fmt: skip

    def skip_reason(self, said: str | None) -> str | None:
        for word, meaning in (("SKIP_RETURN_CODE", "its exit status says that it was skipped"), ("SKIP_REGULAR", "its output says that it was skipped")):
            if said and said.startswith(word):
                return meaning
        return said or None

    def failures(self, test: Known, output: str, live: str | None) -> list[Failure]:
        """What its framework said, each with its place; else how it ended, with its last lines."""
        found = []
        matches = sorted([*_SAID.finditer(output), *_ASSERT.finditer(output)], key=lambda match: match.start())
        for index, match in enumerate(matches):
            end = matches[index + 1].start() if index + 1 < len(matches) else len(output)
            message = re.split(r"\n\s*\n|\n\[|\n={3,}|\n-{3,}", output[match.start() : end])[0].strip()
            file = place(self.project, self.folder, match["file"])
            traces = suggested_traces((), None, file, re.findall(r"\w+", test.name))
            found.append(Failure(name=test.name, file=file, line=int(match["line"]), message=message, suggested_traces=traces))
        if found:
            return found
        last = "\n".join(output.strip().splitlines()[-15:])
        return [Failure(name=test.name, file=test.file, line=test.line, message="\n".join(part for part in (live or "Failed", last) if part))]

    def died(self, name: str, signal: str, at: float) -> None:
        case = self.book.tests.pop((self.suite, name), None)
        if case is not None:
            self.places[(self.suite, name)] = (case.file, case.line)
            self.book.started(name, at - (case.duration_ms or 0), suite=self.suite)
            self.crashed(TESTS, Exit(signal=signal), at, [(self.suite, name)])

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return shlex.join(["ctest", "--test-dir", self.folder, *self.options, "-R", f"^{escaped(name)}$", "--output-on-failure"])

    def traces(self, failure: Failure) -> list[str]:
        return suggested_traces(failure.stack_trace, None, None, re.findall(r"\w+", failure.name))


def escaped(name: str) -> str:
    """For CMake's regular expressions."""
    return re.sub(r"[][()+*?.^$|\\]", r"\\\g<0>", name)


class CTest:
    name = "CTest"

    def detect(self, project: Project) -> Sequence[Candidate]:
        found = []
        sources = set()
        for build in build_folders(project):
            source = source_folder(project, build) or "."
            sources.add(source)
            if project.exists(inside(build, "CTestTestfile.cmake")):
                held = self.has_tests(project, build)
                reason = f"{inside(build, 'CTestTestfile.cmake')} is there" + ("" if held else ", though it names no test")
                found.append(Candidate(framework=self.name, confidence=88 if held else 50, reason=reason, folder=build))
        for folder in cmake_folders(project):
            text = project.read(inside(folder, "CMakeLists.txt")) or ""
            if folder not in sources and re.search(r"^\s*(?:enable_testing|include\s*\(\s*CTest)\b", text, re.M | re.I):
                reason = f"{inside(folder, 'CMakeLists.txt')} enables testing; not configured yet"
                found.append(Candidate(framework=self.name, confidence=66, reason=reason, folder=folder))
        return found

    def has_tests(self, project: Project, build: str) -> bool:
        files = [inside(build, "CTestTestfile.cmake"), *project.files(inside(build, "**/*_include.cmake"), 50)]
        files += project.files(inside(build, "**/CTestTestfile.cmake"), 200)
        return any(re.search(r"^\s*(?:add_test|include)\(", project.read(file) or "", re.M) for file in files)

    def start(self, project: Project, request: Request) -> CTestRun:
        options: list[str] = []
        if request.command is not None:
            words = shlex.split(request.command)
            if not words or words[0].rsplit("/", 1)[-1] != "ctest":
                what = f"`command` is not a line of ctest: {request.command!r}."
                raise refuse(what, 'Set `framework` to "generic" to run any command.', request.command)
            options = without_ours(words[1:])
        ctest = tool(project, "ctest", "Install CMake.")
        return CTestRun(project, request, Wanted(name=request.test, exact=request.exact), self.hint(), ctest, options)

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"

    def hint(self) -> NoTests:
        return NoTests(project="C or C++, built by CMake", hint=f"No tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if project.exists("CMakeLists.txt") else None


def without_ours(words: Sequence[str]) -> list[str]:
    """A command's options, without those that say where and how to report, or that put tests' output into ctest's."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("--test-dir", "--output-junit", "--show-only"):
            skip = True
        elif not re.match(r"^(?:-V+|--verbose|--extra-verbose|--output-on-failure|-N|--show-only.*|-Q|--quiet|--no-tests=.*|--progress)$", word):
            kept.append(word)
    return kept
