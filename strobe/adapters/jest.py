"""jest 26 to 30: agent/reporters/jest.cjs tells what happens, and adds the reporters that the project's configuration names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from strobe.adapters.adapter import Exit, Project, Request, Step
from strobe.adapters.javascript import BESIDE, TESTS, JavaScriptAdapter, reporter
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import Package, surroundings
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script
from strobe.adapters.wanted import Wanted, inside, js_escape, relative
from strobe.model.testing import Candidate

_TERMINATED = re.compile(r"worker process \(pid=(\d+)\) was terminated by another process: signal=(\w+)")


class JestRun(NarratedRun):
    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["npx", "jest", *self.plan.options, *(["--runTestsByPath", local] if local else []), "-t", f"^{js_escape(' '.join(path))}$"]
        return self.shell(*words)

    def on_error(self, event: Mapping[str, Any], at: float) -> None:
        """A worker that died is told as an error of its file."""
        died = _TERMINATED.search(str(event.get("message", "")))
        if died is not None:
            file = self.place(event.get("file"))
            during = [key for key, test in self.by_key().items() if key in self.book.running and test.file == file]
            self.crash(None, died[2], at, during)
            return
        super().on_error(event, at)


    def explain(self, exit: Exit) -> None:
        """Without a file to run jest ends before its reporters begin."""
        if exit.code and not self.began and any(line.startswith("No tests found, exiting with code") for line in self.lines.get(TESTS, ())):
            self.began = True
        super().explain(exit)


class Jest(JavaScriptAdapter):
    name = "jest"
    module = "jest"
    runner = ("jest",)
    config = ("jest.config",)
    takes = (
        "-c", "--config", "--rootDir", "--roots", "--cacheDirectory", "-w", "--maxWorkers", "--env", "--testEnvironment", "--selectProjects", "--testTimeout",
        "--shard", "--preset", "--projects", "--reporters",
    )  # fmt: skip
    valued = ("--outputFile", "-t", "--testNamePattern", "--coverageDirectory", "--coverageReporters")
    flags = (
        "--watch", "--watchAll", "--coverage", "--collectCoverage", "--silent", "--verbose", "--json", "--runTestsByPath", "-o", "--onlyChanged", "--debug",
    )  # fmt: skip
    example = (
        "Add sum.test.js:\n  test('adds', () => { expect(1 + 1).toBe(2) })\n"
        "and install it: npm install --save-dev jest. It runs by: npx jest"
    )  # fmt: skip

    def candidate(self, project: Project, package: Package) -> Candidate | None:
        """React's and Angular's wrappers bring a jest of their own settings: theirs is run by `command`."""
        found = super().candidate(project, package)
        if found is None and package.depends("react-scripts") and package.scripts.get("test", "").startswith("react-scripts test"):
            where = inside(package.folder, "package.json")
            return Candidate(framework=self.name, confidence=60, reason=f"{where} runs react-scripts test, which is jest", folder=package.folder)
        return found

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        pattern = asked.pattern()
        chosen = ["--runTestsByPath", *files] if files is not None else positional
        own = any(one.split("=")[0] == "--reporters" for one in options)
        argv = [
            *self.node(project, script), self.program(project, request), *options, *(["-t", pattern] if pattern is not None else []),
            *([] if own else ["--reporters=default"]), f"--reporters={reporter(request, 'jest.cjs')}", "--testLocationInResults", "--passWithNoTests=false",
            "--watchAll=false", "--colors=false", *chosen,
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, {"NODE_ENV": "test", **script.env, BESIDE: None if own else "1"}), events=True)

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return JestRun(project, request, plan, self.hint(project))
