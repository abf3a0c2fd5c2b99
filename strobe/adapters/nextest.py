"""cargo-nextest: a process a test. Its own JSON (of libtest's kind) has the results; it tells of a test's beginning late, so that each is run by
agent/reporters/nextest_runner.sh, which says so at once, with the process. What a signal ended stands in its lines for people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.cargo_project import candidates, read_arguments
from strobe.adapters.cargo_test import CargoTest, command_words
from strobe.adapters.libtest import STATUSES, LibtestRun, message_in
from strobe.adapters.stepped import LINE_MAX, plain, refuse, surroundings, tool
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Candidate, Level, NoTests, TestStatus

LIST: Final = "list"
TESTS: Final = "tests"
INSTALL: Final = "Install it: cargo install cargo-nextest --locked."
CONFIG: Final = ".config/nextest.toml"
NO_TESTS: Final = 4
# Whatever the machine: only its own is looked at.
SYSTEMS: Final = ("UNKNOWN_LINUX_GNU", "UNKNOWN_LINUX_MUSL", "APPLE_DARWIN")
TARGETS: Final = tuple(f"CARGO_TARGET_{cpu}_{system}_RUNNER" for cpu in ("X86_64", "AARCH64") for system in SYSTEMS)
_PEOPLE: Final = re.compile(r"^ *(?:TRY \d+ )?(?P<how>SIG\w+|ABORT|TIMEOUT|TMT) +\[[ >]*[\d.]+s\] (?:\( *\d+/\d+\) )?(?P<binary>\S+) (?P<name>\S+)$")


@dataclass(frozen=True, slots=True)
class Known:
    """A test program's tests. `file`: its source is not told; the package's folder is."""

    binary: str
    package: str
    target: str
    kind: str
    names: Mapping[str, Any]


class NextestRun(LibtestRun):
    opening = '{"type":'

    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests, cargo: str, options: Sequence[str]) -> None:
        super().__init__(project, request, asked, hint)
        self.cargo = cargo
        self.options = tuple(options)
        self.known: list[Known] = []
        self.listed: dict[str, Any] | None = None
        self.died: dict[tuple[str, str], str] = {}
        self.stderr: list[str] = []

    def begin(self) -> Sequence[Step]:
        argv = (self.cargo, "nextest", "list", "--message-format", "json", *self.options, *self.filter())
        return self.keep([Step(LIST, argv, self.request.folder, surroundings(self.request), phase="compiling")])

    def filter(self) -> list[str]:
        parts = []
        if self.asked.name is not None:
            parts.append(f"test({'=' if self.asked.exact else '~'}{escaped(self.asked.name)})")
        if self.request.level is not None:
            parts.append(LEVELS[self.request.level])
        return ["-E", " & ".join(parts)] if parts else []

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if step == LIST:
            if stream == "stdout":
                self.listed = message_in(text, '{"rust-build-meta"') or self.listed
            elif len(self.stderr) < 2000:
                self.stderr.append(plain(text[:LINE_MAX]))
        elif stream == "stdout":
            self.tell(self.messages(step, text), at)
        else:
            match = _PEOPLE.match(plain(text))
            if match is not None:
                self.died[(match["binary"], match["name"])] = {"ABORT": "SIGABRT"}.get(match["how"], match["how"])

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        if step == LIST:
            return self.list_ended(exit)
        self.tests_ended(exit, at)
        return ()

    def list_ended(self, exit: Exit) -> Sequence[Step]:
        if exit.code != 0 or self.listed is None:
            said = "\n".join(self.stderr)
            start = re.search(r"^error", said, re.M)
            self.compile_failed(said[start.start() :] if start else said or f"cargo nextest could not list the tests (status {exit.code})")
            self.closed = True
            return ()
        for suite in self.listed.get("rust-suites", {}).values():
            names = suite.get("testcases", {})
            self.names.update(dict.fromkeys(names))
            # Ignored ones are told of too.
            chosen = {name: one for name, one in names.items() if self.is_chosen(name, one)}
            self.known.append(Known(suite["binary-id"], suite["package-name"], suite["binary-name"], suite["kind"], chosen))
        count = sum(len(one.names) for one in self.known)
        self.book.expected = count
        if not count:
            self.book.finished = True
            self.close()
            return ()
        return [self.test_step()]

    def is_chosen(self, name: str, test: Mapping[str, Any]) -> bool:
        match = test.get("filter-match", {})
        asked = self.asked.name is None or (name == self.asked.name if self.asked.exact else self.asked.name in name)
        return bool(match.get("status") == "matches" or (match.get("reason") == "ignored" and asked))

    def test_step(self) -> Step:
        env: dict[str, str | None] = {"NEXTEST_EXPERIMENTAL_LIBTEST_JSON": "1", "RUST_BACKTRACE": "1", "NEXTEST_HIDE_PROGRESS_BAR": "1"}
        runner = f"{self.request.reporters.rstrip('/')}/nextest_runner.sh"
        if " " not in runner:  # cargo parts it there
            env.update(dict.fromkeys(TARGETS, f"/bin/sh {runner}"))
        argv = (
            self.cargo, "nextest", "run", "--no-fail-fast", "--message-format", "libtest-json-plus", "--color", "never", "--status-level", "all",
            "--final-status-level", "none", *self.options, *self.filter(),
        )  # fmt: skip
        return Step(TESTS, argv, self.request.folder, surroundings(self.request, env), events=True)

    # Events

    def on_start(self, step: str, event: Mapping[str, Any], at: float) -> None:
        name, binary = str(event["id"]), str(event.get("binary"))
        known = next((one for one in self.known if name in one.names and one.binary == binary), None)
        known = known or next((one for one in self.known if name in one.names), None)
        if known is not None and (known.binary, name) not in self.book.tests:
            self.started(name, at, suite=known.binary, pid=event.get("pid"))
            self.book.running[(known.binary, name)].pid = event.get("pid")

    def tell(self, messages: Sequence[Mapping[str, Any]], at: float) -> None:
        for message in messages:
            if message.get("type") == "test":
                self.told_of(message, at)

    def told_of(self, message: Mapping[str, Any], at: float) -> None:
        """`package::target$name`, with `#2` for a second try."""
        place, _, name = str(message.get("name", "")).partition("$")
        name = re.sub(r"#\d+$", "", name)
        package, _, target = place.partition("::")
        fits = [one for one in self.known if one.package == package and name in one.names]
        known = next((one for one in fits if one.target == target), fits[0] if fits else None)
        if known is None:
            return
        if message.get("event") == "started":
            if (known.binary, name) not in self.book.tests:
                self.started(name, at, suite=known.binary)
        elif message.get("event") in STATUSES:
            self.started(name, at, suite=known.binary)
            self.test_ended(known.binary, name, message, at, None)

    def tests_ended(self, exit: Exit, at: float) -> None:
        self.tell(self.rest(TESTS), at)
        for (binary, name), how in self.died.items():
            if how in ("TIMEOUT", "TMT"):
                self.timed_out(binary, name)
                continue
            case = self.book.tests.pop((binary, name), None)
            begun = at - ((case.duration_ms or 0) if case is not None else 0)
            self.book.started(name, begun, suite=binary)
            self.crashed(TESTS, Exit(signal=how), at, [(binary, name)])
        if exit.signal is not None or self.book.running:
            self.crashed(TESTS, exit, at)
        elif exit.code not in (0, NO_TESTS) and not (self.book.crash or self.book.count(TestStatus.FAILED)):
            self.trouble(f"cargo nextest ended with status {exit.code}, though no test failed:\n{self.last(TESTS)}")
        self.book.finished = exit.signal is None
        self.close()

    def timed_out(self, binary: str, name: str) -> None:
        case = self.book.tests.get((binary, name))
        if case is not None and case.failures:
            message = f"nextest ended it: it ran for longer than its profile allows\n{case.failures[0].message}".strip()
            self.book.tests[(binary, name)] = case.model_copy(update={"failures": [case.failures[0].model_copy(update={"message": message})]})

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        return self.cd() + shlex.join(["cargo", "nextest", "run", *self.options, "-E", f"binary_id(={escaped(suite or '')}) & test(={escaped(name)})"])


def escaped(text: str) -> str:
    """For nextest's filtersets, which know few escapes."""
    return re.sub(r"[\\),]", r"\\\g<0>", text)


