"""A run of built test programs: build, ask each for its tests, run each that has some of those asked for (GoogleTest, Catch2)."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.cpp_project import BUILD, build_step, compiler_errors, holding, programs
from strobe.adapters.native_frames import suggested_traces
from strobe.adapters.stepped import LINE_MAX, SteppedRun, refuse, surroundings, tool
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Failure, Level, NoTests, TestCase, TestStatus

BUILD_LINES: Final = 400
FIND: Final = "find the programs"
LEVELS: Final[Mapping[Level, re.Pattern[str]]] = {
    "unit": re.compile(r"(?i)(?<![a-z])units?(?![a-z])|Unit"),
    "integration": re.compile(r"(?i)integration"),
    "e2e": re.compile(r"(?i)e2e|end_?to_?end|acceptance"),
}


@dataclass(slots=True)
class Program:
    """`path` is absolute; `suite` as seen from the run's folder. `names` are its tests, with what is said of each (tags, parameters)."""

    path: str
    suite: str
    arguments: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, None] = field(default_factory=dict)


class ProgramRun(SteppedRun):
    needles: tuple[bytes, ...]

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests) -> None:
        super().__init__(project, request, asked, hint)
        self.by_step: dict[str, Program] = {}
        self.waiting: list[Step] = []
        self.found: list[str] = []  # programs that the build made
        self.build_lines: deque[str] = deque(maxlen=BUILD_LINES)

    # Each framework's own

    def list_arguments(self, program: Program) -> tuple[str, ...]:
        raise NotImplementedError

    def listed(self, program: Program, text: str) -> None:
        """A line of what a program says of its tests."""
        raise NotImplementedError

    def run_step(self, name: str, program: Program) -> Step:
        raise NotImplementedError

    def told(self, program: Program, stream: Stream, text: str, at: float) -> None:
        """A line of a program that runs its tests."""
        raise NotImplementedError

    def reported(self, program: Program, exit: Exit, reports: Mapping[str, str], at: float) -> None:
        """A program has ended: its report, if it wrote one."""
        raise NotImplementedError

    def words(self, name: str) -> Sequence[str]:
        """Of a test's name: what its patterns for traces are made of."""
        return re.findall(r"\w+", name)

    # What happens

    def begin(self) -> Sequence[Step]:
        build = build_step(self.project, self.request) if self.request.command is None else None
        if build is not None:
            return self.keep([build])
        self.waiting = [self.list_step(program) for program in self.programs()]
        if not self.waiting:
            what = f"No built program with such tests in {self.folder}."
            raise refuse(what, "Build them first, or give `command`: the path of one.", self.folder)
        return self.keep([self.waiting.pop(0)])

    def programs(self) -> list[Program]:
        if self.request.command is not None:
            return [self.commanded(self.request.command)]
        found = list(dict.fromkeys([*programs(self.project, self.folder, self.needles), *holding(self.project, self.found, self.needles)]))
        return [Program(f"{self.project.root.rstrip('/')}/{path}", path if self.folder == "." else relative(self.folder, path)) for path in found]

    def commanded(self, line: str) -> Program:
        """A command names one program, as seen from the run's folder or the project's, and its arguments."""
        words = shlex.split(line)
        for path in (inside(self.folder, words[0].removeprefix("./")), words[0].removeprefix("./")) if words else ():
            place = relative(self.project.root, path)
            if any(self.project.has_bytes(place, needle) for needle in self.needles):
                absolute = path if path.startswith("/") else f"{self.project.root.rstrip('/')}/{path}"
                return Program(absolute, relative(self.folder, place), tuple(words[1:]))
        raise refuse(f"{line!r} is no built program with such tests.", 'Set `framework` to "generic" to run any command.', line)

    def list_step(self, program: Program) -> Step:
        step = Step(
            f"list {program.suite}", (program.path, *self.list_arguments(program)), self.request.folder, surroundings(self.request), phase="compiling"
        )  # fmt: skip
        self.by_step[step.name] = program
        return step

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if step == BUILD:
            self.build_lines.append(text[:LINE_MAX])
        elif step == FIND:
            self.found.append(relative(self.project.root, text))
        elif step.startswith("list "):
            if stream == "stdout":
                self.listed(self.by_step[step], text)
        else:
            self.told(self.by_step[step], stream, text, at)

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            if step.startswith("run "):
                self.reported(self.by_step[step], exit, reports, at)
            return ()
        if step == BUILD:
            if exit.code != 0:
                self.compile_failed(compiler_errors(list(self.build_lines)))
                self.closed = True
                return ()
            find = tool(self.project, "find", "Install findutils.")
            argv = (find, self.request.folder, "-type", "f", "-perm", "-u+x", "-not", "-path", "*/CMakeFiles/*")
            return [Step(FIND, argv, self.request.folder, phase="compiling")]  # the project is as it was before the build
        if step == FIND:
            self.waiting = [self.list_step(program) for program in self.programs()]
            if not self.waiting:
                self.trouble(f"The build made no program with such tests in {self.folder}.")
        elif step.startswith("list "):
            self.choose(step, exit)
        else:
            self.program_ended(step, exit, reports, at)
        return self.after()

    def after(self) -> Sequence[Step]:
        if self.waiting:
            return [self.waiting.pop(0)]
        self.book.finished = True
        self.close()
        return ()

    def choose(self, step: str, exit: Exit) -> None:
        program = self.by_step[step]
        self.names.update(dict.fromkeys(program.names))
        if exit.signal is not None or not (program.names or exit.code == 0):
            self.trouble(f"{program.suite} could not list its tests:\n{self.last(step)}")
            return
        program.chosen = {name: None for name in program.names if self.is_chosen(program, name)}
        if program.chosen:
            self.book.expected = (self.book.expected or 0) + len(program.chosen)
            run = self.run_step(f"run {program.suite}", program)
            self.by_step[run.name] = program
            self.waiting.append(run)

    def is_chosen(self, program: Program, name: str) -> bool:
        if self.request.level is not None and not self.is_of_level(self.request.level, f"{program.suite} {program.names[name]} {name}"):
            return False
        if self.asked.name is None:
            return True
        return name == self.asked.name if self.asked.exact else self.asked.name.lower() in name.lower()

    def is_of_level(self, level: Level, text: str) -> bool:
        if LEVELS[level].search(text):
            return True
        return level == "unit" and not any(LEVELS[other].search(text) for other in ("integration", "e2e") if other in LEVELS)

    def program_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> None:
        program = self.by_step[step]
        self.reported(program, exit, reports, at)
        running = [key for key in self.book.running if key[0] == program.suite]
        missing = [name for name in program.chosen if (program.suite, name) not in self.book.tests and (program.suite, name) not in self.book.running]
        if running or exit.signal is not None or (missing and exit.code != 0):
            self.crashed(step, exit, at, running)
        if missing:
            near = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
            self.trouble(f"{len(missing)} tests of {program.suite} did not run, because its process ended before: {near}")
        elif exit.code and not self.book.crash and not self.has_failed(program):
            self.trouble(f"{program.suite} ended with status {exit.code}, though no test failed:\n{self.last(step)}")

    def has_failed(self, program: Program) -> bool:
        return any(case.suite == program.suite and case.status in (TestStatus.FAILED, TestStatus.LOST) for case in self.book.tests.values())

    def lose(self, program: Program, names: Sequence[str], exit: Exit, at: float) -> None:
        """Tests whose framework told of a signal as of a failure, before the process died of it."""
        for name in names:
            case = self.book.tests.pop((program.suite, name), None)
            if case is not None:
                self.places[(program.suite, name)] = (case.file, case.line)
                self.book.started(name, at - (case.duration_ms or 0), suite=program.suite)

    def selected(self, program: Program) -> list[TestCase]:
        return [case for case in self.book.tests.values() if case.suite == program.suite]

    def traces(self, failure: Failure) -> list[str]:
        return suggested_traces(failure.stack_trace, None, failure.file, self.words(failure.name))
