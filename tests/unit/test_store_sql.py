"""SQL by the caller: what it may read, what it is refused, how it is bounded."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import structlog

from actors.store.session_file import SessionFile
from actors.store.sql import run_sql
from actors.store.writer import SessionWriter
from strobe.errors import Code, StrobeError
from tests.bench.store_records import Lane, record, records, two_functions


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    file = SessionFile(tmp_path / "demo.duckdb", record())
    writer = SessionWriter(file, structlog.get_logger())
    writer.accept({"epoch": 1, "seq": 1, "kind": "hooks", "hooks": [hook.model_dump(by_alias=True) for hook in two_functions()]}, [])
    lane = Lane().enter(100, 1, 1, struct.pack("<ii", 5, 6)).enter(200, 2, 2, struct.pack("<ii", 7, 8), parent=1).exit(350, 2, 2, 42)
    header, frames = records(lane)
    writer.accept({"epoch": 1, "seq": 2, **header}, frames)
    writer.commit()
    yield file.reader()
    file.close()


def test_select_over_the_views(reader: duckdb.DuckDBPyConnection) -> None:
    reply = run_sql(reader, "SELECT function, duration_ns, caller, result FROM calls ORDER BY n", 10)
    assert (reply.columns, reply.truncated) == (["function", "duration_ns", "caller", "result"], False)
    assert reply.rows == [["outer", None, None, None], ["inner", 150, "outer", 42]]
    assert run_sql(reader, "EXPLAIN SELECT 1", 10).rows
    assert run_sql(reader, "FROM events_v SELECT count(*)", 10).rows == [[3]]


def test_rows_are_bounded_and_said_to_be(reader: duckdb.DuckDBPyConnection) -> None:
    reply = run_sql(reader, "SELECT * FROM range(1000)", 10)
    assert len(reply.rows) == 10 and reply.truncated
    assert not run_sql(reader, "SELECT * FROM range(10)", 10).truncated
    wide = run_sql(reader, "SELECT repeat('x', 90000) FROM range(500)", 500)
    assert wide.truncated and sum(len(row[0]) for row in wide.rows) < 3 << 20


def test_values_that_json_has_no_name_for(reader: duckdb.DuckDBPyConnection) -> None:
    row = run_sql(reader, "SELECT 170141183460469231731687303715884105727, 'nan'::DOUBLE, 1.5, [1, 2], {'a': 1}, 'ab'::BLOB, DATE '2026-01-02', NULL", 1).rows[
        0
    ]
    assert row == ["170141183460469231731687303715884105727", "nan", 1.5, [1, 2], {"a": 1}, "YWI=", "2026-01-02", None]


REFUSED = [
    "SELECT 1; SELECT 2",
    "",
    "INSERT INTO raw_calls(n) VALUES (1)",
    "UPDATE positions SET seq = 0",
    "DELETE FROM raw_calls",
    "DROP TABLE raw_calls",
    "CREATE TABLE x(a INT)",
    "ATTACH '/tmp/x.db'",
    "COPY raw_calls TO '/tmp/x.csv'",
    "SET threads = 9",
    "PRAGMA database_list",
    "CALL force_checkpoint()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "EXPLAIN ANALYZE INSERT INTO raw_calls(n) VALUES (1)",
    "WITH x AS (INSERT INTO raw_calls(n) VALUES (1) RETURNING *) SELECT * FROM x",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM READ_BLOB('/etc/passwd')",
    "SELECT * FROM \"read_csv\"('/etc/passwd')",
    "SELECT * FROM main.read_text /* x */ ('/etc/passwd')",
    "SELECT $$'$$, * FROM read_text('/etc/passwd'), (SELECT $$'$$)",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM checkpoint()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM force_checkpoint()",
    "SELECT * FROM enable_logging()",
    "SELECT getenv('HOME')",
    "SELECT nosuch FROM calls",
    "SELECT * FROM nosuch",
    "SELEC 1",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_else_is_refused(reader: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(StrobeError) as refused:
        run_sql(reader, sql, 10)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert run_sql(reader, "SELECT count(*) FROM raw_calls", 10).rows == [[2]]


def test_words_in_texts_and_comments_are_no_functions(reader: duckdb.DuckDBPyConnection) -> None:
    assert run_sql(reader, "SELECT 'read_text(' -- glob(1)", 10).rows == [["read_text("]]


def test_a_query_can_be_interrupted(reader: duckdb.DuckDBPyConnection) -> None:
    timer = threading.Timer(0.2, reader.interrupt)
    timer.start()
    started = time.monotonic()
    with pytest.raises(duckdb.InterruptException):
        run_sql(reader, "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b", 10)
    assert time.monotonic() - started < 5
    assert run_sql(reader, "SELECT 1", 1).rows == [[1]]
