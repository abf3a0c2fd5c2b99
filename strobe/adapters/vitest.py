"""vitest 1 to 4: agent/reporters/vitest.mjs tells what happens, beside the default reporter."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter, version
from strobe.adapters.narrated import NarratedRun, Plan
from strobe.adapters.packages import surroundings
from strobe.adapters.scripts import Script, split_positional, without
from strobe.adapters.wanted import Wanted, js_escape, relative

_FLAGS = ("--watch", "-w", "--ui", "--coverage", "--open", "--run", "--inspect", "--inspect-brk", "--silent", "--hideSkippedTests", "--standalone")
_VALUED = ("--reporter", "--reporters", "--outputFile", "-t", "--testNamePattern")
_TAKE_A_VALUE = (
    "-c", "--config", "-r", "--root", "--dir", "--project", "--pool", "--environment", "--mode",
    "--exclude", "--maxWorkers", "--testTimeout", "--shard", "--workspace",
)  # fmt: skip
_COMMANDS = ("run", "watch", "dev", "related", "bench")


class VitestRun(NarratedRun):
    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["npx", "vitest", "run", *([local] if local else []), "-t", f"^{js_escape(' '.join(path))}$"]
        return self.plan.rerun.get("cd", "") + shlex.join(words)


class Vitest(JavaScriptAdapter):
    name = "vitest"
    module = "vitest"
    runner = ("vitest",)
    config = ("vitest.config", "vitest.workspace")
    example = (
        "Add sum.test.ts:\n  import { expect, test } from 'vitest'\n  test('adds', () => { expect(1 + 1).toBe(2) })\n"
        "and install it: npm install --save-dev vitest. It runs by: npx vitest run"
    )

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        given = list(script.args)
        if given and given[0] in _COMMANDS:
            given = given[1:]
        options, positional = split_positional(without(given, _FLAGS, _VALUED), _TAKE_A_VALUE)
        pattern = asked.pattern()
        chosen = [f"{request.folder}/{file}" for file in files] if files is not None else positional  # vitest takes parts of paths
        argv = [
            *self.node(project, script), self.program(project, request), "run", *chosen, *options,
            *(["-t", pattern] if pattern is not None else []),
            "--reporter=default", f"--reporter={reporter(request, 'vitest.mjs')}",
            *(["--includeTaskLocation"] if version(project, relative(project.root, request.folder), self.module) >= 2 else []),
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, dict(script.env)), events=True)

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return VitestRun(project, request, plan, self.hint(project))
