"""What a session answers about the test run that it was made for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from actors.session.target import Target
from actors.session.testing.project import ProjectFolder
from actors.session.testing.run import TestRun
from actors.session.testing.stuck import StuckWatch
from actors.session.testing.traced import TracedSteps, holder
from actors.session.tracing import Tracing
from strobe import paths
from strobe.adapters.adapter import Request
from strobe.adapters.registry import ADAPTERS, adapter, detect
from strobe.artifacts import artifact_folder
from strobe.errors import Code, StrobeError
from strobe.model.testing import Candidate
from strobe.protocol.base import Done
from strobe.protocol.session import Launch, LaunchReply
from strobe.protocol.supervisor import SessionEnded
from strobe.protocol.testing import EndTests, RunTests, RunTestsReply, TestRunEnded, TestState, TestStateReply
from strobe.runtime import Actor, Context, handles

ASK: Final = "test-run"  # in the run's folder while it goes on: what was asked for, for a session process that takes over
LINGER_S: Final = 1.0  # for whoever waits for the end


class TestAnswers(Actor):
    """For the session's actor, which has either a target or a test run."""

    __test__ = False
    tests: TestRun | None = None
    target: Target | None
    tracing: Tracing | None
    _going: asyncio.Task[None] | None = None

    @handles(RunTests, completes=True)
    async def run_tests(self, ask: RunTests, context: Context) -> RunTestsReply:
        folder = paths.target_folder(ask.run_id)
        watch = StuckWatch(self, ask.run_id, self.crash)
        reply, run = await asyncio.to_thread(_begin, ask, folder, time.monotonic_ns(), watch)
        if run is not None:
            if ask.traced is not None:
                await self.launch(holder(ask), context)
                run.traced = self._traced()
                run.traced.want(ask)
            self._follow(run, ask)
        return reply

    @handles(TestState)
    async def test_state(self, ask: TestState, context: Context) -> TestStateReply:
        del context
        run = self._tests()
        if ask.wait_ms:
            try:
                async with asyncio.timeout(ask.wait_ms / 1000):
                    await run.over.wait()
            except TimeoutError:
                pass
        return run.state()

    @handles(EndTests, completes=True)
    async def end_tests(self, ask: EndTests, context: Context) -> Done:
        del ask, context
        run = self._tests()
        run.ending = True
        await run.over.wait()
        return Done()

    def take_over_tests(self, folder: Path) -> bool:
        """Goes on with the run of a session process that was killed: whatever its steps have said so far is read again. False: there is none."""
        try:
            ask, began_ns = _saved(folder)
        except FileNotFoundError:
            if (folder / paths.TEST_DETAILS).exists() and self.target is None:  # it was told; only the end of its session was not
                self.notice(SessionEnded(session_id=folder.name))
            return False
        _, run = _begin(ask, folder, began_ns, StuckWatch(self, ask.run_id, self.crash))
        if run is not None:
            run.traced = self._traced() if self.target is not None else None
            self._follow(run, ask)
        return True

    async def stop_tests(self) -> bool:
        """The session is being stopped, and its run with it. Whether its target does nothing but hold a run open."""
        if self.tests is not None:
            self.tests.ending = True
            await self.tests.over.wait()
        return self.tests is not None

    async def leave_tests(self) -> None:
        """At an orderly end nothing of a run goes on."""
        if self.tests is not None and self._going is not None:
            self.tests.ending = True
            await asyncio.wait([self._going])

    async def launch(self, ask: Launch, context: Context) -> LaunchReply:
        """The session's."""
        raise NotImplementedError

    def _traced(self) -> TracedSteps:
        assert self.target is not None and self.tracing is not None  # who calls has looked
        return TracedSteps(self.target, self.tracing, self.tracing.follower)

    def _tests(self) -> TestRun:
        if self.tests is None:
            raise StrobeError(Code.TEST_RUN_NOT_FOUND, f"{self.name} runs no tests.", "Start a run with debug_test.", value=self.session_id)
        return self.tests

    def _follow(self, run: TestRun, ask: RunTests) -> None:
        self.tests = run
        self._going = self.loop.create_task(self._go(run, ask))

    async def _go(self, run: TestRun, ask: RunTests) -> None:
        try:
            await run.go()
        except Exception as error:  # noqa: BLE001 - an adapter's fault ends this process, whose successor says so
            self.crash(error)
            return
        state = run.state()
        assert state.status != "running"  # it is over
        framework = state.result.framework if state.result else None
        ended = TestRunEnded(run_id=ask.run_id, framework=framework, status=state.status, result=state.result, error=run.error, durations_ms=run.durations())
        self.notice(ended)
        await asyncio.gather(run.watch.end(), asyncio.sleep(LINGER_S))
        await asyncio.to_thread(run.forget_environment)
        (paths.target_path(ask.run_id) / ASK).unlink(missing_ok=True)
        if run.traced is not None:
            await run.traced.end()  # the session tells its end once all is drained
        else:
            self.notice(SessionEnded(session_id=ask.run_id))


def _begin(ask: RunTests, folder: Path, began_ns: int, watch: StuckWatch) -> tuple[RunTestsReply, TestRun | None]:
    """Errors: VALIDATION_ERROR."""
    project = ProjectFolder(Path(ask.project_root).resolve(), ask.env)
    candidates = list(detect(project))
    chosen = _choose(ask, candidates)
    if chosen is None:
        hint = next((found for one in ADAPTERS if (found := one.no_tests(project)) is not None), None)
        if hint is None:
            what = f"No test framework was recognised in {ask.project_root}."
            next_step = "Give `command`, and `framework` if Strobe knows it; or the folder that holds the tests."
            raise StrobeError(Code.VALIDATION_ERROR, what, next_step, value=ask.project_root)
        return RunTestsReply(framework="", candidates=candidates, no_tests=hint), None
    work = folder / "work"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = (Path(ask.project_root) / chosen.folder).resolve()
    request = Request(
        folder=str(place), reporters=str(artifact_folder("reporters")), work=str(work), level=ask.level, test=ask.test, command=ask.command, env=ask.env
    )
    run = adapter(chosen.framework).start(project, request)
    _save(ask, folder, began_ns)
    others = [one for one in candidates if one is not chosen]
    warnings = [f"Also seen: {one.framework} in {one.folder} ({one.reason}); give `framework` to run it." for one in others[:5]]
    reply = RunTestsReply(framework=chosen.framework, candidates=candidates, warnings=warnings)
    return reply, TestRun(ask, chosen.framework, run, folder, began_ns, watch)


def _choose(ask: RunTests, candidates: list[Candidate]) -> Candidate | None:
    if ask.framework is None and ask.command is not None and not candidates:
        return Candidate(framework="generic", confidence=0, reason="`command` was given")
    if ask.framework is None:
        return candidates[0] if candidates else None
    adapter(ask.framework)  # says which there are
    found = next((one for one in candidates if one.framework == ask.framework), None)
    return found or Candidate(framework=ask.framework, confidence=0, reason="`framework` was given")


def _save(ask: RunTests, folder: Path, began_ns: int) -> None:
    file = folder / ASK
    if not file.exists():
        part = file.with_name(f"{ASK}.part")
        part.touch(mode=0o600)
        part.write_text(f"{began_ns}\n{ask.model_dump_json(by_alias=True)}")
        part.rename(file)


def _saved(folder: Path) -> tuple[RunTests, int]:
    began, _, text = (folder / ASK).read_text().partition("\n")
    return RunTests.model_validate_json(text), int(began)
