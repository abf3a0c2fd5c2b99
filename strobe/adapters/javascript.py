"""What the adapters of npm's test runners share: detection by script, configuration file and dependency, the command, the first test."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from strobe.adapters.adapter import Project, Request, Step
from strobe.adapters.levels import files_of_level, test_files
from strobe.adapters.narrated import NarratedRun
from strobe.adapters.packages import Package, adder, entry, existing, installer, module_folder, package_in, packages, parsed, surroundings, tool
from strobe.adapters.plan import Plan
from strobe.adapters.scripts import Script, has_level, read_command, script_of, split_positional, without
from strobe.adapters.wanted import Wanted, inside, relative, wanted
from strobe.model.testing import Candidate, NoTests

REPORTING = ("--reporter", "--reporters", "-R", "-O", "--reporter-option", "--reporter-options", "--outputFile")  # not for rerun commands
TESTS: str = "tests"  # the step that runs them
BESIDE = "STROBE_TEST_BESIDE"  # set: our reporter brings those of the project's configuration, which a reporter on the command line replaces


class JavaScriptAdapter:
    """A runner from npm. Subclasses say how it is called and what its own reporter is."""

    name: str
    module: str  # the npm package with its program
    runner: tuple[str, ...]  # as scripts call it
    config: tuple[str, ...]  # stems of its configuration files
    flags: tuple[str, ...]  # options that a run of ours leaves out
    valued: tuple[str, ...]  # such with a value
    takes: tuple[str, ...]  # other options whose value may be a word of its own
    example: str  # a first test, and the command that runs it

    def detect(self, project: Project) -> Sequence[Candidate]:
        found = []
        for package in packages(project):
            candidate = self.candidate(project, package)
            if candidate is not None:
                found.append(candidate)
        return found

    def candidate(self, project: Project, package: Package) -> Candidate | None:
        """Evidence adds up: a script that runs it, a configuration file, a dependency."""
        where = inside(package.folder, "package.json")
        script = script_of(package, self.runner)
        dependency = package.depends(self.module)
        config = next((file for stem in self.config if (file := existing(project, package.folder, stem)) is not None), None)
        if config is None and self.has_section(package):
            config = f"{where}'s section {self.runner[0]!r}"
        reasons = [
            *([f"{where} has the script {script.name!r} that runs it"] if script is not None else []),
            *([config if "'" in config else inside(package.folder, config)] if config is not None else []),
            *([f"{where} depends on {dependency}"] if dependency is not None else []),
        ]
        if not reasons:
            return None
        confidence = min(98, (90 if script is not None else 80 if config is not None else 70) + 4 * (len(reasons) - 1))
        if module_folder(project, package.folder, self.module) is None:
            reasons.append(f"not installed yet: run {installer(project) if dependency is not None else f'{adder(project)} {self.module}'}")
        return Candidate(framework=self.name, confidence=confidence, reason="; ".join(reasons), folder=package.folder)

    def has_section(self, package: Package) -> bool:
        return isinstance(package.manifest.get(self.runner[0]), dict)

    def start(self, project: Project, request: Request) -> NarratedRun:
        folder = relative(project.root, request.folder)
        package = self.package(project, folder)
        script = self.script(package, request)
        asked = wanted(project, request)
        if request.command is not None and script is None:
            return self.run(project, request, self.plain_plan(request, asked))
        script = script or Script("none")
        files = self.files(project, folder, request, asked, package)
        main = self.step(project, request, script, asked, files)
        steps = (*self.preparation(request, script), main)
        options = without(self.arguments(script)[0], (), REPORTING)
        return self.run(project, request, Plan(self.name, steps, asked, rerun_start(project, request, script), tuple(options)))

    def package(self, project: Project, folder: str) -> Package:
        return package_in(project, folder) or Package(folder, {})

    def script(self, package: Package, request: Request) -> Script | None:
        if request.command is not None:
            return read_command(request.command, self.runner, package)
        return script_of(package, self.runner, request.level)

    def files(self, project: Project, folder: str, request: Request, asked: Wanted, package: Package) -> list[str] | None:
        """Files to name, relative to the folder; None leaves the choice to the runner."""
        if asked.file is not None:
            return [asked.file]
        if request.level is None or request.command is not None or has_level(package, self.runner, request.level):
            return None
        return files_of_level(self.test_files(project, folder), request.level)

    def test_files(self, project: Project, folder: str) -> list[str]:
        return test_files(project, folder)

    def preparation(self, request: Request, script: Script) -> tuple[Step, ...]:
        """What a script does before it runs tests: mostly a compiler."""
        if not script.before:
            return ()
        line = 'PATH="$PWD/node_modules/.bin:$PATH"; export PATH; ' + " && ".join(script.before)
        return (Step("preparing", ("/bin/sh", "-c", line), request.folder, surroundings(request), phase="compiling"),)

    def plain_plan(self, request: Request, asked: Wanted) -> Plan:
        """A command that is not plainly this runner's is run as it is; what its processes tell is read."""
        step = Step(TESTS, ("/bin/sh", "-c", request.command or ""), request.folder, surroundings(request), events=True)
        return Plan(self.name, (step,), asked, is_foreign=True)

    def node(self, project: Project, script: Script) -> tuple[str, ...]:
        return (tool(project, "node"), *script.program_args)

    def program(self, project: Project, request: Request) -> str:
        return entry(project, relative(project.root, request.folder), self.module, self.runner[0])

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "node"

    def no_tests(self, project: Project) -> NoTests | None:
        package = package_in(project, ".")
        if package is None and not project.files("**/*.[jt]s", 1):
            return None
        manager = installer(project).split()[0]
        return NoTests(project=f"JavaScript, packages by {manager}", hint=f"No {self.name} tests yet. {self.example}")

    def hint(self, project: Project) -> NoTests:
        return self.no_tests(project) or NoTests(project="JavaScript", hint=f"No {self.name} tests yet. {self.example}")

    def arguments(self, script: Script) -> tuple[list[str], list[str]]:
        """(options, positional arguments) of a script, without what a run of ours says otherwise."""
        return split_positional(without(script.args, self.flags, self.valued), self.takes)

    # Each runner's own

    def step(self, project: Project, request: Request, script: Script, asked: Wanted, files: Sequence[str] | None) -> Step:
        raise NotImplementedError

    def run(self, project: Project, request: Request, plan: Plan) -> NarratedRun:
        raise NotImplementedError


def rerun_start(project: Project, request: Request, script: Script) -> str:
    """What a rerun command begins with: the folder, and the script's variables."""
    folder = relative(project.root, request.folder)
    variables = dict(script.env)
    if script.program_args:
        variables["NODE_OPTIONS"] = " ".join([variables.get("NODE_OPTIONS", ""), *script.program_args]).strip()
    cd = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    return cd + "".join(f"{name}={shlex.quote(value)} " for name, value in variables.items())


def version(project: Project, folder: str, module: str) -> tuple[int, int]:
    """Major and minor version of an installed package; (0, 0) where it can't be known."""
    place = module_folder(project, folder, module)
    manifest = parsed(project.read(f"{place}/package.json") or "") if place is not None else None
    match = re.match(r"(\d+)\.(\d+)", str((manifest or {}).get("version", "")))
    return (int(match[1]), int(match[2])) if match is not None else (0, 0)


def reporter(request: Request, file: str) -> str:
    """Absolute path of a reporter of ours."""
    return f"{request.reporters.rstrip('/')}/{file}"


