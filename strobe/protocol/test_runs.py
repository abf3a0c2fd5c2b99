"""What the store answers about test runs: which there were, what came of them, how long tests took."""

from __future__ import annotations

from typing import ClassVar

from strobe.model.testing import TestRunRecord
from strobe.protocol.base import Ask, Done, Reply


class TestRunReply(Reply):
    __test__ = False

    record: TestRunRecord


class CreateTestRun(Ask):
    """Allots the id: `{project}-tests-{YYYY-MM-DD}-{HH}h{MM}`. Runs of one project may go on side by side."""

    TYPE: ClassVar = "store.create_test_run"
    REPLY: ClassVar[type[Reply]] = TestRunReply
    client_id: str
    project_root: str
    started_at: int
    traced: bool = False


class ForgetTestRun(Ask):
    """A run that never began."""

    TYPE: ClassVar = "store.forget_test_run"
    REPLY: ClassVar[type[Reply]] = Done
    run_id: str


class TestRunsReply(Reply):
    __test__ = False

    records: list[TestRunRecord]  # latest first


class ListTestRuns(Ask):
    """All, or one: TEST_RUN_NOT_FOUND where there is none."""

    TYPE: ClassVar = "store.list_test_runs"
    REPLY: ClassVar[type[Reply]] = TestRunsReply
    run_id: str | None = None
    limit: int = 50


class BaselinesReply(Reply):
    mean_ms: dict[str, float]  # by test; only of tests that passed before


class Baselines(Ask):
    """How long tests of a project took, over the last 10 runs in which they passed."""

    TYPE: ClassVar = "store.baselines"
    REPLY: ClassVar[type[Reply]] = BaselinesReply
    project_root: str
    tests: list[str]  # at most 200
