"""The read transaction of one query. It begins with the first statement: what is answered from memory costs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


class NeedsStatementError(Exception):
    """What was asked for is not all in memory."""


class Reading:
    """`connection` None: from memory alone; a statement raises NeedsStatementError."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | None) -> None:
        self._connection = connection
        self._begun = False

    def execute(self, sql: str, texts: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise NeedsStatementError
        if not self._begun:
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            self._begun = True
        return self._connection.execute(sql, texts) if texts else self._connection.execute(sql)

    def end(self) -> None:
        if self._begun and self._connection is not None:
            self._connection.execute("ROLLBACK")
