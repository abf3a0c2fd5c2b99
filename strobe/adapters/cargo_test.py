"""cargo test: cargo builds, then each test program is run by itself, so that it tells of its tests as they begin and is what a trace sees.

RUSTC_BOOTSTRAP=1 makes the program of a stable compiler speak JSON (libtest reads it when it runs); cargo itself never gets it, or it would build all again.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.cargo_project import Asked, Build, Program, candidates, has_doc_tests, has_own_harness, read_arguments
from strobe.adapters.libtest import LibtestRun, message_in
from strobe.adapters.native_frames import place
from strobe.adapters.python_project import toml
from strobe.adapters.stepped import MESSAGE_MAX, refuse, surroundings, tool
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, Failure, NoTests, TestCase, TestStatus

BUILD: Final = "build"
DOC: Final = "doc tests"
DOC_LINES: Final = 5000  # cargo prints what failed at its end
EXAMPLE: Final = "Add to src/lib.rs:\n  #[cfg(test)]\n  mod tests {\n      #[test]\n      fn adds() { assert_eq!(1 + 1, 2); }\n  }\nIt runs by: cargo test"
_DOC_RESULT: Final = re.compile(r"^test (?P<name>.+?)(?: - (?:compile|compile fail|should panic))? \.\.\. (?P<status>ok|FAILED|ignored)(?:, (?P<reason>.*))?$")
_DOC_PLACE: Final = re.compile(r"^(?P<file>\S+) - .*\(line (?P<line>\d+)\)")


@dataclass(slots=True)
class Listed:
    """A program and its tests; `reached`: how many began."""

    program: Program
    names: dict[str, None] = field(default_factory=dict)
    chosen: dict[str, None] = field(default_factory=dict)


class CargoRun(LibtestRun):
    opening = '{ "type": '

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests, cargo: str, arguments: Asked) -> None:
        super().__init__(project, request, asked, hint)
        self.cargo = cargo
        self.arguments = arguments
        self.built = Build()
        self.by_step: dict[str, Listed] = {}
        self.waiting: list[Step] = []
        self.doc_output: deque[str] = deque(maxlen=DOC_LINES)

    def begin(self) -> Sequence[Step]:
        argv = (self.cargo, *self.arguments.toolchain, "test", "--no-run", "--message-format=json", *self.selection())
        return self.keep([Step(BUILD, argv, self.request.folder, surroundings(self.request), phase="compiling")])

    def selection(self) -> list[str]:
        """A workspace is tested whole, where its owner did not say what of it is meant."""
        given = list(self.arguments.cargo)
        manifest = toml(self.project, inside(self.folder, "Cargo.toml"))
        workspace = manifest.get("workspace")
        if workspace is not None and "default-members" not in workspace and not {"-p", "--package", "--workspace", "--all"} & set(given):
            given.append("--workspace")
        return given

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if step == BUILD:
            built = message_in(text, '{"reason":') if stream == "stdout" else None
            if built is not None:
                self.built.told(built)
        elif step == DOC:
            if stream == "stdout":
                self.doc_line(text, at)
        elif stream == "stdout":
            self.program_line(step, text, at)

    def program_line(self, step: str, text: str, at: float) -> None:
        listed = self.by_step[step]
        if step.startswith("list "):
            name, parted, kind = text.rpartition(": ")
            if parted and kind == "test":
                listed.names[name] = None
            return
        self.tell(listed, self.messages(step, text), at)

    def tell(self, listed: Listed, messages: Sequence[Mapping[str, Any]], at: float) -> None:
        file = relative(self.project.root, listed.program.source)
        for message in messages:
            self.told(listed.program.suite, message, listed.chosen, at, file)

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        if step == BUILD:
            return self.build_ended(exit)
        if step == DOC:
            self.doc_ended(exit)
        elif step.startswith("list "):
            return self.list_ended(step, exit)
        else:
            self.program_ended(step, exit, at)
        return self.after()

    def after(self) -> Sequence[Step]:
        if self.waiting:
            return [self.waiting.pop(0)]
        self.book.finished = True
        self.close()
        return ()

    # The build

    def build_ended(self, exit: Exit) -> Sequence[Step]:
        if exit.code != 0:
            self.compile_failed("\n\n".join(self.built.errors) or self.last(BUILD) or "cargo could not build the tests")
            self.closed = True
            return ()
        chosen = [one for one in self.built.programs if one.is_of(self.request.level)]
        if self.request.level is not None and not chosen:
            there = ", ".join(one.suite for one in self.built.programs) or "none"
            self.trouble(f"No {self.request.level} tests. Test programs are: {there}.")
        steps = []
        for program in chosen:
            if has_own_harness(self.project, inside(relative(self.project.root, program.folder), "Cargo.toml"), program.target):
                self.waiting.append(self.plain_step(program))
            else:
                steps.append(self.list_step(program))
        self.waiting = [*steps, *self.waiting]
        if self.wants_doc_tests():
            self.waiting.append(self.doc_step())
        return self.keep(self.after())

    def environment(self, program: Program, more: Mapping[str, str | None] | None = None) -> dict[str, str | None]:
        """As cargo gives it to a test program."""
        env: dict[str, str | None] = {
            "CARGO": self.cargo, "CARGO_MANIFEST_DIR": program.folder, "CARGO_MANIFEST_PATH": f"{program.folder}/Cargo.toml",
            "CARGO_PKG_NAME": program.package, "CARGO_PKG_VERSION": program.version, "RUST_BACKTRACE": "1", **self.built.env.get(program.package_id, {}),
        }  # fmt: skip
        if self.built.library_folders:
            given = self.request.env.get("LD_LIBRARY_PATH")
            env["LD_LIBRARY_PATH"] = ":".join([*self.built.library_folders, program.path.rpartition("/")[0], *([given] if given else [])])
            return {**surroundings(self.request, {**env, **(more or {})}), "LD_LIBRARY_PATH": env["LD_LIBRARY_PATH"]}
        return surroundings(self.request, {**env, **(more or {})})

    def list_step(self, program: Program) -> Step:
        step = Step(f"list {program.suite}", (program.path, "--list", "--format", "terse"), program.folder, self.environment(program), phase="compiling")
        self.by_step[step.name] = Listed(program)
        return step

    def list_ended(self, step: str, exit: Exit) -> Sequence[Step]:
        listed = self.by_step[step]
        if exit.code != 0:
            self.trouble(f"{listed.program.suite} could not list its tests:\n{self.last(step)}")
            return self.keep(self.after())
        self.names.update(listed.names)
        listed.chosen = {name: None for name in listed.names if self.is_chosen(name)}
        if listed.chosen:
            self.book.expected = (self.book.expected or 0) + len(listed.chosen)
            self.waiting.append(self.program_step(listed))
        if not any(one.name.startswith("list ") for one in self.waiting):
            self.waiting.sort(key=lambda one: one.name == DOC)
        return self.keep(self.after())

    def is_chosen(self, name: str) -> bool:
        given = self.arguments.filters
        exact = "--exact" in self.arguments.program
        if given and not any(one == name if exact else one in name for one in given):
            return False
        return self.asked.name is None or (name == self.asked.name if self.asked.exact else self.asked.name in name)

    def program_step(self, listed: Listed) -> Step:
        program = listed.program
        chosen = []
        if self.asked.name is not None:
            chosen = ["--exact", *list(listed.chosen)[:1]] if self.asked.exact else [self.asked.name]
        elif self.arguments.filters:
            chosen = list(self.arguments.filters)
        argv = (program.path, *chosen, *self.arguments.program, "-Zunstable-options", "--format", "json", "--report-time")
        step = Step(f"run {program.suite}", argv, program.folder, self.environment(program, {"RUSTC_BOOTSTRAP": "1"}), is_program=True)
        self.by_step[step.name] = listed
        return step

    def program_ended(self, step: str, exit: Exit, at: float) -> None:
        listed = self.by_step[step]
        suite = listed.program.suite
        self.tell(listed, self.rest(step), at)
        if listed.chosen:
            missing = [name for name in listed.chosen if (suite, name) not in self.book.tests and (suite, name) not in self.book.running]
            running = [key for key in self.book.running if key[0] == suite]
            if running or exit.signal or missing:
                self.crashed(step, exit, at, running)
            if missing:
                near = ", ".join(missing[:5])
                self.trouble(f"{len(missing)} tests of {suite} did not run, because its process ended before: {near}{', …' if len(missing) > 5 else ''}")
            elif exit.code and not self.book.crash and not self.has_failed(suite):
                self.trouble(f"{suite} ended with status {exit.code}, though no test failed:\n{self.last(step)}")
        else:
            self.whole_ended(step, exit, at)

    def has_failed(self, suite: str) -> bool:
        return any(case.suite == suite and case.status in (TestStatus.FAILED, TestStatus.LOST) for case in self.book.tests.values())

    # A program that is no libtest's: its exit is all that it says

    def plain_step(self, program: Program) -> Step:
        step = Step(f"run {program.suite}", (program.path, *self.arguments.program), program.folder, self.environment(program), is_program=True)
        self.by_step[step.name] = Listed(program)
        self.names[program.target] = None
        return step

    def whole_ended(self, step: str, exit: Exit, at: float) -> None:
        program = self.by_step[step].program
        if not self.asked.matches(program.target):
            return
        file = relative(self.project.root, program.source)
        status = TestStatus.PASSED if exit.code == 0 else TestStatus.LOST if exit.signal else TestStatus.FAILED
        failure = Failure(name=program.target, file=file, message=self.last(step) or f"ended with status {exit.code}")
        failures = [failure] if status is not TestStatus.PASSED else []
        self.finished_test(TestCase(name=program.target, suite=program.suite, status=status, file=file, failures=failures))
        if exit.signal:
            self.crashed(step, exit, at, [])

    # Documentation's tests

    def wants_doc_tests(self) -> bool:
        plain = not self.arguments.cargo or set(self.arguments.cargo) <= {"--workspace", "--release", "--all-features"}
        asked = self.asked.name is None or "(line " in self.asked.name
        is_library = any(one.kind == "lib" for one in self.built.programs) and not self.arguments.filters
        return self.request.level in (None, "unit") and plain and asked and is_library and has_doc_tests(self.project, self.folder)

    def doc_step(self) -> Step:
        names = [self.asked.name] if self.asked.name is not None else []
        argv = (self.cargo, *self.arguments.toolchain, "test", "--doc", *self.selection(), "--", *names)
        return Step(DOC, argv, self.request.folder, surroundings(self.request))

    def doc_line(self, text: str, at: float) -> None:
        self.doc_output.append(text[:MESSAGE_MAX])
        match = _DOC_RESULT.match(text)
        if match is None or match["status"] == "FAILED":
            return
        status = TestStatus.PASSED if match["status"] == "ok" else TestStatus.SKIPPED
        self.finished_test(self.doc_case(match["name"], status, match["reason"]))

    def doc_case(self, name: str, status: TestStatus, reason: str | None = None) -> TestCase:
        found = _DOC_PLACE.match(name)
        file = place(self.project, self.folder, found["file"]) if found else None
        return TestCase(name=name, suite=DOC, status=status, file=file, line=int(found["line"]) if found else None, reason=reason)

    def doc_ended(self, exit: Exit) -> None:
        text = "\n".join(self.doc_output)
        for match in re.finditer(r"^---- (?P<name>.+?) stdout ----\n(?P<said>.*?)(?=^---- .+? stdout ----\n|^failures:\n|\Z)", text, re.M | re.S):
            name = re.sub(r" - (?:compile|compile fail|should panic)$", "", match["name"])
            case = self.doc_case(name, TestStatus.FAILED)
            failure = self.failure(DOC, name, match["said"], None, case.file).model_copy(update={"file": case.file, "line": case.line})
            self.finished_test(case.model_copy(update={"failures": [failure], "output": match["said"]}))
        if exit.code and not any(case.suite == DOC and case.status is TestStatus.FAILED for case in self.book.tests.values()):
            self.trouble(f"the documentation's tests could not be run:\n{self.last(DOC)}")

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        if suite == DOC:
            return self.cd() + shlex.join(["cargo", *self.arguments.toolchain, "test", "--doc", "--", name])
        program = next((one.program for one in self.by_step.values() if one.program.suite == suite), None)
        select = program.select() if program is not None else []
        return self.cd() + shlex.join(["cargo", *self.arguments.toolchain, "test", *self.arguments.cargo, *select, "--", "--exact", name])


class CargoTest:
    name = "cargo test"

    def detect(self, project: Project) -> Sequence[Candidate]:
        return candidates(project, self.name, 92)

    def start(self, project: Project, request: Request) -> CargoRun:
        cargo = tool(project, "cargo", "Install Rust.")
        arguments = Asked()
        if request.command is not None:
            words = command_words(request.command)
            at = words.index("test") if "test" in words else -1
            if at < 1 or words[0].rsplit("/", 1)[-1] != "cargo" or any(not word.startswith("+") for word in words[1:at]):
                what = f"`command` is not a line that is plainly `cargo test …`: {request.command!r}."
                raise refuse(what, 'Set `framework` to "generic" to run any command.', request.command)
            arguments = replace(read_arguments(words[at + 1 :]), toolchain=tuple(words[1:at]))
        return CargoRun(project, request, Wanted(name=request.test, exact=request.exact), self.hint(), cargo, arguments)

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"

    def hint(self) -> NoTests:
        return NoTests(project="Rust, built by cargo", hint=f"No tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if project.exists("Cargo.toml") or project.files("**/Cargo.toml", 1) else None


def command_words(line: str) -> list[str]:
    """Errors: VALIDATION_ERROR for a line that only a shell can read."""
    try:
        words = shlex.split(line.replace("\\\n", " "))
    except ValueError as broken:
        raise refuse(f"`command` is no shell line: {broken}.", "Close its quotes.", line) from broken
    if not words or any(word in ("&&", "||", "|", ";", "&") or word[0] in "<>" for word in words):
        raise refuse("`command` is more than one program's line.", 'Set `framework` to "generic" to run any command.', line)
    return words
