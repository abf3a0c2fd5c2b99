"""The tests of a run and what became of each: written by its adapter, read by whoever shows progress or results."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strobe.model.testing import Crash, Failure, NoTests, TestCase, TestStatus

OUTPUT_MAX: Final = 64 << 10


@dataclass(slots=True)
class Said:
    """What a test prints, however much it is: its beginning and its end, where failures are told. Each at most half of OUTPUT_MAX characters."""

    _head: list[str] = field(default_factory=list)
    _tail: deque[str] = field(default_factory=deque)
    _head_size: int = 0
    _tail_size: int = 0
    _left_out: int = 0

    def add(self, text: str) -> None:
        room = OUTPUT_MAX // 2 - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += min(room, len(text))
            text = text[room:]
        if text:
            self._tail.append(text[-OUTPUT_MAX // 2 :])
            self._tail_size += len(self._tail[-1])
            self._left_out += len(text) - len(self._tail[-1])
        while len(self._tail) > 1 and self._tail_size - len(self._tail[0]) >= OUTPUT_MAX // 2:
            first = self._tail.popleft()
            self._tail_size -= len(first)
            self._left_out += len(first)

    def text(self) -> str:
        end = "".join(self._tail)
        cut = max(0, len(end) - OUTPUT_MAX // 2)
        left_out = self._left_out + cut
        return "".join(self._head) + (f"\n… {left_out} characters left out …\n" if left_out else "") + end[cut:]


def shortened(text: str) -> str:
    """A test's output as it is kept."""
    said = Said()
    said.add(text)
    return said.text()


@dataclass(slots=True)
class Running:
    name: str
    suite: str | None
    since: float  # ms since the run began
    pid: int | None = None


@dataclass(slots=True)
class Book:
    """`running` in the order they began. A test that ends twice (retries) counts as it ended last."""

    tests: dict[tuple[str | None, str], TestCase] = field(default_factory=dict)
    running: dict[tuple[str | None, str], Running] = field(default_factory=dict)
    expected: int | None = None  # tests in all, where the framework tells before
    crash: Crash | None = None
    no_tests: NoTests | None = None
    errors: list[str] = field(default_factory=list)  # why the suite could not run whole: compile errors, a file that can't be imported
    compile_message: str | None = None
    finished: bool = False  # the framework said that all suites are done, though its process may still run

    def started(self, name: str, at: float, *, suite: str | None = None, pid: int | None = None) -> None:
        self.running.setdefault((suite, name), Running(name, suite, at, pid))

    def ended(self, case: TestCase, at: float | None = None) -> None:
        """`at` gives the duration where the framework does not."""
        key = (case.suite, case.name)
        begun = self.running.pop(key, None)
        changes: dict[str, object] = {}
        if case.duration_ms is None and begun is not None and at is not None:
            changes["duration_ms"] = at - begun.since
        if case.output is not None and len(case.output) > OUTPUT_MAX:
            changes["output"] = shortened(case.output)
        self.tests[key] = case.model_copy(update=changes) if changes else case

    def close_running(self, status: TestStatus, message: str, at: float) -> list[str]:
        """Ends all that are still running as STUCK, LOST or FAILED. Returns their names."""
        names = []
        for (suite, name), begun in list(self.running.items()):
            names.append(name)
            self.ended(TestCase(name=name, suite=suite, status=status, duration_ms=at - begun.since, failures=[Failure(name=name, message=message)]))
        return names

    def count(self, status: TestStatus) -> int:
        return sum(case.status is status for case in self.tests.values())

    def failures(self) -> Sequence[Failure]:
        """Of all tests that failed, in the order they ended; one without any word of its own has its status as message."""
        found: list[Failure] = []
        for case in self.tests.values():
            if case.status is TestStatus.FAILED:
                found.extend(case.failures or [Failure(name=case.name, file=case.file, line=case.line, message="failed; the framework gave no message")])
        return found
