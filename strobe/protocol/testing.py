"""What a session answers about the test run that it was made for (`session:<run id>`)."""

from __future__ import annotations

from typing import ClassVar, Literal

from strobe.model.base import Noun
from strobe.model.sampling import SamplingLimits
from strobe.model.session import ChildrenPolicy
from strobe.model.testing import Candidate, Level, NoTests, Phase, SuspectedTest, TestResult
from strobe.model.watch import Watch
from strobe.protocol.base import Ask, Done, Message, Reply


class Traced(Noun):
    """The run is a session too, of the same id: what runs tests is traced, with what it starts. `children.follow` counts as true."""

    patterns: list[str]
    watches: list[Watch] = []
    sampling: SamplingLimits = SamplingLimits()
    children: ChildrenPolicy = ChildrenPolicy()


class RunTestsReply(Reply):
    framework: str
    candidates: list[Candidate]
    no_tests: NoTests | None = None  # then nothing runs
    warnings: list[str] = []


class RunTests(Ask):
    """Finds the framework, and begins. Errors: VALIDATION_ERROR for what cannot be run, FRIDA_ATTACH_FAILED where nothing can be traced."""

    TYPE: ClassVar = "session.run_tests"
    REPLY: ClassVar[type[Reply]] = RunTestsReply
    run_id: str
    project_root: str
    framework: str | None = None
    level: Level | None = None
    test: str | None = None
    command: str | None = None
    env: dict[str, str]  # whole environment of the runner, but for what its adapter adds
    limit_ms: int  # hard limit of what runs tests; compiling does not count
    traced: Traced | None = None


class RunningTest(Noun):
    name: str
    suite: str | None = None
    elapsed_ms: float
    pid: int | None = None


class TestStateReply(Reply):
    __test__ = False

    status: Literal["running", "completed", "failed"]  # failed: it could not be run to its end, `error` says why
    phase: Phase
    elapsed_ms: float
    passed: int
    failed: int
    skipped: int
    expected: int | None = None
    running: list[RunningTest] = []
    compile_message: str | None = None
    pids: list[int] = []  # of the steps that run
    suspected: list[SuspectedTest] = []
    traced: bool = False
    warnings: list[str] = []  # about what was not traced
    result: TestResult | None = None
    error: str | None = None


class TestState(Ask):
    """How the run is: when it has ended, else after `wait_ms`."""

    __test__ = False
    TYPE: ClassVar = "session.test_state"
    REPLY: ClassVar[type[Reply]] = TestStateReply
    wait_ms: int = 0


class EndTests(Ask):
    """Ends the run with everything that it started."""

    TYPE: ClassVar = "session.end_tests"
    REPLY: ClassVar[type[Reply]] = Done


class TestRunEnded(Message):
    """From the run's session: kept by the store. `durations_ms` of tests that passed."""

    __test__ = False
    TYPE: ClassVar = "session.test_run_ended"
    run_id: str
    framework: str | None
    status: Literal["completed", "failed"]
    result: TestResult | None
    error: str | None
    durations_ms: dict[str, float]