LEVELS: Final[Mapping[Level, str]] = {
    "unit": "not kind(test)", "integration": "(kind(test) & not binary(~e2e))", "e2e": "(kind(test) & binary(~e2e))",
}  # fmt: skip


class Nextest(CargoTest):
    name = "cargo-nextest"

    def detect(self, project: Project) -> Sequence[Candidate]:
        """Where a project configures it, it is its own choice; elsewhere cargo test comes first, though it is there."""
        is_here = project.program("cargo-nextest") is not None
        folders = [path.removesuffix(CONFIG).rstrip("/") or "." for path in project.files(f"**/{CONFIG}", 20)]
        if project.exists(CONFIG) and "." not in folders:
            folders.append(".")
        found = []
        for one in candidates(project, self.name, 90, ("cargo-nextest is installed",) if is_here else ()):
            config = next((folder for folder in folders if folder == "." or one.folder == folder or one.folder.startswith(folder + "/")), None)
            if config is None and not is_here:
                continue
            reason = f"{inside(config, CONFIG)} configures it; {one.reason}" if config is not None else one.reason
            reason += "" if is_here else f"; not installed. {INSTALL}"
            confidence = min(99, one.confidence + 4) if config is not None and is_here else 55
            found.append(one.model_copy(update={"confidence": confidence, "reason": reason}))
        return found

    def start(self, project: Project, request: Request) -> NextestRun:  # type: ignore[override]  # the same protocol, another run
        cargo = tool(project, "cargo", "Install Rust.")
        tool(project, "cargo-nextest", INSTALL)
        options: list[str] = []
        if request.command is not None:
            words = command_words(request.command)
            if words[:3] not in (["cargo", "nextest", "run"], ["cargo", "nextest", "r"]):
                what = f"`command` is not a line that is plainly `cargo nextest run …`: {request.command!r}."
                raise refuse(what, 'Set `framework` to "generic" to run any command.', request.command)
            read = read_arguments(words[3:])
            options = [*read.cargo, *read.filters]
        elif "[workspace]" in (project.read(inside(relative(project.root, request.folder), "Cargo.toml")) or ""):
            options = ["--workspace"]
        return NextestRun(project, request, Wanted(name=request.test, exact=request.exact), self.hint(), cargo, options)

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        return replace(request, test=test, exact=True)

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        return "native"
