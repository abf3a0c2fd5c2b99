"""@playwright/test: agent/reporters/playwright.mjs tells what happens, beside the project's own reporters; before 1.40 instead of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter, version
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import Package, entry, surroundings
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script
from strobe.adapters.wanted import Wanted, js_escape, relative

ADDS_REPORTER = (1, 40)  # from then on at the latest it reads PW_TEST_REPORTER
_DIED = re.compile(r"worker process exited unexpectedly \(code=(\w+), signal=(\w+)\)")


class PlaywrightRun(NarratedRun):
    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["npx", "playwright", "test", *self.plan.options, *([_path_pattern(local)] if local else []), "-g", f"{js_escape(' '.join(path))}$"]
        return self.shell(*words)

    def on_end(self, event: Mapping[str, Any], at: float) -> None:
        died = next((match for one in event.get("failures") or () if (match := _DIED.search(str(one.get("message", ""))))), None)
        if died is None:
            super().on_end(event, at)
            return
        suite, name = key = self.remember(event).key
        self.book.started(name, at, suite=suite)
        code = int(died[1]) if died[1].isdigit() else None
        self.crash(code, died[2] if died[2] != "null" else None, at, [key])

    def on_error(self, event: Mapping[str, Any], at: float) -> None:
        if str(event.get("message", "")).startswith("Error: No tests found"):
            return  # no error of a file: nothing matched, or there are none
        super().on_error(event, at)


class Playwright(JavaScriptAdapter):
    name = "playwright"
    module = "@playwright/test"
    runner = ("playwright", "test")
    config = ("playwright.config",)
    takes = (
        "-c", "--config", "--project", "-j", "--workers", "--timeout", "--retries", "--shard", "--output", "--trace", "--repeat-each",
        "--global-timeout", "--tsconfig", "--reporter",
    )  # fmt: skip
    valued = ("-g", "--grep", "--ui-port", "--ui-host")
    flags = ("--ui", "--headed", "--debug", "--list", "--last-failed", "--pass-with-no-tests", "--quiet")
    example = (
        "Add sum.spec.ts:\n  import { expect, test } from '@playwright/test'\n  test('adds', async () => { expect(1 + 1).toBe(2) })\n"
        "and install it: npm install --save-dev @playwright/test. It runs by: npx playwright test"
    )

    def program(self, project: Project, request: Request) -> str:
        return entry(project, relative(project.root, request.folder), self.module, "playwright")

    def has_section(self, package: Package) -> bool:
        return False

    def files(self, project: Project, folder: str, request: Request, asked: Wanted, package: Package) -> list[str] | None:
        if request.level == "e2e" and asked.file is None:
            return None  # what else would they be
        return super().files(project, folder, request, asked, package)

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        options, positional = self.arguments(script)
        chosen = [_path_pattern(file) for file in files] if files is not None else positional
        argv = [
            *self.node(project, script), self.program(project, request), "test", *chosen, *options,
            *(["-g", self.grep(asked)] if asked.name is not None else []),
        ]  # fmt: skip
        env = {"PLAYWRIGHT_HTML_OPEN": "never", **script.env}
        ours = reporter(request, "playwright.mjs")
        if version(project, relative(project.root, request.folder), self.module) >= ADDS_REPORTER:
            env["PW_TEST_REPORTER"] = ours
        else:
            argv.append(f"--reporter=list,{ours}")
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, env), events=True)

    def grep(self, asked: Wanted) -> str:
        """It is matched against project, file and titles, joined by spaces: a whole name has no beginning of its own."""
        pattern = asked.pattern() or ""
        return f"(?:^| ){pattern.removeprefix('^')}" if asked.exact else pattern

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return PlaywrightRun(project, request, plan, self.hint(project))


def _path_pattern(file: str) -> str:
    """Files are named by regular expressions over absolute paths."""
    return "(?:^|/)" + re.sub(r"[.*+?^${}()|[\]\\]", r"\\\g<0>", file) + "$"
