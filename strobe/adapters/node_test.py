"""node:test, by `node --test` (18 to 26): agent/reporters/node_test.mjs tells what happens, beside the spec reporter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.javascript import TESTS, JavaScriptAdapter, reporter
from strobe.adapters.levels import test_files
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import Package, packages, surroundings
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script, script_of
from strobe.adapters.wanted import SEPARATOR, Wanted, inside, js_escape, relative
from strobe.model.testing import Candidate, NoTests

LOOKED_AT_MAX = 60
_IMPORT = re.compile(r"""(?:from|require\(|import\()?\s*['"]node:test['"]""")
_PATTERNS = ("**/*.test.*", "**/*-test.*", "**/*_test.*", "**/test-*.*", "**/test.*", "**/test/**/*.*", "**/*.spec.*")
_CODE = re.compile(r"\.(?:[cm]?js|[cm]?ts)$")


class NodeTestRun(NarratedRun):
    runs_others = True  # Node's pattern is for a test's own name, whatever suites it lies in

    def rerun_line(self, file: str | None, name: str, path: Sequence[str]) -> str | None:
        local = relative(self.folder, file) if file is not None and self.folder != "." else file
        words = ["node", *self.plan.options, "--test", f"--test-name-pattern=^{js_escape(path[-1])}$", *([local] if local else [])]
        return self.shell(*words)


class NodeTest(JavaScriptAdapter):
    name = "node:test"
    module = ""
    runner = ("node",)
    config = ()
    takes = ("--import", "--require", "-r", "--loader", "--experimental-loader", "--env-file", "--conditions", "-C")
    valued = ("--test-reporter", "--test-reporter-destination", "--test-name-pattern", "--test-skip-pattern", "--test-shard")
    flags = ("--watch", "--test-only", "--experimental-test-coverage", "--test-update-snapshots", "--inspect", "--inspect-brk")
    example = (
        "Add sum.test.mjs:\n  import test from 'node:test'\n  import assert from 'node:assert'\n  test('adds', () => { assert.equal(1 + 1, 2) })\n"
        "It runs by: node --test"
    )

    def detect(self, project: Project) -> Sequence[Candidate]:
        found = list(super().detect(project))
        if not any(one.folder == "." for one in found) and not packages(project):
            bare = self.candidate(project, Package(".", {}))
            found += [bare] if bare is not None else []
        return found

    def candidate(self, project: Project, package: Package) -> Candidate | None:
        script = script_of(package, self.runner)
        reasons = [f"{inside(package.folder, 'package.json')} has the script {script.name!r} that runs node --test"] if script is not None else []
        importing = self.importing(project, package.folder)
        if importing is not None:
            reasons.append(f"{inside(package.folder, importing)} imports node:test")
        if not reasons:
            return None
        confidence = 96 if len(reasons) == 2 else 92 if script is not None else 75
        return Candidate(framework=self.name, confidence=confidence, reason="; ".join(reasons), folder=package.folder)

    def importing(self, project: Project, folder: str) -> str | None:
        """The first test file of a package, not of those within it, that uses it."""
        for file in self.test_files(project, folder)[:LOOKED_AT_MAX]:
            nested = any(project.exists(inside(folder, f"{parent}/package.json")) for parent in _parents(file))
            if not nested and _IMPORT.search(project.read(inside(folder, file), 1 << 14) or ""):
                return file
        return None

    def test_files(self, project: Project, folder: str) -> list[str]:
        return [file for file in test_files(project, folder, _PATTERNS) if _CODE.search(file)]

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        folder = relative(project.root, request.folder)
        options, positional = self.arguments(script)
        ours = reporter(request, "node_test.mjs")
        argv = [
            *self.node(project, script), *options, f"--import={ours}", "--test",
            "--test-reporter=spec", "--test-reporter-destination=stdout", f"--test-reporter={ours}", "--test-reporter-destination=stderr",
            *(f"--test-name-pattern={one}" for one in self.patterns(asked)),
            *(files if files is not None else self.expanded(project, folder, positional)),
        ]  # fmt: skip
        return Step(TESTS, tuple(argv), request.folder, surroundings(request, dict(script.env)), events=True)

    def patterns(self, asked: Wanted) -> list[str]:
        """Node matches each test's own name, and runs what lies in a suite that matches: each part of a name is a pattern of its own."""
        if asked.name is None:
            return []
        parts = asked.name.split(SEPARATOR)
        if not asked.exact:
            return [js_escape(parts[-1])]
        # A test's own name may hold a separator.
        return [f"^{js_escape(SEPARATOR.join(parts[first:]))}$" for first in range(len(parts))]

    def expanded(self, project: Project, folder: str, positional: Sequence[str]) -> list[str]:
        """Before Node 21 the shell expanded what scripts name; a folder was searched until then."""
        found: list[str] = []
        for word in positional:
            path = word.removeprefix("./")
            if any(sign in word for sign in "*?{"):
                patterns = [path] if "{" not in path else _alternatives(path)
                found += [file if folder == "." else relative(folder, file) for one in patterns for file in project.files(inside(folder, one))]
            else:
                found.append(word)
        return list(dict.fromkeys(found)) or list(positional)

    def no_tests(self, project: Project) -> NoTests | None:
        found = super().no_tests(project)
        return found if found is None or project.program("node") is not None else None

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        return NodeTestRun(project, request, plan, self.hint(project))


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _alternatives(pattern: str) -> list[str]:
    """`*.{js,ts}` is `*.js` and `*.ts`."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    return [one for choice in match[1].split(",") for one in _alternatives(pattern[: match.start()] + choice + pattern[match.end() :])]
