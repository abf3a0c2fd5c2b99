"""Catch2, versions 2 and 3, of one file or of many. Its XML goes to a file of its own, which is followed: a test is in it as soon as it begins.

Version 2 is tested on real programs, version 3 on recordings of one (tests/golden/frameworks/catch2v3): Debian 12, PyPI and npm have no 3."""

from __future__ import annotations

import io
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.book import OUTPUT_MAX
from strobe.adapters.cpp_project import candidates
from strobe.adapters.native_frames import place
from strobe.adapters.program_run import Program, ProgramRun
from strobe.adapters.stepped import surroundings
from strobe.adapters.wanted import Wanted
from strobe.model.testing import Candidate, Failure, NoTests, TestCase, TestStatus

V2: Final = b"list-test-names-only"
V3: Final = b"catch2-version"
XML_MAX: Final = 4 << 20  # of one test
EXAMPLE: Final = (
    "Add sum_test.cpp:\n  #include <catch2/catch_test_macros.hpp>\n  TEST_CASE(\"adds\") { REQUIRE(1 + 1 == 2); }\n"
    "and to CMakeLists.txt: find_package(Catch2 3 REQUIRED), add_executable(sum_test sum_test.cpp), target_link_libraries(sum_test Catch2::Catch2WithMain)"
)
_WORDS: Final = re.compile(r"\b(?:Catch2?|catch2?|catch\.hpp)\b")
_BEGIN: Final = re.compile(r"^\s*<TestCase name=")
_PRINTED: Final = re.compile(r"^\s*<Std(?:Out|Err)>")
_PRINTED_END: Final = re.compile(r"</Std(?:Out|Err)>\s*$")
_HALF: Final = re.compile(r"&[^;]{0,8}$")  # an entity that was cut
_END: Final = re.compile(r"^\s*</TestCase>")


@dataclass(slots=True)
class Reading:
    """A program's XML between the beginning and the end of a test."""

    lines: list[str] = field(default_factory=list)
    size: int = 0
    printed: int | None = None  # characters of <StdOut> or <StdErr> so far, within one
    fatal: list[str] = field(default_factory=list)  # tests that a signal ended


