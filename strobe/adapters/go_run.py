"""go test -json: go wraps what tests print, so that its own stream can be trusted."""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from strobe.adapters.adapter import Exit, Project, Request, Step, Stream
from strobe.adapters.book import Said
from strobe.adapters.stepped import LINE_MAX, SteppedRun, surroundings
from strobe.adapters.wanted import Wanted, inside, relative
from strobe.model.testing import Failure, Frame, NoTests, TestCase, TestStatus

TESTS: Final = "tests"
LIST: Final = "list"
TRACES_MAX: Final = 6
BUILD_LINES: Final = 200
_FUNCTIONS: Final = re.compile(r"^func ((?:Test|Example|Fuzz)\w*)\(", re.M)
_NAME: Final = re.compile(r"^(?:Test|Example|Fuzz)\S*$")
_SAID: Final = re.compile(r"^ +(?P<file>[^\s:]+\.go):(?P<line>\d+): ?(?P<message>.*)$")
_PANIC: Final = re.compile(r"^(?:panic: (?P<message>.*)|fatal error: (?P<fatal>.*)|SIG\w+: .*)$", re.M)
_FRAME: Final = re.compile(r"^(?P<function>[^\s()][^\n]*?)\([^\n]*\)\n\t(?P<file>[^\n:]+):(?P<line>\d+)", re.M)
_RUNTIME: Final = re.compile(r"^(?:testing|runtime|panic|created by|reflect|sync|internal/)[.(/]|^panic$")
_SIGNAL: Final = re.compile(r"^signal: (?P<word>[\w ]+?)(?: \(core dumped\))?$", re.M)
_SIGNALS: Final = {
    "segmentation fault": "SIGSEGV", "aborted": "SIGABRT", "killed": "SIGKILL", "terminated": "SIGTERM", "bus error": "SIGBUS", "quit": "SIGQUIT",
}  # fmt: skip
# Before Go 1.20 a test's end is missed when what it printed last had no end of line.
_LATE_END: Final = re.compile(r"[^\n]--- (?P<status>PASS|FAIL|SKIP): (?P<name>\S+) \((?P<seconds>[\d.]+)s\)\n$")


