"""bun test (1.1 and later): agent/reporters/bun.ts tells of tests as they begin, bun's JUnit report is the last word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter
from strobe.adapters.levels import test_files
from strobe.adapters.narrated import LINE_MAX, NarratedRun
from strobe.adapters.packages import Package, packages, surroundings, tool
from strobe.adapters.plan import Plan
from strobe.adapters.reported import ReportedRun
from strobe.adapters.scripts import Script, script_of
from strobe.adapters.v8 import message_of, plain
from strobe.adapters.wanted import Wanted, inside, js_escape, relative
from strobe.model.testing import Candidate, NoTests

LOOKED_AT_MAX = 40
ERROR_LINES = 400
_PATTERNS = ("**/*.test.*", "**/*_test.*", "**/*.spec.*", "**/*_spec.*")
_ENDED = re.compile(r"^Ran \d+ tests? across \d+ files?\.|^error: regex .* matched 0 tests\.|^Test filter .* had no matches$|^No tests found!")
_UNHANDLED = re.compile(r"^# Unhandled error between tests$")


class BunRun(ReportedRun):
    """bun exits in the middle of a file's tests without a word when a test ends the process: `process.exit` is told as the crash of the runner."""

    def __init__(self, project: Project, request: Request, plan: Plan, hint: NoTests) -> None:
        super().__init__(project, request, plan, hint)
        self.between: list[str] | None = None  # an error outside of tests, being printed
        self.file: str | None = None
        self.ran_whole = False

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        super().line(step, stream, text, at)
        if stream != "stderr" or step != TESTS:
            return
        text = plain(text[:LINE_MAX])
        if self.between is not None:
            if re.fullmatch(r"-{20,}", text):
                if any(line.strip() for line in self.between):
                    self.unhandled("\n".join(self.between), at)
                    self.between = None
            elif len(self.between) < ERROR_LINES:
                self.between.append(text)
        elif _UNHANDLED.match(text):
            self.between = []
        elif _ENDED.match(text):
            self.ran_whole = True
        elif re.fullmatch(r"[^\s:()|]+\.[cm]?[jt]sx?:", text):
            self.file = text[:-1]

    def unhandled(self, text: str, at: float) -> None:
        message = re.sub(r"^\s*\d+ \|.*$|^\s*\^\s*$", "", text, flags=re.M)
        self.on_error({"kind": "file", "file": self.file, "message": message_of(message), "stack": text}, at)

    def reports_read(self, reports: Mapping[str, str], at: float) -> None:
        """bun writes no report where no test was found; its last line says that it came to its end."""
        super().reports_read(reports, at)
        if not reports and self.ran_whole:
            self.book.finished = True

    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["bun", "test", *self.plan.options, *([f"./{local}"] if local else []), "-t", f"^{js_escape(' '.join(path))}$"]
        return self.shell(*words)

    def explain(self, exit: Exit) -> None:
        said = self.last()
        nothing = re.search(r"^No tests found!|had no matches$", said, re.M) is not None
        if exit.code and nothing and not self.book.tests and not self.book.errors and not self.plan.wanted.text:
            self.book.no_tests = self.hint
            return
        super().explain(exit)


class BunTest(JavaScriptAdapter):
    name = "bun test"
    module = ""
    runner = ("bun", "test")
    config = ()
    takes = ("--preload", "-r", "--timeout", "--rerun-each", "--seed", "--bail", "--max-concurrency", "-c", "--config", "--cwd", "--env-file", "-d")
    valued = ("--reporter", "--reporter-outfile", "-t", "--test-name-pattern", "--coverage-reporter", "--coverage-dir")
    flags = ("--watch", "--coverage", "--inspect", "--inspect-brk", "--inspect-wait", "--hot", "--only-failures", "--dots", "--update-snapshots", "-u")
    example = (
        "Add sum.test.ts:\n  import { expect, test } from 'bun:test'\n  test('adds', () => { expect(1 + 1).toBe(2) })\n"
        "It runs by: bun test"
    )  # fmt: skip

    def detect(self, project: Project) -> Sequence[Candidate]:
        there = packages(project) or [Package(".", {})]
        return [one for package in there if (one := self.candidate(project, package)) is not None]

    def candidate(self, project: Project, package: Package) -> Candidate | None:
        script = script_of(package, self.runner)
        reasons = [f"{inside(package.folder, 'package.json')} has the script {script.name!r} that runs bun test"] if script is not None else []
        importing = next((file for file in self.test_files(project, package.folder)[:LOOKED_AT_MAX] if self.uses_bun(project, package.folder, file)), None)
        if importing is not None:
            reasons.append(f"{inside(package.folder, importing)} imports bun:test")
        lock = next((name for name in ("bun.lock", "bun.lockb", "bunfig.toml") if project.exists(inside(package.folder, name))), None)
        if lock is not None and (reasons or (self.test_files(project, package.folder) and not package.depends("vitest", "jest", "mocha"))):
            reasons.append(f"{inside(package.folder, lock)} is there")
        if not reasons:
            return None
        confidence = 97 if script is not None else 90 if importing is not None else 50
        return Candidate(framework=self.name, confidence=confidence, reason="; ".join(reasons), folder=package.folder)

    def uses_bun(self, project: Project, folder: str, file: str) -> bool:
        return re.search(r"['\"]bun:test['\"]", project.read(inside(folder, file), 1 << 14) or "") is not None

    def test_files(self, project: Project, folder: str) -> list[str]:
        return test_files(project, folder, _PATTERNS)

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        report = f"{request.work.rstrip('/')}/bun.xml"
        pattern = asked.pattern()
        chosen = [f"./{file}" for file in files] if files is not None else positional  # without ./ they are parts of paths
        argv = [
            tool(project, "bun"), "test", *options, f"--preload={reporter(request, 'bun.ts')}", "--reporter=junit", f"--reporter-outfile={report}",
            *(["-t", pattern] if pattern is not None else []), *chosen,
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, dict(script.env)), events=True, reports=(report,))

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return BunRun(project, request, plan, self.hint(project))
