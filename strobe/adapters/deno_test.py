"""deno test (2.4 and later): agent/reporters/deno.ts tells of tests as they begin, deno's JUnit report is the last word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter
from strobe.adapters.junit import JUnitCase
from strobe.adapters.levels import test_files
from strobe.adapters.narrated import LINE_MAX
from strobe.adapters.packages import Package, parsed, surroundings, tool
from strobe.adapters.plan import Plan
from strobe.adapters.reported import ReportedRun
from strobe.adapters.scripts import Script, script_of
from strobe.adapters.v8 import message_of, plain
from strobe.adapters.wanted import SEPARATOR, Wanted, inside, js_escape, relative
from strobe.model.testing import Candidate, NoTests, TestCase

STDERR_LINES = 60
ERROR_LINES = 400
LOOKED_AT_MAX = 40
_PATTERNS = ("**/*_test.*", "**/*.test.*", "**/test.*", "**/__tests__/**/*.*")
_UNCAUGHT = re.compile(r"^(\S.*) \(uncaught error\)$")
_PLACE = re.compile(r"at (file://\S+?):\d+:\d+")


class DenoRun(ReportedRun):
    runs_others = True  # its filter is for whole tests, not for their steps

    def __init__(self, project: Project, request: Request, plan: Plan, hint: NoTests) -> None:
        super().__init__(project, request, plan, hint)
        self.stderr: list[str] = []
        self.uncaught: str | None = None  # the file of an error that is being printed
        self.told: list[str] = []

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        super().line(step, stream, text, at)
        text = plain(text[:LINE_MAX])
        if stream == "stderr" and len(self.stderr) < STDERR_LINES:
            self.stderr.append(text)
        if stream == "stdout":
            self.heard(text, at)

    def heard(self, text: str, at: float) -> None:
        """Files that could not be loaded are in no report."""
        match = _UNCAUGHT.match(text)
        if match is not None and self.uncaught is None:
            self.uncaught, self.told = match[1], []
        elif self.uncaught is not None and (text.startswith("This error was not caught from a test") or not text):
            said = "\n".join(self.told)
            if said:
                message = re.sub(r"^error: (?:\(in promise\) )?", "", message_of(said).split("\n")[0])
                self.on_error({"kind": "file", "file": self.uncaught, "message": message, "stack": said}, at)
            self.uncaught = None
        elif self.uncaught is not None and len(self.told) < ERROR_LINES:
            self.told.append(text)

    def path_of(self, case: JUnitCase) -> Sequence[str]:
        return case.name.split(SEPARATOR)

    def reports_read(self, reports: Mapping[str, str], at: float) -> None:
        super().reports_read(reports, at)
        for key, case in list(self.book.tests.items()):
            if case.failures and re.match(r"\d+ test steps? failed", case.failures[0].message) and self.has_failed_step(case):
                self.book.tests.pop(key)  # its steps say it

    def has_failed_step(self, parent: TestCase) -> bool:
        return any(one.suite == parent.suite and one.failures and one.name.startswith(parent.name + SEPARATOR) for one in self.book.tests.values())

    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["deno", "test", *self.plan.options, "--filter", whole_names(path), *([f"./{local}"] if local else [])]
        return self.shell(*words)

    def explain(self, exit: Exit) -> None:
        """Modules that can't be read or checked end deno before any test."""
        said = "\n".join(self.stderr)
        if exit.code and not self.book.tests and not self.book.errors and not self.book.crash:
            if "No test modules found" in said and not self.plan.wanted.file:
                self.book.no_tests = self.hint
                return
            if re.search(r"^(?:error: |TS\d+ \[ERROR\])", said, re.M) and "error: Test failed" not in said:
                place = _PLACE.search(said)
                text = re.sub(r"\n+Stack backtrace:[\s\S]*|^Check .*\n", "", said, flags=re.M)
                self.on_error({"kind": "file", "file": place[1] if place else None, "message": text, "stack": said}, 0)
                return
        super().explain(exit)


