"""What a test adapter is. Lines, events and reports go in; steps to run and results come out.

An adapter does no I/O and knows no clock: the engine (actors/session/testing) shows it the project, runs its steps, and tells it with the time in
milliseconds what came of them. So every adapter can be replayed from a recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from strobe.adapters.book import Book
from strobe.model.testing import Candidate, Level, NoTests

Stream = Literal["stdout", "stderr", "report"]  # the last: of a file that a step is followed in


class Project(Protocol):
    """A project's folder, as an adapter may look at it. Paths are relative to it, with `/`."""

    @property
    def root(self) -> str:
        """Absolute path."""

    def files(self, pattern: str, limit: int = 1000) -> Sequence[str]:
        """Files that a glob matches (`**` any depth), sorted; not those in .git, node_modules, .venv, target and other folders of tools."""

    def read(self, path: str, limit: int = 1 << 20) -> str | None:
        """A file's text, cut at `limit` bytes; None where there is none."""

    def exists(self, path: str) -> bool: ...

    def program(self, name: str) -> str | None:
        """Absolute path of a program on the run's PATH."""

    def has_bytes(self, path: str, needle: bytes) -> bool:
        """Whether a file (a built binary) holds `needle`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be run. `folder` is the candidate's, `reporters` where Strobe's reporters lie, `work` an empty folder of the run's own:
    all absolute. Files of events lie in `work` or in the folder that it is in."""

    folder: str
    reporters: str
    work: str
    level: Level | None = None
    test: str | None = None  # substring of names, or one whole name
    exact: bool = False  # `test` is one whole name, and nothing else is to run
    command: str | None = None  # overrides the suite's command; a shell line
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One process to run. It gets CI=1 and NO_COLOR=1, no stdin, and a process group of its own."""

    name: str  # unique in the run
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str | None] = field(default_factory=dict)  # over the caller's; None takes a variable away
    phase: Literal["compiling", "running"] = "running"
    is_program: bool = False  # the tests' own program and no driver: what is traced when patterns are given
    events: bool = False  # gets STROBE_TEST_EVENTS: a file to which its reporter appends one JSON object a line
    reports: tuple[str, ...] = ()  # files (absolute) it writes, handed to `ended`
    follow: tuple[str, ...] = ()  # of these: those to read as they grow; each whole line comes by `line`, as "report"
    beside: bool = False  # may run beside other steps


@dataclass(frozen=True, slots=True)
class Exit:
    """How a step ended: one of `code` and `signal`. `killed`: by us, at a limit or on request."""

    code: int | None = None
    signal: str | None = None
    killed: bool = False


class Run(Protocol):
    """One run: a state machine. `at` is in milliseconds since it began."""

    book: Book  # tests and what became of them, as far as known

    def begin(self) -> Sequence[Step]:
        """First steps. Errors: StrobeError VALIDATION_ERROR for a request that can't be carried out, with the next step to take."""

    def line(self, step: str, stream: Stream, text: str, at: float) -> None:
        """One line of a step's output, without its end."""

    def event(self, step: str, event: Mapping[str, Any], at: float) -> None:
        """One event of a step's reporter."""

    def ended(self, step: str, exit: Exit, reports: Mapping[str, str], at: float) -> Sequence[Step]:
        """Steps to run next; none when nothing is left. `reports` by path, without those that were not written."""

    def finish(self, at: float) -> None:
        """Nothing runs any more (ended, or stopped before): `book` is to hold the final truth."""


class Adapter(Protocol):
    name: str  # as in `framework`

    def detect(self, project: Project) -> Sequence[Candidate]:
        """Where the project uses this framework, by evidence; none when there is no sign of it."""

    def start(self, project: Project, request: Request) -> Run: ...

    def no_tests(self, project: Project) -> NoTests | None:
        """How to add a first test, where the project is of this framework's language; None where it is not."""

    def rerun(self, project: Project, request: Request, test: str) -> Request:
        """The request that runs only the test of this name."""

    def stacks(self) -> Literal["native", "python", "node", "go"]:
        """Whose way of taking stacks tells most of a hung test."""