class Catch2Run(ProgramRun):
    needles = (V2, V3)

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests) -> None:
        super().__init__(project, request, asked, hint)
        self.reading: dict[str, Reading] = {}
        self.xml_names: dict[str, list[str]] = {}

    def is_three(self, program: Program) -> bool:
        root = self.project.root.rstrip("/") + "/"
        return self.project.has_bytes(program.path.removeprefix(root), V3)

    def list_arguments(self, program: Program) -> tuple[str, ...]:
        spec = [one for one in program.arguments if not one.startswith("-")]
        if self.is_three(program):
            return ("--list-tests", "-r", "xml", *spec)
        return ("--list-test-names-only", *(spec or self.level_spec()))

    def level_spec(self) -> list[str]:
        """Version 2 tells tags only by lines that it breaks; it is asked by tag instead."""
        if self.request.level is None:
            return []
        return ["~[integration]~[e2e]"] if self.request.level == "unit" else [f"[{self.request.level}]"]

    def listed(self, program: Program, text: str) -> None:
        if not self.is_three(program):
            name = text.rstrip("\n")
            name = name[1:-1] if name.startswith('"#') else name
            if name:
                program.names[name] = f"[{self.request.level or ''}]"
            return
        # <TestCase><Name>..</Name><ClassName/><Tags>[a][b]</Tags>: one element a line
        match = re.match(r"^\s*<(?P<tag>Name|Tags)>(?P<text>.*)</(?P=tag)>", text)
        if match is None:
            return
        said = ElementTree.fromstring(f"<a>{match['text']}</a>").text or ""
        if match["tag"] == "Name":
            self.xml_names.setdefault(program.suite, []).append(said)
            program.names[said] = ""
        elif self.xml_names.get(program.suite):
            program.names[self.xml_names[program.suite][-1]] = said

    def is_chosen(self, program: Program, name: str) -> bool:
        if self.asked.name is not None and not self.asked.exact and self.asked.name.startswith("["):
            return self.asked.name in program.names[name]
        return super().is_chosen(program, name)

    def run_step(self, name: str, program: Program) -> Step:
        report = f"{self.request.work}/{re.sub('[^a-zA-Z0-9_.-]', '_', program.suite)}.xml"
        how = ["-r", "console", "-r", f"xml::out={report}"] if self.is_three(program) else ["-r", "xml", "-o", report]
        given = [one for one in program.arguments if one.startswith("-")]
        spec = [one for one in program.arguments if not one.startswith("-")]
        if self.asked.name is not None or self.request.level is not None:
            spec = [",".join(escaped(one) for one in program.chosen)]
        argv = (program.path, *spec, *given, *how, "-d", "yes")
        return Step(
            name, argv, self.request.folder, surroundings(self.request), is_program=True, reports=(report,), follow=(report,),
        )  # fmt: skip

    def told(self, program: Program, stream: Stream, text: str, at: float) -> None:
        if stream != "report":
            return
        reading = self.reading.setdefault(program.suite, Reading())
        if _BEGIN.match(text):
            reading.lines, reading.size = [text], len(text)
            self.began(program, text, at)
        elif _END.match(text) and reading.lines:
            self.test_ended(program, reading, "\n".join([*reading.lines, text]), at)
            reading.lines = []
        elif reading.lines:
            self.keep_line(reading, text)

    def keep_line(self, reading: Reading, text: str) -> None:
        """The elements whole, of what the test printed the beginning."""
        opens, closes = _PRINTED.match(text), _PRINTED_END.search(text)
        if opens is not None:
            reading.printed = 0
        if reading.printed is None:
            if reading.size < XML_MAX:
                reading.size += len(text)
                reading.lines.append(text)
            return
        room = OUTPUT_MAX - reading.printed
        if closes is not None and closes.start() > room:
            text = _HALF.sub("", text[: max(0, room)]) + closes[0]
        elif len(text) > room and opens is None:
            text = _HALF.sub("", text[: max(0, room)])
        elif opens is not None:
            text = _HALF.sub("", text[:OUTPUT_MAX]) if closes is None else text
        reading.printed += len(text) + 1
        if text:
            reading.lines.append(text)
        if closes is not None:
            reading.printed = None

    def began(self, program: Program, text: str, at: float) -> None:
        try:
            case = ElementTree.fromstring(text.strip() + ("" if text.rstrip().endswith("/>") else "</TestCase>"))
        except ElementTree.ParseError:
            return  # its name goes on in the next line
        line = case.get("line")
        file = place(self.project, self.folder, case.get("filename", ""))
        self.started(case.get("name", "").strip(), at, suite=program.suite, file=file, line=int(line) if line else None)

    def test_ended(self, program: Program, reading: Reading, text: str, at: float) -> None:
        try:
            case = ElementTree.fromstring(text.strip())
        except ElementTree.ParseError as broken:
            self.trouble(f"{program.suite}: a test's XML can't be read: {broken}")
            return
        self.case_read(program, reading, case, at)

    def case_read(self, program: Program, reading: Reading, case: ElementTree.Element, at: float) -> None:
        name = case.get("name", "").strip()
        name = next((one for one in program.chosen if one.strip() == name), name)
        overall = case.find("OverallResult")
        passed = overall is not None and overall.get("success") == "true"
        skipped = passed and overall is not None and int(overall.get("skips") or 0) > 0
        seconds = overall.get("durationInSeconds") if overall is not None else None
        file, line = place(self.project, self.folder, case.get("filename", "")), int(case.get("line") or 0) or None
        failures = self.failures(name, case, (), file)
        if case.find(".//FatalErrorCondition") is not None:
            reading.fatal.append(name)
        output = "".join(one.text or "" for one in overall if one.tag in ("StdOut", "StdErr")).strip() if overall is not None else ""
        reason = next((said.text.strip() for said in case.iter("Skip") if said.text), None) if skipped else None
        status = TestStatus.SKIPPED if skipped else TestStatus.PASSED if passed else TestStatus.FAILED
        self.finished_test(
            TestCase(
                name=name, suite=program.suite, status=status, file=file, line=line,
                duration_ms=float(seconds) * 1000 if seconds else None, reason=reason, failures=[] if passed else failures, output=output or None,
            ), at,
        )  # fmt: skip

    def failures(self, name: str, node: ElementTree.Element, sections: tuple[str, ...], file: str | None) -> list[Failure]:
        """What failed in a test or a section of it, with what was told just before (INFO, CAPTURE)."""
        found: list[Failure] = []
        infos: list[str] = []
        for child in node:
            text = (child.text or "").strip()
            if child.tag == "Section":
                found += self.failures(name, child, (*sections, child.get("name", "").strip()), file)
            elif child.tag in ("Info", "Warning"):
                infos.append(text)
            elif child.tag in ("Expression", "Exception", "FatalErrorCondition", "Failure"):
                message = expression(child) if child.tag == "Expression" else text
                if message is not None:
                    found.append(self.failure(name, child, "\n".join([*([f"in {' > '.join(sections)}:"] if sections else []), message, *infos]), file))
                infos = []
        return found

    def failure(self, name: str, node: ElementTree.Element, message: str, file: str | None) -> Failure:
        line = node.get("line")
        where = place(self.project, self.folder, node.get("filename", "")) if node.get("filename") else file
        return Failure(name=name, file=where, line=int(line) if line else None, message=message)

    def reported(self, program: Program, exit: Exit, reports: Mapping[str, str], at: float) -> None:
        for text in reports.values():  # again, whole: who followed it may have missed its end
            self.reading[program.suite] = Reading()
            for line in io.StringIO(text):  # no second copy of it
                self.told(program, "report", line.rstrip("\n"), at)
        if exit.signal is not None:
            self.lose(program, self.reading.setdefault(program.suite, Reading()).fatal[-1:], exit, at)

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return self.cd() + shlex.join([f"./{suite}", escaped(name)])


def escaped(name: str) -> str:
    """A name as a test spec: what would part it, or make it a tag or a pattern, stands for itself."""
    text = re.sub(r'[\\,\[\]"]', r"\\\g<0>", name.strip())
    if text.startswith(("~", "*", "exclude:")):
        text = f"\\{text}"
    return text[:-1] + "\\*" if text.endswith("*") else text


def expression(node: ElementTree.Element) -> str | None:
    """None for one that held."""
    if node.get("success") == "true":
        return None
    parts = {child.tag: (child.text or "").strip() for child in node}
    said = f"{node.get('type', 'CHECK')}( {parts.get('Original', '')} )"
    if parts.get("Expanded") and parts["Expanded"] != parts.get("Original"):
        said += f"\nwith expansion: {parts['Expanded']}"
    thrown = parts.get("Exception") or parts.get("FatalErrorCondition")
    return f"{said}\nthrew: {thrown}" if thrown else said


class Catch2:
    name = "Catch2"

    def detect(self, project: Project) -> Sequence[Candidate]:
        return candidates(project, self.name, (V2, V3), _WORDS, 90)

    def start(self, project: Project, request: Request) -> Catch2Run:
        return Catch2Run(project, request, Wanted(name=request.test, exact=request.exact), self.hint())

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"

    def hint(self) -> NoTests:
        return NoTests(project="C++", hint=f"No Catch2 tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if any(project.files(f"**/*.{ending}", 1) for ending in ("cpp", "cc", "cxx")) else None
