"""The read transaction of one query. It begins with the first statement: what is answered from memory costs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


class Reading:
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._begun = False

    def execute(self, sql: str, texts: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        if not self._begun:
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            self._begun = True
        return self._connection.execute(sql, texts) if texts else self._connection.execute(sql)

    def end(self) -> None:
        if self._begun:
            self._connection.execute("ROLLBACK")
