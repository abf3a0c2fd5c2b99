"""Test runs in the catalog: which there were, what came of them, and how long tests took when they passed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import duckdb

from actors.store.catalog import Catalog
from actors.store.session_id import new_session_id
from strobe import paths
from strobe.errors import Code, StrobeError
from strobe.model.testing import TestRunRecord
from strobe.protocol.test_runs import CreateTestRun
from strobe.protocol.testing import TestRunEnded

RUNS_KEPT: Final = 100
TIMES_KEPT: Final = 10  # of each test
TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS test_runs(id VARCHAR PRIMARY KEY, started_at BIGINT, record VARCHAR)",
    "CREATE TABLE IF NOT EXISTS test_times(project VARCHAR, test VARCHAR, started_at BIGINT, ms DOUBLE)",
)


class TestRuns:
    __test__ = False

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        with catalog.transaction() as run:
            for statement in TABLES:
                run.execute(statement)

    def create(self, ask: CreateTestRun) -> TestRunRecord:
        """Of the oldest beyond RUNS_KEPT nothing is kept."""
        with self._catalog.transaction() as run:
            name = new_session_id(f"{PurePath(ask.project_root).name}-tests", ask.started_at, lambda name: self._taken(run, name))
            record = TestRunRecord(
                run_id=name, client_id=ask.client_id, project_root=ask.project_root, traced=ask.traced, started_at=ask.started_at, status="running"
            )  # fmt: skip
            self._put(run, record)
            old = run.execute("SELECT id FROM test_runs ORDER BY started_at DESC OFFSET ?", [RUNS_KEPT]).fetchall()
            run.executemany("DELETE FROM test_runs WHERE id = ?", old) if old else None
        for (one,) in old:
            shutil.rmtree(paths.target_path(one), ignore_errors=True)
        return record

    def end(self, news: TestRunEnded, now_ns: int) -> None:
        """A run that was forgotten meanwhile stays so."""
        with self._catalog.transaction() as run:
            found = self._find(run, news.run_id)
            if found is None:
                return
            changes = {"framework": news.framework, "status": news.status, "result": news.result, "error": news.error, "ended_at": now_ns}
            self._put(run, found.model_copy(update=changes))
            times = [(found.project_root, test, found.started_at, ms) for test, ms in news.durations_ms.items()]
            if times:
                run.executemany("INSERT INTO test_times VALUES (?, ?, ?, ?)", times)
                ranked = "SELECT rowid, row_number() OVER (PARTITION BY test ORDER BY started_at DESC) AS place FROM test_times WHERE project = ?"
                run.execute(f"DELETE FROM test_times WHERE rowid IN (SELECT rowid FROM ({ranked}) WHERE place > ?)", [found.project_root, TIMES_KEPT])

    def forget(self, run_id: str) -> None:
        with self._catalog.transaction() as run:
            run.execute("DELETE FROM test_runs WHERE id = ?", [run_id])
        shutil.rmtree(paths.target_path(run_id), ignore_errors=True)

    def lose(self, run_id: str) -> None:
        with self._catalog.transaction() as run:
            found = self._find(run, run_id)
            if found is not None and found.status == "running":
                self._put(run, found.model_copy(update={"status": "lost", "error": "Its process died again and again."}))

    def records(self, run_id: str | None, limit: int) -> list[TestRunRecord]:
        """Errors: TEST_RUN_NOT_FOUND."""
        with self._catalog.transaction() as run:
            if run_id is None:
                rows = run.execute("SELECT record FROM test_runs ORDER BY started_at DESC, id DESC LIMIT ?", [limit]).fetchall()
                return [TestRunRecord.model_validate_json(row[0]) for row in rows]
            found = self._find(run, run_id)
        if found is None:
            latest = ", ".join(one.run_id for one in self.records(None, 5))
            next_step = f"The latest are: {latest}." if latest else "There is none yet; start one with debug_test."
            raise StrobeError(Code.TEST_RUN_NOT_FOUND, f"There is no test run {run_id!r}.", next_step, value=run_id)
        return [found]

    def baselines(self, project_root: str, tests: Sequence[str]) -> dict[str, float]:
        with self._catalog.transaction() as run:
            rows = run.execute(
                "SELECT test, avg(ms) FROM test_times WHERE project = ? AND list_contains(?, test) GROUP BY test", [project_root, list(tests)]
            ).fetchall()
        return dict(rows)

    def _taken(self, run: duckdb.DuckDBPyConnection, name: str) -> bool:
        return self._find(run, name) is not None or self._catalog.find(name) is not None or paths.target_path(name).exists()

    @staticmethod
    def _find(run: duckdb.DuckDBPyConnection, run_id: str) -> TestRunRecord | None:
        row = run.execute("SELECT record FROM test_runs WHERE id = ?", [run_id]).fetchone()
        return None if row is None else TestRunRecord.model_validate_json(row[0])

    @staticmethod
    def _put(run: duckdb.DuckDBPyConnection, record: TestRunRecord) -> None:
        run.execute("INSERT OR REPLACE INTO test_runs VALUES (?, ?, ?)", [record.run_id, record.started_at, record.model_dump_json(by_alias=True)])
