"""GoogleTest programs. Which test runs is read from its output, as far as the names are those of its own list; the report it writes at its end is the truth."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.book import Said
from strobe.adapters.cpp_project import candidates
from strobe.adapters.native_frames import place
from strobe.adapters.program_run import Program, ProgramRun
from strobe.adapters.stepped import plain, surroundings
from strobe.adapters.wanted import Wanted
from strobe.model.testing import Candidate, Failure, NoTests, TestCase, TestStatus

NEEDLES: Final = (b"This program contains tests written using Google Test", b"_ZN7testing14InitGoogleTestEPiPPc", b"gtest_list_tests")
FILTER_NAMES_MAX: Final = 200
EXAMPLE: Final = (
    "Add sum_test.cpp:\n  #include <gtest/gtest.h>\n  TEST(Sum, Adds) { EXPECT_EQ(1 + 1, 2); }\n"
    "and to CMakeLists.txt: find_package(GTest REQUIRED), add_executable(sum_test sum_test.cpp), target_link_libraries(sum_test GTest::gtest_main)"
)
_WORDS: Final = re.compile(r"\b(?:GTest|gtest|googletest|GoogleTest)\b")
_SUITE: Final = re.compile(r"^(?P<suite>\S+)\.(?:  # TypeParam = (?P<type>.*))?$")
_TEST: Final = re.compile(r"^  (?P<test>\S+)(?:  # GetParam\(\) = (?P<value>.*))?$")
_BEGAN: Final = re.compile(r"\[ RUN      \] (?P<name>\S+)$")
_ENDED: Final = re.compile(r"\[ {0,7}(?P<status>OK|FAILED|SKIPPED) {1,2}\] (?P<name>[^\s,]+)(?:, where .*)? \((?P<ms>\d+) ms\)$")
_PART: Final = re.compile(r"^(?P<file>[^\n:]+)(?::(?P<line>-?\d+))?: (?P<kind>Failure|Skipped|error: )\n?", re.M)
_STATUSES: Final = {"OK": TestStatus.PASSED, "FAILED": TestStatus.FAILED, "SKIPPED": TestStatus.SKIPPED}


@dataclass(slots=True)
class Speaking:
    """What a program printed since its test began."""

    name: str
    said: Said = field(default_factory=Said)


class GoogleTestRun(ProgramRun):
    needles = NEEDLES

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests) -> None:
        super().__init__(project, request, asked, hint)
        self.suite: dict[str, str] = {}
        self.speaking: dict[str, Speaking] = {}
        self.skips: dict[tuple[str, str], str] = {}

    def list_arguments(self, program: Program) -> tuple[str, ...]:
        return ("--gtest_list_tests", *(one for one in program.arguments if one.startswith("--gtest_filter=")))

    def listed(self, program: Program, text: str) -> None:
        suite, test = _SUITE.match(text), _TEST.match(text)
        if suite is not None:
            self.suite[program.suite] = suite["suite"]
        elif test is not None and program.suite in self.suite:
            program.names[f"{self.suite[program.suite]}.{test['test']}"] = test["value"] or ""

    def run_step(self, name: str, program: Program) -> Step:
        report = f"{self.request.work}/{re.sub('[^a-zA-Z0-9_.-]', '_', program.suite)}.json"
        given = [one for one in program.arguments if not one.startswith(("--gtest_output", "--gtest_color", "--gtest_brief", "--gtest_print_time"))]
        if self.asked.name is not None or self.request.level is not None:
            given = [one for one in given if not one.startswith("--gtest_filter")]
            given.append(f"--gtest_filter={self.filter(program)}")
        argv = (program.path, *given, f"--gtest_output=json:{report}", "--gtest_color=no")
        return Step(name, argv, self.request.folder, surroundings(self.request), is_program=True, reports=(report,))

    def filter(self, program: Program) -> str:
        text = self.asked.name
        if text is not None and not self.asked.exact and self.request.level is None and len(program.chosen) > FILTER_NAMES_MAX and not set(text) & set("*?:-"):
            return f"*{text}*"
        return ":".join(program.chosen)

    # Live

    def told(self, program: Program, stream: Stream, text: str, at: float) -> None:
        if stream != "stdout":
            return
        line = plain(text)
        speaking = self.speaking.get(program.suite)
        began = _BEGAN.search(line) if speaking is None else None
        if began is not None and began["name"] in program.chosen:
            self.speaking[program.suite] = Speaking(began["name"])
            self.started(began["name"], at, suite=program.suite)
            return
        if speaking is None:
            return
        ended = _ENDED.search(line)
        if ended is not None and ended["name"] == speaking.name:
            del self.speaking[program.suite]
            self.live_end(program, speaking, _STATUSES[ended["status"]], float(ended["ms"]), at)
        else:
            speaking.said.add(text + "\n")

    def live_end(self, program: Program, speaking: Speaking, status: TestStatus, ms: float, at: float) -> None:
        output = speaking.said.text().removesuffix("\n")
        parts = self.parts(output)
        reason = next((message for kind, _, _, message in parts if kind == "Skipped"), None)
        if reason is not None:
            self.skips[(program.suite, speaking.name)] = reason
        failures = [self.part_failure(program, speaking.name, file, line, message) for kind, file, line, message in parts if kind != "Skipped"]
        self.finished_test(
            TestCase(
                name=speaking.name, suite=program.suite, status=status, duration_ms=ms, output=output or None, file=failures[0].file if failures else None,
                failures=failures if status is TestStatus.FAILED else [], reason=reason if status is TestStatus.SKIPPED else None,
            ), at,
        )  # fmt: skip

    def parts(self, output: str) -> list[tuple[str, str | None, int | None, str]]:
        """(kind, file, line, message) of each failure in a test's output. A message goes on to the next part, or to an empty line."""
        found = []
        matches = list(_PART.finditer(output))
        for index, match in enumerate(matches):
            end = matches[index + 1].start() if index + 1 < len(matches) else len(output)
            message = output[match.end() : end].split("\n\n\n")[0].strip()
            line = int(match["line"]) if match["line"] and not match["line"].startswith("-") else None
            found.append((match["kind"], None if match["file"] == "unknown file" else match["file"], line, message))
        return found

    # The report

    def reported(self, program: Program, exit: Exit, reports: Mapping[str, str], at: float) -> None:
        self.speaking.pop(program.suite, None)
        for text in reports.values():
            try:
                report = json.loads(text)
            except ValueError:
                self.trouble(f"{program.suite}'s report is not whole")
                continue
            for suite in report.get("testsuites", ()):
                for test in suite.get("testsuite", ()):
                    self.report_case(program, f"{suite['name']}.{test['name']}", test, at)

    def report_case(self, program: Program, name: str, test: Mapping[str, Any], at: float) -> None:
        if name not in program.chosen:
            return
        key = (program.suite, name)
        live = self.book.tests.get(key)
        file = place(self.project, self.folder, test["file"]) if test.get("file") else None
        failures = [self.report_failure(program, name, one["failure"], test, file) for one in test.get("failures", ())]
        disabled = test.get("status") == "NOTRUN"
        status = TestStatus.FAILED if failures else TestStatus.SKIPPED if disabled or test.get("result") in ("SKIPPED", "SUPPRESSED") else TestStatus.PASSED
        reason = None
        if status is TestStatus.SKIPPED:
            said = next((str(one.get("message", "")).partition("\n")[2].strip() for one in test.get("skipped", ()) if isinstance(one, dict)), None)
            reason = "its name begins with DISABLED_" if disabled else self.skips.get(key) or said
        self.book.running.pop(key, None)
        seconds = float(str(test.get("time", "0s")).removesuffix("s") or 0)
        self.finished_test(
            TestCase(
                name=name, suite=program.suite, status=status, duration_ms=None if disabled else seconds * 1000, file=file, line=test.get("line"),
                reason=reason, failures=failures, output=live.output if live is not None else None,
            )
        )  # fmt: skip

    def report_failure(self, program: Program, name: str, said: str, test: Mapping[str, Any], file: str | None) -> Failure:
        """`file:line`, a line's end, the message."""
        first, _, message = said.partition("\n")
        where, parted, line = first.rpartition(":")
        if not parted or not line.lstrip("-").isdigit():
            where, line = first, "-1"
        if where == "unknown file":
            where, line, message = test.get("file", ""), str(test.get("line", -1)), message
        if test.get("value_param"):
            message = f"{message}\nwhere GetParam() = {test['value_param']}"
        return self.part_failure(program, name, where or None, int(line) if int(line) > 0 else None, message)

    def part_failure(self, program: Program, name: str, file: str | None, line: int | None, message: str) -> Failure:
        return Failure(name=name, file=place(self.project, self.folder, file) if file else None, line=line, message=message.strip())

    def words(self, name: str) -> Sequence[str]:
        """`Inst/CartTest.AddsOne/0`: the instance and the number say nothing."""
        suite, _, test = name.partition(".")
        return [test.split("/")[0], suite.split("/")[-1] if not suite.split("/")[-1].isdigit() else suite.split("/")[0]]

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return self.cd() + shlex.join([f"./{suite}", f"--gtest_filter={name}"])


class GoogleTest:
    name = "GoogleTest"

    def detect(self, project: Project) -> Sequence[Candidate]:
        return candidates(project, self.name, NEEDLES, _WORDS, 90)

    def start(self, project: Project, request: Request) -> GoogleTestRun:
        return GoogleTestRun(project, request, Wanted(name=request.test, exact=request.exact), self.hint())

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"

    def hint(self) -> NoTests:
        return NoTests(project="C++", hint=f"No GoogleTest tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if any(project.files(f"**/*.{ending}", 1) for ending in ("cpp", "cc", "cxx")) else None
