"""mocha 8 to 12: agent/reporters/mocha.cjs is loaded by --require and listens to the runner; the project's reporter stays."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strobe.adapters.adapter import Exit, Project, Request, Step
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter
from strobe.adapters.levels import TEST_NAMES, test_files
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import surroundings
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script
from strobe.adapters.v8 import is_foreign, message_of
from strobe.adapters.wanted import Wanted, js_escape, relative

_FILE = re.compile(r"(?:file://)?(/[^\s:()]+\.[cm]?[jt]sx?):\d+")


class MochaRun(NarratedRun):
    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["npx", "mocha", *self.plan.options, *([local] if local else []), "-g", f"^{js_escape(' '.join(path))}$"]
        return self.shell(*words)

    def explain(self, exit: Exit) -> None:
        """mocha has no event for files that can't be loaded: it prints the error and ends."""
        if exit.code and not self.began:
            said = self.last()
            if re.search(r"^Error: No test files found", said, re.M):
                if self.plan.wanted.text:
                    self.began = True
                    super().explain(exit)
                else:
                    self.book.no_tests = self.hint
                return
            named = next((one for one in _FILE.findall(said) if not is_foreign(self.place(one)) and not (self.place(one) or "/").startswith("/")), None)
            self.on_error({"kind": "file", "file": named, "message": f"mocha could not load it (status {exit.code}):\n{message_of(said)}", "stack": said}, 0)
            return
        super().explain(exit)


class Mocha(JavaScriptAdapter):
    name = "mocha"
    module = "mocha"
    runner = ("mocha",)
    config = (".mocharc",)
    takes = (
        "-r", "--require", "-R", "--reporter", "-O", "--reporter-option", "--reporter-options", "-t", "--timeout", "-s", "--slow", "--extension", "--config",
        "--package", "-u", "--ui", "--file", "--ignore", "--exclude", "-j", "--jobs", "--retries", "--import", "--loader", "-n", "--node-option",
    )  # fmt: skip
    valued = ("-f", "--fgrep", "-g", "--grep")
    flags = ("-w", "--watch", "--inspect", "--inspect-brk", "--dry-run", "-C", "--color", "-c", "-i", "--invert")
    example = (
        "Add test/sum.js:\n  const assert = require('node:assert')\n  describe('sum', () => { it('adds', () => { assert.equal(1 + 1, 2) }) })\n"
        "and install it: npm install --save-dev mocha. It runs by: npx mocha"
    )

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        pattern = asked.pattern()
        argv = [
            *self.node(project, script), self.program(project, request), *options, "--require", reporter(request, "mocha.cjs"),
            *(["--grep", pattern] if pattern is not None else []), "--no-color", *(files if files is not None else positional),
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, dict(script.env)), events=True)

    def test_files(self, project: Project, folder: str) -> list[str]:
        return test_files(project, folder, (*TEST_NAMES, "test/**/*.*"))

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return MochaRun(project, request, plan, self.hint(project))
