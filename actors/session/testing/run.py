"""One test run: steps are started as their adapter wants them, and what comes of them is handed to it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import orjson

from actors.session.testing.steps import LiveStep
from strobe.adapters.adapter import Run, Step
from strobe.errors import StrobeError
from strobe.model.testing import TestResult, TestStatus
from strobe.protocol.testing import RunningTest, RunTests, TestStateReply

LOOK_S: Final = (0.005, 0.05)  # shortest and longest pause between two looks
BESIDE_MAX: Final = 4
FAILURES_MAX: Final = 200


class TestRun:
    """`go` is its whole life; everything else may be asked meanwhile and afterwards."""

    __test__ = False

    def __init__(self, ask: RunTests, framework: str, run: Run, folder: Path, began_ns: int) -> None:
        self._ask = ask
        self._framework = framework
        self._run = run
        self._folder = folder
        self._began_ns = began_ns
        self._waiting: list[Step] = []
        self._live: list[LiveStep] = []
        self._tails: list[str] = []
        self._running_ns: int | None = None  # since when tests run
        self.ending = False  # by request
        self.stuck: list[str] = []
        self.error: str | None = None
        self.result: TestResult | None = None
        self.over = asyncio.Event()

    async def go(self) -> None:
        try:
            self._waiting = list(self._run.begin())
            pause = LOOK_S[0]
            while (self._waiting or self._live) and not self.ending:
                await self._start()
                moved = self._look()
                pause = LOOK_S[0] if moved else min(pause * 1.5, LOOK_S[1])
                self._limit()
                await asyncio.sleep(pause)
        except StrobeError as error:
            self.error = f"{error.what} {error.next_step}"
        finally:
            await asyncio.to_thread(self._end_all)
        self._run.finish(self._now())
        if self.ending and not self.error:
            self.error = "The run was ended before it was through."
        self.result = self._result()
        self._save()
        self.over.set()

    def state(self) -> TestStateReply:
        book, now = self._run.book, self._now()
        compiling = any(step.step.phase == "compiling" for step in self._live)
        return TestStateReply(
            status="running" if not self.over.is_set() else "failed" if self.error else "completed",
            phase="compiling" if compiling else "suites_finished" if book.finished or self.over.is_set() else "running",
            elapsed_ms=self.result.duration_ms if self.result else now,
            passed=book.count(TestStatus.PASSED),
            failed=book.count(TestStatus.FAILED) + book.count(TestStatus.LOST),
            skipped=book.count(TestStatus.SKIPPED),
            expected=book.expected,
            running=[RunningTest(name=one.name, suite=one.suite, elapsed_ms=now - one.since, pid=one.pid) for one in book.running.values()],
            compile_message=book.compile_message,
            pids=[step.pid for step in self._live],
            result=self.result,
            error=self.error,
        )

    def durations(self) -> dict[str, float]:
        """Of tests that passed."""
        cases = self._run.book.tests.values()
        return {case.name: case.duration_ms for case in cases if case.status is TestStatus.PASSED and case.duration_ms is not None}

    async def _start(self) -> None:
        while self._waiting and (not self._live or (self._waiting[0].beside and len(self._live) < BESIDE_MAX)):
            step = self._waiting.pop(0)
            number = len(list(self._folder.glob("step-*")))
            known = next((path for path in self._folder.glob("step-*") if (path / "name").exists() and (path / "name").read_text() == step.name), None)
            folder = known or self._folder / f"step-{number}"
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "name").write_text(step.name)
            self._live.append(await asyncio.to_thread(LiveStep, step, folder / "process", self._ask.env, self._began_ns))
            if step.phase == "running" and self._running_ns is None:
                self._running_ns = time.monotonic_ns()

    def _look(self) -> bool:
        moved = False
        for live in list(self._live):
            before = live.changed_ns
            exit_ = live.advance(self._run)
            moved = moved or live.changed_ns != before
            if exit_ is not None:
                moved = True
                self._live.remove(live)
                self._tails = live.tail
                reports = live.reports()
                live.close()
                self._waiting[:0] = self._run.ended(live.step.name, exit_, reports, self._now())
        return moved

    def _limit(self) -> None:
        """A test that runs for longer than its limit is stuck; where the framework does not tell what runs, so is one that says nothing for so long."""
        now = time.monotonic_ns()
        for live in self._live:
            if live.step.phase != "running" or live.killed:
                continue
            oldest = min((one.since for one in self._run.book.running.values()), default=None)
            since_ms = (now - live.changed_ns) / 1e6 if oldest is None else self._now() - oldest
            if since_ms > self._ask.limit_ms:
                what = f"Still running after {since_ms / 1000:.1f} s; the limit is {self._ask.limit_ms / 1000:g} s."
                names = self._run.book.close_running(TestStatus.STUCK, what, self._now())
                self.stuck += names or [live.step.name]
                live.kill()

    def _end_all(self) -> None:
        for live in self._live:
            live.close()
        self._live.clear()

    def _now(self) -> float:
        return (time.monotonic_ns() - self._began_ns) / 1e6

    def _result(self) -> TestResult:
        book = self._run.book
        return TestResult(
            framework=self._framework,
            passed=book.count(TestStatus.PASSED),
            failed=book.count(TestStatus.FAILED) + book.count(TestStatus.LOST),
            skipped=book.count(TestStatus.SKIPPED),
            stuck=len(self.stuck),
            duration_ms=round(self._now(), 1),
            failures=list(book.failures())[:FAILURES_MAX],
            stuck_tests=self.stuck,
            errors=book.errors,
            no_tests=book.no_tests,
            crash=book.crash,
            details=str(self._folder / "details.json"),
        )

    def _save(self) -> None:
        """Every test, and the end of what the last step printed."""
        assert self.result is not None
        tests = [case.model_dump(by_alias=True, mode="json", exclude_none=True) for case in self._run.book.tests.values()]
        result = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        content = {"result": result, "tests": tests, "lastLines": self._tails, "error": self.error}
        (self._folder / "details.json").write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
