"""vitest 1 to 4: agent/reporters/vitest.mjs tells what happens, and adds the reporters that the project's configuration names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.javascript import BESIDE, TESTS, JavaScriptAdapter, reporter, version
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import surroundings
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script
from strobe.adapters.wanted import Wanted, js_escape, relative

_COMMANDS = ("run", "watch", "dev", "related", "bench")


class VitestRun(NarratedRun):
    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["npx", "vitest", "run", *self.plan.options, *([local] if local else []), "-t", f"^{js_escape(' '.join(path))}$"]
        return self.shell(*words)


class Vitest(JavaScriptAdapter):
    name = "vitest"
    module = "vitest"
    runner = ("vitest",)
    config = ("vitest.config", "vitest.workspace")
    takes = (
        "-c", "--config", "-r", "--root", "--dir", "--project", "--pool", "--environment", "--mode",
        "--exclude", "--maxWorkers", "--testTimeout", "--shard", "--workspace", "--reporter", "--reporters", "--outputFile",
    )  # fmt: skip
    valued = ("-t", "--testNamePattern")
    flags = ("--watch", "-w", "--ui", "--coverage", "--open", "--run", "--inspect", "--inspect-brk", "--silent", "--hideSkippedTests", "--standalone")
    example = (
        "Add sum.test.ts:\n  import { expect, test } from 'vitest'\n  test('adds', () => { expect(1 + 1).toBe(2) })\n"
        "and install it: npm install --save-dev vitest. It runs by: npx vitest run"
    )

    def arguments(self, script: Script) -> tuple[list[str], list[str]]:
        return super().arguments(replace(script, args=script.args[1:]) if script.args[:1] and script.args[0] in _COMMANDS else script)

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        pattern = asked.pattern()
        chosen = [f"{request.folder}/{file}" for file in files] if files is not None else positional  # vitest takes parts of paths
        own = any(re.match(r"--reporters?(?:=|$)", one) for one in options)
        argv = [
            *self.node(project, script), self.program(project, request), "run", *chosen, *options,
            *(["-t", pattern] if pattern is not None else []),
            *([] if own else ["--reporter=default"]), f"--reporter={reporter(request, 'vitest.mjs')}",
            *(["--includeTaskLocation"] if version(project, relative(project.root, request.folder), self.module) >= (2, 0) else []),
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, {**script.env, BESIDE: None if own else "1"}), events=True)

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return VitestRun(project, request, plan, self.hint(project))