class DenoTest(JavaScriptAdapter):
    name = "deno test"
    module = ""
    runner = ("deno", "test")
    config = ()
    takes = ("-c", "--config", "--import-map", "--ignore", "--preload", "--require", "--env-file", "--cert", "--seed", "--ext", "--location", "--lock")
    valued = ("--reporter", "--junit-path", "--filter")
    flags = ("--watch", "--coverage", "--clean", "--doc", "--hide-stacktraces", "--inspect", "--inspect-brk", "--inspect-wait", "--no-run", "--permit-no-files")
    example = (
        "Add sum_test.ts:\n  import { assertEquals } from 'jsr:@std/assert'\n  Deno.test('adds', () => assertEquals(1 + 1, 2))\n"
        "It runs by: deno test"
    )  # fmt: skip

    def detect(self, project: Project) -> Sequence[Candidate]:
        configured = [path for name in ("deno.json", "deno.jsonc") for path in project.files(f"**/{name}", 100)]
        folders = sorted({path.rpartition("/")[0] or "." for path in configured} | {"."}, key=lambda folder: (folder.count("/"), folder))
        return [found for folder in folders if (found := self.found(project, folder)) is not None]

    def found(self, project: Project, folder: str) -> Candidate | None:
        config = next((name for name in ("deno.json", "deno.jsonc", "deno.lock") if project.exists(inside(folder, name))), None)
        script = script_of(tasks(project, folder), self.runner)
        testing = next((file for file in self.test_files(project, folder)[:LOOKED_AT_MAX] if self.uses_deno(project, folder, file)), None)
        reasons = [
            *([f"{inside(folder, config)} has the task {script.name!r} that runs deno test"] if config and script else []),
            *([f"{inside(folder, config)} is there"] if config and not script else []),
            *([f"{inside(folder, testing)} calls Deno.test"] if testing else []),
        ]
        if not reasons or not (testing or script or (config and self.test_files(project, folder))):
            return None
        confidence = 97 if script and testing else 92 if script else 88 if config and testing else 75 if testing else 55
        return Candidate(framework=self.name, confidence=confidence, reason="; ".join(reasons), folder=folder)

    def uses_deno(self, project: Project, folder: str, file: str) -> bool:
        text = project.read(inside(folder, file), 1 << 15) or ""
        return re.search(r"\bDeno\.test\b|['\"](?:jsr:)?@std/testing/bdd", text) is not None

    def test_files(self, project: Project, folder: str) -> list[str]:
        return test_files(project, folder, _PATTERNS)

    def package(self, project: Project, folder: str) -> Package:
        """Tasks stand in for scripts."""
        return tasks(project, folder)

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        report = f"{request.work.rstrip('/')}/deno.xml"
        chosen = [f"./{file}" for file in files] if files is not None else positional
        around = request.work.rstrip("/").rpartition("/")[0] or "/"
        argv = [
            tool(project, "deno"), "test", *permitted(options, around), f"--preload={reporter(request, 'deno.ts')}", f"--junit-path={report}",
            *self.filter(project, request, asked), *chosen,
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, dict(script.env)), events=True, reports=(report,))

    def filter(self, project: Project, request: Request, asked: Wanted) -> list[str]:
        """It sees the names of whole tests. A text that none of them has may be in a step's, and then all are to run."""
        if asked.name is None:
            return []
        if asked.exact:
            return [f"--filter={whole_names(asked.name.split(SEPARATOR))}"]
        first = asked.name.split(SEPARATOR)[0]
        folder = relative(project.root, request.folder)
        texts = (project.read(inside(folder, file), 1 << 17) or "" for file in self.test_files(project, folder)[:LOOKED_AT_MAX])
        whole = any(re.search(r"Deno\.test(?:\.\w+)?\([^'\"`]{0,80}(['\"`])(?:(?!\1).)*" + re.escape(first), text) for text in texts)
        return [f"--filter={first}"] if whole else []

    def run(self, project: Project, request: Request, plan: Plan) -> DenoRun:
        return DenoRun(project, request, plan, self.hint(project))

    def no_tests(self, project: Project) -> NoTests | None:
        if not any(project.exists(name) for name in ("deno.json", "deno.jsonc", "deno.lock")):
            return None
        return NoTests(project="TypeScript, run by deno", hint=f"No deno tests yet. {self.example}")

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "node"


def whole_names(path: Sequence[str]) -> str:
    """A filter for a test or a step by its whole name: the test is what bears the first parts of it."""
    names = [SEPARATOR.join(path[:count]) for count in range(len(path), 0, -1)]
    return f"/^(?:{'|'.join(js_escape(name) for name in names)})$/" if len(names) > 1 else f"/^{js_escape(names[0])}$/"


def tasks(project: Project, folder: str) -> Package:
    """deno.json's tasks, as a package's scripts."""
    for name in ("deno.json", "deno.jsonc"):
        manifest = parsed(project.read(inside(folder, name)) or "")
        if isinstance(manifest, dict) and isinstance(manifest.get("tasks"), dict):
            told = {task: text.get("command") if isinstance(text, dict) else text for task, text in manifest["tasks"].items()}
            return Package(folder, {"scripts": told})
    return Package(folder, {})


def permitted(options: Sequence[str], folder: str) -> list[str]:
    """The options, with leave for the preloaded part to open the file of its events, in the run's folder around `work`: nothing else is allowed by it."""
    if any(one in ("-A", "--allow-all") for one in options):
        return list(options)
    kept, found = [], {"write": False, "env": False}
    for option in options:
        for kind, short, value in (("write", "-W", folder), ("env", "-E", "STROBE_TEST_EVENTS")):
            if option in (f"--allow-{kind}", short):
                found[kind] = True
            elif option.startswith((f"--allow-{kind}=", f"{short}=")):
                found[kind] = True
                option = f"{option},{value}"
        kept.append(option)
    return [*kept, *([] if found["write"] else [f"--allow-write={folder}"]), *([] if found["env"] else ["--allow-env=STROBE_TEST_EVENTS"])]

