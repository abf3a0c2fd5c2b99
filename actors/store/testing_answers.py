"""What the store answers about test runs."""

from __future__ import annotations

import asyncio
import time

from actors.store.testing import TestRuns
from strobe.protocol.base import Done
from strobe.protocol.test_runs import Baselines, BaselinesReply, CreateTestRun, ForgetTestRun, ListTestRuns, TestRunReply, TestRunsReply
from strobe.protocol.testing import TestRunEnded
from strobe.runtime import Actor, Context, handles, on_notice


class TestAnswers(Actor):
    """For the store's actor, which sets `test_runs` as it starts."""

    __test__ = False
    test_runs: TestRuns

    @handles(CreateTestRun)
    async def create_test_run(self, ask: CreateTestRun, context: Context) -> TestRunReply:
        del context
        return TestRunReply(record=await asyncio.to_thread(self.test_runs.create, ask))

    @handles(ForgetTestRun)
    async def forget_test_run(self, ask: ForgetTestRun, context: Context) -> Done:
        del context
        await asyncio.to_thread(self.test_runs.forget, ask.run_id)
        return Done()

    @handles(ListTestRuns)
    async def list_test_runs(self, ask: ListTestRuns, context: Context) -> TestRunsReply:
        del context
        return TestRunsReply(records=await asyncio.to_thread(self.test_runs.records, ask.run_id, ask.limit))

    @handles(Baselines)
    async def baselines(self, ask: Baselines, context: Context) -> BaselinesReply:
        del context
        return BaselinesReply(mean_ms=await asyncio.to_thread(self.test_runs.baselines, ask.project_root, ask.tests))

    @on_notice(TestRunEnded)
    async def test_run_ended(self, notice: TestRunEnded) -> None:
        await asyncio.to_thread(self.test_runs.end, notice, time.time_ns())
