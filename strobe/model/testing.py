"""Test runs: the words of debug_test's replies, of baselines and of strobe-ci (SPEC §4, §8). Times are milliseconds."""

from __future__ import annotations

import enum
from typing import Literal

from strobe.model.base import Noun
from strobe.model.stuck import Kind, WaitEdge, WaitNode

Level = Literal["unit", "integration", "e2e"]
Phase = Literal["compiling", "running", "suites_finished"]


class TestStatus(enum.StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    STUCK = "stuck"  # was running at the hard limit
    LOST = "lost"  # was running when its process died; the crash says how

    __test__ = False  # no test class of pytest's


class Frame(Noun):
    """One line of a failure's stack."""

    function: str | None = None
    file: str | None = None
    line: int | None = None


class Failure(Noun):
    name: str
    file: str | None = None  # relative to the project where it lies in it
    line: int | None = None
    message: str
    stack_trace: list[Frame] = []
    rerun_command: str | None = None  # one shell line, run in the project's folder
    suggested_traces: list[str] = []


class TestCase(Noun):
    """One test that ended."""

    __test__ = False

    name: str  # what `test` of debug_test finds it by; unique in its suite
    suite: str | None = None  # binary, package or file
    status: TestStatus
    duration_ms: float | None = None
    file: str | None = None
    line: int | None = None
    reason: str | None = None  # of a skipped one
    failures: list[Failure] = []  # a test may fail several times: subtests, soft assertions
    output: str | None = None  # what the framework attributes to it, cut at 64 KiB


class Candidate(Noun):
    """A framework that a project seems to use, and where. `folder` is relative to the project's, "." for itself."""

    framework: str
    confidence: int  # 0-100
    reason: str  # the evidence: "package-lock.json has vitest 3.2"
    folder: str = "."


class Crash(Noun):
    """The runner or a test's process died. `during` are the tests that were running."""

    command: str
    exit_code: int | None = None
    signal: str | None = None  # "SIGSEGV"
    during: list[str] = []
    last_lines: list[str] = []


class NoTests(Noun):
    """Nothing to run: a helpful answer, not an error."""

    project: str  # "Rust, built by cargo"
    hint: str  # how to add the first test


class StuckThread(Noun):
    name: str
    stack: list[str]  # innermost first: "function, file:line"


class WaitGraph(Noun):
    """Who waits for whom. Edges go from tid to tid."""

    nodes: list[WaitNode]
    edges: list[WaitEdge]


class StuckTest(Noun):
    """A test that was ended at its limit, and what its processes were doing just before. `kind` is None where that could not be found out."""

    name: str
    elapsed_ms: float
    diagnosis: str
    kind: Kind | None = None
    wait_graph: WaitGraph | None = None
    threads: list[StuckThread] = []
    suggested_traces: list[str] = []
    notes: list[str] = []  # what could not be looked at, and why


class SuspectedTest(Noun):
    """A test whose processes look stuck now. Advice: nothing is ended before the limit."""

    test_name: str
    idle_ms: int  # since its processes last used a processor
    diagnosis: str
    suggested_traces: list[str] = []


class TestResult(Noun):
    """What came of a run; the same in the store's catalog and in its details file."""

    __test__ = False

    framework: str
    passed: int
    failed: int
    skipped: int
    stuck: int
    duration_ms: float
    failures: list[Failure] = []
    stuck_tests: list[str] = []
    stuck_details: list[StuckTest] = []  # of the same
    errors: list[str] = []  # what could not be run at all
    no_tests: NoTests | None = None
    crash: Crash | None = None
    details: str = ""  # path of the file with all tests and the end of the output


class TestRunRecord(Noun):
    """A run in the catalog."""

    __test__ = False

    run_id: str
    client_id: str
    project_root: str
    traced: bool = False  # then there is a session of the same id
    framework: str | None = None
    started_at: int  # ns since the epoch
    ended_at: int | None = None
    status: Literal["running", "completed", "failed", "lost"]
    result: TestResult | None = None
    error: str | None = None
