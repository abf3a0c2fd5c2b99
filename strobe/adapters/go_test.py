"""go test: detection, levels, commands. What a run does is in go_run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from strobe.adapters.adapter import Project, Request
from strobe.adapters.cargo_test import command_words
from strobe.adapters.go_run import GoRun
from strobe.adapters.stepped import refuse, tool
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, Level, NoTests

EXAMPLE: Final = (
    'Add sum_test.go beside the code:\n  package sum\n  import "testing"\n  func TestAdds(t *testing.T) { if 1+1 != 2 { t.Fatal("no") } }\n'
    "It runs by: go test ./..."
)
_TAGS: Final = re.compile(r"^//go:build (?P<tags>.*)$", re.M)
_VALUED: Final = frozenset({
    "-run", "-skip", "-count", "-timeout", "-tags", "-parallel", "-p", "-cpu", "-bench", "-benchtime", "-coverprofile", "-coverpkg", "-covermode", "-mod",
    "-ldflags", "-gcflags", "-exec", "-o", "-shuffle", "-C", "-modfile", "-overlay", "-race-", "-vet",
})  # fmt: skip


class GoTest:
    name = "go test"

    def detect(self, project: Project) -> Sequence[Candidate]:
        found = []
        modules = [path.rpartition("/")[0] or "." for path in dict.fromkeys(["go.mod", *project.files("**/go.mod", 200)]) if project.exists(path)]
        for folder in modules:
            tests = [file for file in project.files(inside(folder, "**/*_test.go"), 200) if not self.is_nested(file, folder, modules)]
            reason = f"{inside(folder, 'go.mod')} is a module" + (f"; {tests[0]} has tests" if tests else "; no file of tests yet")
            found.append(Candidate(framework=self.name, confidence=95 if tests else 60, reason=reason, folder=folder))
        return found

    def is_nested(self, file: str, folder: str, modules: Sequence[str]) -> bool:
        return any(one != folder and (folder == "." or one.startswith(folder + "/")) and file.startswith(one + "/") for one in modules)

    def start(self, project: Project, request: Request) -> GoRun:
        go = tool(project, "go", "Install Go.")
        options: list[str] = []
        packages: list[str] = []
        if request.command is not None:
            words = command_words(request.command)
            if len(words) < 2 or words[0].rsplit("/", 1)[-1] != "go" or words[1] != "test":
                what = f"`command` is not a line that is plainly `go test …`: {request.command!r}."
                raise refuse(what, 'Set `framework` to "generic" to run any command.', request.command)
            options, packages = arguments(words[2:])
        if request.level is not None:
            more, packages = self.of_level(project, relative(project.root, request.folder), request.level, packages)
            options += more
        return GoRun(project, request, Wanted(name=request.test, exact=request.exact), self.hint(), go, options, packages)

    def of_level(self, project: Project, folder: str, level: Level, packages: list[str]) -> tuple[list[str], list[str]]:
        """Options and packages. Go knows `-short`, build tags, and folders. Errors: VALIDATION_ERROR where none is of the level."""
        tags: set[str] = set()
        short = False
        for file in project.files(inside(folder, "**/*_test.go"), 500):
            text = project.read(file, 1 << 16) or ""
            tags.update(word for match in _TAGS.finditer(text[:2000]) for word in re.findall(r"!?\w+", match["tags"]))
            short = short or "testing.Short()" in text
        if level == "unit":
            return (["-tags", "unit"] if "unit" in tags else []) + (["-short"] if short else []), packages
        for name in {"integration": ("integration",), "e2e": ("e2e", "acceptance")}[level]:
            if name in tags:
                return ["-tags", name], packages
            for place in (name, f"test/{name}", f"tests/{name}", f"internal/{name}"):
                if project.files(inside(folder, f"{place}/**/*_test.go"), 1) or project.files(inside(folder, f"{place}/*_test.go"), 1):
                    return [], [f"./{place}/..."]
        known = f" Build tags of tests: {', '.join(sorted(tags))}." if tags else ""
        raise refuse(f"No {level} tests: no build tag and no folder of that name.{known}", "Leave `level` out, or give `test` or `command`.", level)

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "go"

    def hint(self) -> NoTests:
        return NoTests(project="Go", hint=f"No tests yet. {EXAMPLE}")

    def no_tests(self, project: Project) -> NoTests | None:
        return self.hint() if project.exists("go.mod") or project.files("**/*.go", 1) else None


def arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """(options, packages) of what follows `go test`."""
    options: list[str] = []
    packages: list[str] = []
    takes = False
    for index, word in enumerate(words):
        if takes:
            options.append(word)
            takes = False
        elif word in ("-json", "-v"):
            continue
        elif word == "-args":
            packages += words[index:]
            break
        elif word.startswith("-"):
            options.append(word)
            takes = word.replace("--", "-", 1) in _VALUED
        else:
            packages.append(word)
    return options, packages