@dataclass(slots=True)
class Package:
    """What a package's program says that is of no test, and whether anything of it was run."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=BUILD_LINES))
    ended: str | None = None
    build_failed: bool = False


class GoRun(SteppedRun):
    def __init__(self, project: Project, request: Request, asked: Wanted, hint: NoTests, go: str, options: Sequence[str], packages: Sequence[str]) -> None:
        super().__init__(project, request, asked, hint)
        self.go = go
        self.options = tuple(options)
        self.packages = tuple(packages) or ("./...",)
        self.output: dict[tuple[str, str], Said] = {}
        self.late: dict[tuple[str, str], str] = {}  # output of tests whose end was only printed: it may have been printed by the test itself
        self.seen: dict[str, Package] = {}
        self.build_lines: deque[str] = deque(maxlen=BUILD_LINES)
        self.plain: deque[str] = deque(maxlen=BUILD_LINES)
        self.listed: dict[str, list[str]] = {}
        self.others_failed: set[str] = set()  # packages where tests failed that were not asked for
        self.functions_of: dict[str, dict[str, str]] = {}  # name to file, by package

    def begin(self) -> Sequence[Step]:
        """A part of names is looked for in go's own list, which a pattern of `-run` can't be for subtests."""
        if self.asked.name is not None and not self.asked.exact:
            argv = (self.go, "test", *self.options, "-list", ".*", "-json", *self.packages)
            return self.keep([Step(LIST, argv, self.request.folder, surroundings(self.request), phase="compiling")])
        return self.keep([self.test_step(self.pattern([self.asked.name] if self.asked.name else []))])

    def pattern(self, names: Sequence[str]) -> list[str]:
        """`-run` parts its pattern at `/`, and matches each part with a part of the name."""
        if not names:
            return []
        tops = sorted({name.split("/")[0] for name in names})
        if len(names) == 1:
            return ["-run", "/".join(f"^{escaped(part)}$" for part in names[0].split("/"))]
        return ["-run", f"^({'|'.join(escaped(one) for one in tops)})$"]

    def test_step(self, chosen: Sequence[str]) -> Step:
        argv = (self.go, "test", "-json", *self.options, *chosen, *self.packages)
        return Step(TESTS, argv, self.request.folder, surroundings(self.request))

    def on_line(self, step: str, stream: Stream, text: str, at: float) -> None:
        if step == LIST:
            self.listing_line(stream, text)
            return
        if stream == "stdout" and text.startswith('{"'):
            try:
                event = json.loads(text)
            except ValueError:
                event = None
            if isinstance(event, dict):
                self.told(event, at)
                return
        self.plain.append(text[:LINE_MAX])

    def listing_line(self, stream: Stream, text: str) -> None:
        if not text.startswith('{"'):
            self.plain.append(text[:LINE_MAX])
        try:
            event = json.loads(text) if stream == "stdout" and text.startswith('{"') else {}
        except ValueError:
            event = {}
        said = str(event.get("Output", "")).strip()
        if _NAME.match(said):
            self.listed.setdefault(str(event.get("Package")), []).append(said)

    def on_ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        if exit.killed:
            return ()
        if step == LIST:
            return self.chosen_step()
        self.tests_ended(exit, at)
        return ()

    def chosen_step(self) -> Sequence[Step]:
        """Top tests that have the text; none: perhaps it is of a subtest, and all are run to find out."""
        text = self.asked.name or ""
        names = [name for found in self.listed.values() for name in found]
        self.names.update(dict.fromkeys(names))
        top = text.split("/")[0]
        kept = sorted({name for name in names if text.lower() in name.lower() or ("/" in text and top.lower() in name.lower())})
        kept = kept or self.functions_beside(text)
        if kept:
            return [self.test_step(["-run", f"^({'|'.join(escaped(one) for one in kept)})$"])]
        self.book.finished = True
        self.names.update(dict.fromkeys(self.functions()))
        if self.build_lines or any("build failed" in line for line in self.plain):
            self.compile_failed("\n".join([*self.build_lines, *self.plain]))
        self.close()
        return ()

    def functions_beside(self, text: str) -> list[str]:
        """Tests of the files that hold the text: of one of their parts, whose names are not known before they run."""
        wordings = {text.lower(), text.replace("_", " ").lower()}
        found: list[str] = []
        for file in self.project.files(inside(self.folder, "**/*_test.go"), 500):
            source = self.project.read(file) or ""
            if any(one in source.lower() for one in wordings):
                found += _FUNCTIONS.findall(source)
        return sorted(set(found))

    # Events

    def told(self, event: Mapping[str, Any], at: float) -> None:
        action = event.get("Action")
        if action in ("build-output", "build-fail"):
            if action == "build-output":
                self.build_lines.append(str(event.get("Output", "")).rstrip("\n")[:LINE_MAX])
            return
        package, test = str(event.get("Package", "")), event.get("Test")
        seen = self.seen.setdefault(package, Package())
        if test is None:
            if action == "output":
                self.package_said(seen, str(event.get("Output", "")))
                self.late_end(package, str(event.get("Output", "")), at)
            elif action in ("pass", "fail", "skip"):
                seen.ended = str(action)
                if action == "fail":
                    self.package_failed(package, seen, event, at)
            return
        key = (package, str(test))
        if action == "run":
            if not self.is_real(package, key[1]):
                return
            self.output[key] = Said()
            self.started(key[1], at, suite=package, file=self.file_of(package, key[1]))
        elif action == "output":
            self.said(key, str(event.get("Output", "")))
            self.late_end(package, str(event.get("Output", "")), at)
        elif action in ("pass", "fail", "skip"):
            if key in self.late:  # go's own word
                whole = Said()
                whole.add(self.late.pop(key) + self.output.pop(key, Said()).text())
                self.output[key] = whole
                self.started(key[1], at, suite=package, file=self.file_of(package, key[1]))
            if key in self.book.running:
                self.test_ended(key, str(action), event.get("Elapsed"), at)

    def late_end(self, package: str, text: str, at: float) -> None:
        late = _LATE_END.search(text)
        if late is not None and (package, late["name"]) in self.book.running:
            key = (package, late["name"])
            self.late[key] = self.output[key].text() if key in self.output else ""
            self.test_ended((package, late["name"]), late["status"].lower(), float(late["seconds"]), at)

    def is_real(self, package: str, name: str) -> bool:
        """Before Go 1.20 a line that a test prints may look like the beginning of another."""
        return self.file_of(package, name) is not None or not self.project.files(inside(self.folder_of(package), "*_test.go"), 1)

    def package_said(self, seen: Package, text: str) -> None:
        seen.lines.append(text.rstrip("\n")[:LINE_MAX])
        if "[build failed]" in text or "[setup failed]" in text:
            seen.build_failed = True

    def said(self, key: tuple[str, str], text: str) -> None:
        if not re.match(r"^ *(?:===|---) (?:RUN|PAUSE|CONT|NAME|PASS|FAIL|SKIP)\b", text):
            self.output.setdefault(key, Said()).add(text)

    def test_ended(self, key: tuple[str, str], action: str, seconds: float | None, at: float) -> None:
        package, name = key
        output = self.output.pop(key, Said()).text()
        status = {"pass": TestStatus.PASSED, "fail": TestStatus.FAILED, "skip": TestStatus.SKIPPED}[action]
        if not self.counts(name):
            self.book.running.pop((package, name), None)
            self.names[name] = None
            if status is TestStatus.FAILED:
                self.others_failed.add(package)
            return
        failures = self.failures(package, name, output) if status is TestStatus.FAILED else []
        file, line = (failures[0].file, None) if failures else (self.file_of(package, name), None)
        parts = [one for one in self.book.tests.values() if one.suite == package and one.name.startswith(f"{name}/") and one.status is TestStatus.FAILED]
        if parts and status is TestStatus.FAILED and not output.strip():
            where = parts[0].failures[0]
            failures = [Failure(name=name, file=where.file, line=where.line, message=f"its part {where.name.removeprefix(name + '/')!r} failed")]
        reason = None
        if status is TestStatus.SKIPPED:
            told = next((match["message"] for text in output.splitlines() if (match := _SAID.match(text))), None)
            reason = told or output.strip() or None
        ms = seconds * 1000 if seconds is not None else None
        self.finished_test(
            TestCase(
                name=name, suite=package, status=status, duration_ms=ms, file=file, line=line, reason=reason, failures=failures, output=output or None
            ), at,
        )  # fmt: skip

    def counts(self, name: str) -> bool:
        """Whether a test is one of those asked for: a name asks for its parts too, and its own parents run with it."""
        if self.asked.name is None:
            return True
        if self.asked.exact:
            return name == self.asked.name or name.startswith(f"{self.asked.name}/")
        return self.asked.name.lower() in name.lower()

    # Failures

    def failures(self, package: str, name: str, output: str) -> list[Failure]:
        panic = _PANIC.search(output)
        if panic is not None:
            frames = self.frames(output[panic.end() :])
            own = [frame for frame in frames if frame.file and not frame.file.startswith("/")]
            where = own[0] if own else Frame()
            message = f"panic: {panic['message'] or panic['fatal'] or panic[0]}".removesuffix(" [recovered]")
            return [Failure(name=name, file=where.file or self.file_of(package, name), line=where.line, message=message, stack_trace=frames)]
        found: list[Failure] = []
        for text in output.splitlines():
            match = _SAID.match(text)
            if match is not None:
                file = self.place(package, match["file"])
                found.append(Failure(name=name, file=file, line=int(match["line"]), message=match["message"]))
            elif found:
                found[-1] = found[-1].model_copy(update={"message": f"{found[-1].message}\n{text.strip()}".strip()})
        return found or ([Failure(name=name, file=self.file_of(package, name), message=output.strip())] if output.strip() else [])

    def frames(self, stack: str) -> list[Frame]:
        """Of the goroutine that panicked: the first one told."""
        first = re.split(r"\n\s*\ngoroutine \d+ \[", stack.partition("goroutine ")[2])[0]
        found = []
        for match in _FRAME.finditer(first):
            if not _RUNTIME.match(match["function"]):
                found.append(Frame(function=match["function"], file=relative(self.project.root, match["file"]), line=int(match["line"])))
        return found[:40]

    def folder_of(self, package: str) -> str:
        """A package's folder, by its module's name in go.mod."""
        module = re.search(r"^module\s+\"?([^\s\"]+)", self.project.read(inside(self.folder, "go.mod")) or "", re.M)
        name = module[1] if module else ""
        if package == name:
            return self.folder
        return inside(self.folder, package[len(name) + 1 :]) if name and package.startswith(name + "/") else self.folder

    def place(self, package: str, file: str) -> str:
        return relative(self.project.root, file) if file.startswith("/") else inside(self.folder_of(package), file)

    def file_of(self, package: str, name: str) -> str | None:
        """The file that holds a test's function."""
        if package not in self.functions_of:
            found: dict[str, str] = {}
            for file in self.project.files(inside(self.folder_of(package), "*_test.go"), 200):
                found.update(dict.fromkeys(_FUNCTIONS.findall(self.project.read(file) or ""), file))
            self.functions_of[package] = found
        return self.functions_of[package].get(name.split("/")[0])

    # The end

    def package_failed(self, package: str, seen: Package, event: Mapping[str, Any], at: float) -> None:
        """It could not be built, its process died, or one of its tests failed."""
        if seen.build_failed or event.get("FailedBuild"):
            seen.build_failed = True
            return
        keys = [key for key in self.book.running if key[0] == package]
        said = "\n".join([*seen.lines, *(self.output[key].text() for key in keys if key in self.output)])
        signal = _SIGNAL.search(said)
        code = re.search(r"^exit status (\d+)$", said, re.M)
        failed = any(case.suite == package and case.status is TestStatus.FAILED for case in self.book.tests.values())
        panicked = next((case for case in self.book.tests.values() if case.suite == package and case.output and _PANIC.search(case.output)), None)
        if signal is not None or keys or panicked is not None:
            during = [key[1] for key in keys] or ([panicked.name] if panicked is not None else [])
            name = _SIGNALS.get(signal["word"], signal["word"]) if signal else None
            exit = Exit(signal=name) if name else Exit(code=int(code[1]) if code else None)
            self.crashed(TESTS, exit, at, keys)
            if self.book.crash is not None and not self.book.crash.during:
                self.book.crash = self.book.crash.model_copy(update={"during": during})
        elif not failed and package not in self.others_failed:
            self.trouble(f"{package} failed, though no test did:\n{said}")

    def tests_ended(self, exit: Exit, at: float) -> None:
        failed = [package for package, seen in self.seen.items() if seen.build_failed]
        said = "\n".join([*self.build_lines, *(text for text in self.plain if not text.startswith(("FAIL", "ok  ")))]).strip()
        unbuilt = any("[build failed]" in text or "[setup failed]" in text for text in self.plain)  # plain lines before Go 1.24
        if failed or unbuilt or (exit.code not in (0, 1, None) and said) or (self.build_lines and exit.code):
            self.compile_failed(said or f"{', '.join(failed)} could not be built")
        if exit.signal is not None or self.book.running:
            self.crashed(TESTS, exit, at)
        elif exit.code and not (self.book.errors or self.book.crash or self.book.count(TestStatus.FAILED)) and self.asked.name is None:
            self.trouble(f"go test ended with status {exit.code}, though no test failed:\n{said or self.last(TESTS)}")
        if self.book.crash is not None and self.book.crash.signal is None and (signal := _SIGNAL.search("\n".join(self.plain))):
            name = _SIGNALS.get(signal["word"], signal["word"])  # go tells it on its other stream
            self.book.crash = self.book.crash.model_copy(update={"signal": name, "exit_code": None})
        self.book.finished = exit.signal is None
        if not self.book.tests and self.asked.name is not None:
            self.names.update(dict.fromkeys(self.functions()))
        self.close()

    def functions(self) -> list[str]:
        found: list[str] = []
        for file in self.project.files(inside(self.folder, "**/*_test.go"), 500):
            found += _FUNCTIONS.findall(self.project.read(file) or "")
        return found

    def rerun_line(self, suite: str | None, name: str) -> str | None:
        pattern = "/".join(f"^{escaped(part)}$" for part in name.split("/"))
        folder = relative(self.folder, self.folder_of(suite or "")) if self.folder != "." else self.folder_of(suite or "")
        where = "." if folder in (".", self.folder) else f"./{folder}"
        return self.cd() + shlex.join(["go", "test", *self.options, "-run", pattern, where])

    def traces(self, failure: Failure) -> list[str]:
        """`package.Function` of the stack, then what the test's name speaks of."""
        top = failure.name.split("/")[0]
        found = []
        for frame in failure.stack_trace:
            short = (frame.function or "").rsplit("/", 1)[-1]
            if frame.file and not frame.file.startswith("/") and top not in short:
                found.append(re.sub(r"\.func\d+(?:\.\d+)*$", "", short))
        bare = re.sub(r"^(?:Test|Example|Fuzz)_?", "", top)
        if len(bare) > 1:
            found.append(f"**.*{bare}*")
        if failure.file and failure.file.endswith("_test.go"):
            found.append(f"@file:{failure.file.removesuffix('_test.go')}.go")
        return list(dict.fromkeys(found))[:TRACES_MAX]


def escaped(text: str) -> str:
    """For Go's regular expressions; names have `_` for spaces already."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)
