"""What cargo says of a project: its packages, and the test programs that it built."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from strobe.adapters.adapter import Project
from strobe.adapters.python_project import toml
from strobe.adapters.wanted import inside
from strobe.model.testing import Candidate, Level

_TEST: Final = re.compile(r"#\[(?:[\w:]+::)?(?:test|rstest|test_case|case)\b|proptest!")
_DOC_TEST: Final = re.compile(r"^\s*(?://[/!]|\*)?\s*```(?!text|sh|bash|toml|json|console|ignore)", re.M)
_VALUED: Final = frozenset({
    "-p", "--package", "--exclude", "--test", "--bin", "--example", "--bench", "-j", "--jobs", "--profile", "-F", "--features", "--target", "--target-dir",
    "--manifest-path", "--config", "-Z", "--lockfile-path", "-E", "--filterset", "-P", "--cargo-profile",
})  # fmt: skip
_OURS: Final = ("--no-run", "--color", "--message-format", "--quiet", "-q", "--verbose", "-v", "--doc")


@dataclass(frozen=True, slots=True)
class Program:
    """A built test program. `suite` is unique in the run."""

    suite: str
    path: str
    package: str
    package_id: str
    version: str
    folder: str  # absolute, of its package
    source: str
    kind: str  # lib, bin, test, example, bench
    target: str

    def is_of(self, level: Level | None) -> bool:
        if level is None:
            return True
        far = bool(re.search(r"e2e|end_to_end|acceptance", self.target))
        return {"unit": self.kind != "test", "integration": self.kind == "test" and not far, "e2e": self.kind == "test" and far}[level]

    def select(self) -> list[str]:
        """Arguments of cargo that mean this program."""
        return ["-p", self.package, *(["--lib"] if self.kind == "lib" else [f"--{self.kind}", self.target])]


@dataclass(slots=True)
class Build:
    """What `cargo test --no-run --message-format=json` said."""

    programs: list[Program] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    library_folders: list[str] = field(default_factory=list)
    env: dict[str, dict[str, str]] = field(default_factory=dict)  # of a package's build script

    def told(self, message: Mapping[str, Any]) -> None:
        reason = message.get("reason")
        if reason == "compiler-message" and message["message"].get("level", "").startswith("error"):
            self.errors.append(str(message["message"].get("rendered") or message["message"].get("message")).strip())
        elif reason == "build-script-executed":
            self.library_folders += [path.partition("=")[2] or path for path in message.get("linked_paths", ())]
            self.env[str(message["package_id"])] = {**dict(message.get("env", ())), "OUT_DIR": str(message.get("out_dir", ""))}
        elif reason == "compiler-artifact" and message.get("executable") and message["profile"].get("test"):
            self.programs.append(program(message, {one.suite for one in self.programs}))


def program(message: Mapping[str, Any], taken: set[str]) -> Program:
    target = message["target"]
    folder = str(message["manifest_path"]).rpartition("/")[0]
    package, version = named(str(message["package_id"]), folder)
    kind = target["kind"][0]
    kind = kind if kind in ("bin", "test", "example", "bench") else "lib"
    suite = package if kind == "lib" else f"{package}::{target['name']}"
    if suite in taken:
        suite = f"{suite} ({kind})"
    return Program(suite, message["executable"], package, str(message["package_id"]), version, folder, target["src_path"], kind, target["name"])


def named(package_id: str, folder: str) -> tuple[str, str]:
    """Name and version: `path+file:///p/rx#0.1.0`, `path+file:///p#rx@0.1.0`, and before 1.77 `rx 0.1.0 (path+...)`."""
    if "#" in package_id:
        last = package_id.rsplit("#", 1)[1]
        name, parted, version = last.rpartition("@")
        return (name, version) if parted else (folder.rsplit("/", 1)[-1], last)
    words = package_id.split(" ")
    return words[0], words[1] if len(words) > 1 else "0.0.0"


def candidates(project: Project, framework: str, base: int, more: Sequence[str] = ()) -> list[Candidate]:
    """Each package and each workspace."""
    found = []
    paths = dict.fromkeys(["Cargo.toml", *project.files("**/Cargo.toml", 200)])
    for path in paths:
        manifest = toml(project, path)
        folder = path.rpartition("/")[0] or "."
        if "package" not in manifest and "workspace" not in manifest:
            continue
        name = manifest.get("package", {}).get("name")
        what = f"{path} is the package {name}" if name else f"{path} is a workspace"
        if name and "workspace" in manifest:
            what += " and a workspace"
        tested = first_tested(project, folder)
        reasons = [what, *more, *([f"{tested} has tests"] if tested is not None else [])]
        confidence = min(98, base + (4 if tested is not None else 0) + (2 if folder == "." else 0))
        found.append(Candidate(framework=framework, confidence=confidence, reason="; ".join(reasons), folder=folder))
    return found


def first_tested(project: Project, folder: str) -> str | None:
    for file in project.files(inside(folder, "**/*.rs"), 200):
        if _TEST.search(project.read(file, 1 << 18) or ""):
            return file
    return None


def has_doc_tests(project: Project, folder: str) -> bool:
    files = project.files(inside(folder, "**/src/**/*.rs"), 500)
    return any(_DOC_TEST.search(line) for file in files for line in (project.read(file) or "").splitlines() if line.lstrip().startswith(("///", "//!")))


def has_own_harness(project: Project, manifest: str, target: str) -> bool:
    """Whether a test's program is no libtest's (`harness = false`)."""
    targets = toml(project, manifest).get("test", [])
    return any(isinstance(one, dict) and one.get("name") == target and one.get("harness") is False for one in targets)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command's arguments, for cargo and for the programs, and the names that it chooses tests by."""

    cargo: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    toolchain: tuple[str, ...] = ()  # `+nightly`


def read_arguments(words: Sequence[str]) -> Asked:
    """Of what follows `cargo test`."""
    line = list(words)
    ours = line[: line.index("--")] if "--" in line else line
    theirs = line[line.index("--") + 1 :] if "--" in line else []
    cargo: list[str] = []
    filters: list[str] = []
    takes = drop = False
    for word in ours:
        if takes or drop:
            if takes:
                cargo.append(word)
            takes = drop = False
        elif word.split("=")[0] in _OURS:
            drop = word in ("--color", "--message-format")
        elif word.startswith("-"):
            cargo.append(word)
            takes = word in _VALUED
        else:
            filters.append(word)
    options, names = program_arguments(theirs)
    return Asked(tuple(cargo), tuple(options), (*filters, *names))


def program_arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """(options, names) of what a test program was to get, without what would change how it tells of its tests."""
    options: list[str] = []
    names: list[str] = []
    takes = False
    for word in words:
        if takes:
            options.append(word)
            takes = False
        elif word in ("--nocapture", "--no-capture", "--show-output", "--quiet", "-q") or word.startswith("--format"):
            continue
        elif word.startswith("-"):
            options.append(word)
            takes = word in ("--test-threads", "--skip", "--shuffle-seed", "-Z")
        else:
            names.append(word)
    return options, names
