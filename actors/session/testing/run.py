"""One test run: steps are started as their adapter wants them, and what comes of them is handed to it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import orjson

from actors.session.testing.steps import LiveStep
from actors.session.testing.stuck import StuckWatch, stuck_tests
from actors.session.testing.traced import TracedSteps
from strobe import paths
from strobe.adapters.adapter import Run, Step
from strobe.errors import StrobeError
from strobe.model.testing import Failure, StuckTest, TestCase, TestResult, TestStatus
from strobe.protocol.testing import RunningTest, RunTests, TestStateReply

LOOK_S: Final = (0.005, 0.05)  # shortest and longest pause between two looks
BESIDE_MAX: Final = 4
FAILURES_MAX: Final = 200


class TestRun:
    """`go` is its whole life; everything else may be asked meanwhile and afterwards."""

    __test__ = False

    traced: TracedSteps | None = None  # set before `go` where the run is traced

    def __init__(self, ask: RunTests, framework: str, run: Run, folder: Path, began_ns: int, watch: StuckWatch) -> None:
        self._ask = ask
        self._framework = framework
        self._run = run
        self._folder = folder
        self._began_ns = began_ns
        self._waiting: list[Step] = []
        self._live: list[LiveStep] = []
        self.watch = watch
        self._condemned: dict[LiveStep, asyncio.Task[None]] = {}  # steps at their limit, while it is looked at what they hang on
        self._tails: list[str] = []
        self._unread = 0  # events of reporters
        self._running_ns: int | None = None  # since when tests run
        self.ending = False  # by request
        self.stuck: list[StuckTest] = []
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
            for task in self._condemned.values():
                task.cancel()
            await asyncio.to_thread(self._end_all)
            for live in self._live:
                self.watch.ends(live.step.name)
            self._live.clear()
        self._run.finish(self._now())
        if self.ending and not self.error:
            self.error = "The run was ended before it was through."
        self.result = self._result()
        self._save()
        if self.traced is not None:
            await self.traced.settle()
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
            traced=self.traced is not None,
            warnings=self.traced.told(over=self.over.is_set()) if self.traced is not None else [],
            suspected=self.watch.suspected(list(book.running.values())),
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
        while self._waiting and (not self._live or (self._waiting[0].beside and self.traced is None and len(self._live) < BESIDE_MAX)):
            step = self._waiting.pop(0)
            number = len(list(self._folder.glob("step-*")))
            known = next((path for path in self._folder.glob("step-*") if (path / "name").exists() and (path / "name").read_text() == step.name), None)
            folder = known or self._folder / f"step-{number}"
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "name").write_text(step.name)
            traced = self.traced if step.phase == "running" else None
            live = await asyncio.to_thread(LiveStep, step, folder / "process", self._ask.env, self._began_ns, held=traced is not None)
            self._live.append(live)
            if traced is not None and live.held:
                await traced.bring_in(live)
                live.changed_ns = time.monotonic_ns()
            if live.condemned_before:  # perhaps it was not killed any more
                await asyncio.to_thread(live.kill)
            self.watch.begins(step.name, live.pid)
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
                self.watch.ends(live.step.name)
                self._tails = live.tail
                self._tell_stuck(live.condemned_before)
                self._unread += live.unread
                reports = live.reports()
                live.close()
                self._waiting[:0] = self._run.ended(live.step.name, exit_, reports, self._now())
        return moved

    def _limit(self) -> None:
        """A test that runs for longer than its limit is stuck; where the framework does not tell what runs, so is one that says nothing for so long."""
        for live, task in list(self._condemned.items()):
            if task.done():
                del self._condemned[live]
                task.result()
        for live in self._live:
            if live.step.phase == "running" and not live.killed and live not in self._condemned and self._over_limit(live) is not None:
                self._condemned[live] = asyncio.get_running_loop().create_task(self._condemn(live))

    def _over_limit(self, live: LiveStep) -> tuple[object, float] | None:
        """What is over its limit, and since when it runs or is silent (ms of the run)."""
        oldest = min(self._run.book.running.values(), key=lambda one: one.since, default=None)
        since = (live.changed_ns - self._began_ns) / 1e6 if oldest is None else oldest.since
        if self._now() - since <= self._ask.limit_ms:
            return None
        return (None if oldest is None else (oldest.suite, oldest.name)), since

    async def _condemn(self, live: LiveStep) -> None:
        """Looked at, then killed; spared if what was over its limit has ended meanwhile."""
        over = self._over_limit(live)
        found = await self.watch.diagnose(live.pid)
        if live not in self._live or over is None or self._over_limit(live) != over:
            return
        running, now = list(self._run.book.running.values()), self._now()
        names = [one.name for one in running] or [live.step.name]
        stuck = stuck_tests(names, [now - one.since for one in running] or [now - over[1]], found)
        live.condemn(stuck)
        self._tell_stuck(stuck)
        await asyncio.to_thread(live.kill)

    def _tell_stuck(self, stuck: list[StuckTest]) -> None:
        self.stuck += stuck
        for one in stuck:
            self._end_stuck(one)

    def _end_stuck(self, stuck: StuckTest) -> None:
        book = self._run.book
        what = f"Still running after {stuck.elapsed_ms / 1000:.1f} s; the limit is {self._ask.limit_ms / 1000:g} s. It looked like this: {stuck.diagnosis}"
        for begun in [one for one in book.running.values() if one.name == stuck.name]:
            failure = Failure(name=stuck.name, message=what, suggested_traces=stuck.suggested_traces)
            case = TestCase(name=begun.name, suite=begun.suite, status=TestStatus.STUCK, duration_ms=stuck.elapsed_ms, failures=[failure])
            book.ended(case)

    def _end_all(self) -> None:
        for live in self._live:
            live.close()

    def _now(self) -> float:
        return (time.monotonic_ns() - self._began_ns) / 1e6

    def _result(self) -> TestResult:
        book = self._run.book
        stuck = [one.name for one in self.stuck]
        stuck += [case.name for case in book.tests.values() if case.status is TestStatus.STUCK and case.name not in stuck]
        return TestResult(
            framework=self._framework,
            passed=book.count(TestStatus.PASSED),
            failed=book.count(TestStatus.FAILED) + book.count(TestStatus.LOST),
            skipped=book.count(TestStatus.SKIPPED),
            stuck=len(stuck),
            stuck_details=self.stuck,
            duration_ms=round(self._now(), 1),
            failures=list(book.failures())[:FAILURES_MAX],
            stuck_tests=stuck,
            errors=book.errors,
            no_tests=book.no_tests,
            crash=book.crash,
            details=str(self._folder / paths.TEST_DETAILS),
        )

    def _save(self) -> None:
        """Every test, and the end of what the last step printed."""
        assert self.result is not None
        tests = [case.model_dump(by_alias=True, mode="json", exclude_none=True) for case in self._run.book.tests.values()]
        result = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        content = {"result": result, "tests": tests, "lastLines": self._tails, "error": self.error, "unreadEvents": self._unread}
        try:
            Path(self.result.details).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
        except FileNotFoundError:  # the run was deleted meanwhile
            self.result = self.result.model_copy(update={"details": ""})

    def forget_environment(self) -> None:
        """What its steps were started with is kept no longer than the run goes on."""
        for launch in self._folder.glob("step-*/process/launch"):
            launch.unlink(missing_ok=True)
