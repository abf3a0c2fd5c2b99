"""SQL by the caller: one SELECT or EXPLAIN over the documented views (sql_views.py), read-only, bounded in rows, bytes and time.

The instance itself can reach no other file (instance.py). Here: one statement of a reading kind, in a read-only transaction, without the
functions that touch files or the instance.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import duckdb

from strobe.errors import Code, StrobeError
from strobe.protocol.store import SqlReply

SQL_BYTES_MAX: Final = 100_000
REPLY_BYTES_MAX: Final = 2 << 20
CELL_CHARACTERS_MAX: Final = 100_000
_ALLOWED: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
# Functions that read files or memory (which the instance refuses too, less clearly), run other SQL text, or act on the instance.
_REFUSED: Final = re.compile(
    r"read_\w+|\w+_scan\w*|glob|sniff_csv|parquet_\w+|\w*checkpoint|(?:en|dis)able_\w+|set_\w+|setval|nextval|setseed|write_\w+|truncate_\w+|duckdb_logs?\w*"
    r"|\w*external_\w+|load_\w+|install\w*|which_secret|duckdb_secrets|duckdb_settings|duckdb_temporary_files|current_setting|getenv|query|query_table"
    r"|json_execute_serialized_sql|python_\w+|pandas_\w+|test_\w+|sleep_ms",
    re.IGNORECASE,
)
_NEXT: Final = "Use one SELECT over calls, events_v, output_v, crashes_v, samples_v, hooks, threads, strings, losses (DESCRIBE shows their columns)."


def run_sql(connection: duckdb.DuckDBPyConnection, sql: str, limit: int) -> SqlReply:
    """Raises VALIDATION_ERROR for anything but one reading statement, and for what DuckDB finds wrong with it."""
    statement = checked(connection, sql)
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        answer = connection.execute(statement)
        columns = [(str(column[0]), str(column[1])) for column in answer.description or []]
        rows, truncated = _fetch(answer, limit)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except duckdb.Error as error:
        raise _refused(error, sql) from None
    finally:
        connection.execute("ROLLBACK")
    return SqlReply(columns=[name for name, _ in columns], types=[kind for _, kind in columns], rows=rows, truncated=truncated)


def checked(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    if len(sql.encode()) > SQL_BYTES_MAX:
        raise StrobeError(Code.VALIDATION_ERROR, f"sql is longer than {SQL_BYTES_MAX:,} bytes.", "Shorten it.")
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise _refused(error, sql) from None
    if len(statements) != 1 or statements[0].type not in _ALLOWED:
        kinds = ", ".join(str(statement.type).rpartition(".")[2] for statement in statements) or "nothing"
        raise StrobeError(Code.VALIDATION_ERROR, f"sql must be one SELECT or EXPLAIN; it is {kinds}.", _NEXT, value=sql[:200])
    for name in _called(sql):
        if _REFUSED.fullmatch(name):
            raise StrobeError(Code.VALIDATION_ERROR, f"The function {name} is not available here.", _NEXT, value=name)
    return statements[0]


def _called(sql: str) -> Iterator[str]:
    """Names followed by a parenthesis, by DuckDB's own tokens: texts and comments cannot hide or fake one."""
    tokens = duckdb.tokenize(sql)
    ends = [start for start, _ in tokens[1:]] + [len(sql.encode())]
    text = sql.encode()
    words = [(kind, text[start:end].decode("utf-8", "replace").strip()) for (start, kind), end in zip(tokens, ends, strict=True)]
    words = [(kind, word) for kind, word in words if kind != duckdb.token_type.comment]
    for (_, word), (_, following) in pairwise(words):
        if following.startswith("("):
            yield word.strip('"').rpartition(".")[2].strip('"')


def _refused(error: duckdb.Error, sql: str) -> StrobeError:
    text = str(error)
    if "pytz" in text:
        return StrobeError(Code.VALIDATION_ERROR, "A column holds times with a time zone.", "Cast it to VARCHAR.", value=sql[:200])
    return StrobeError(Code.VALIDATION_ERROR, f"sql: {text[:1000]}", _NEXT, value=sql[:200])


def _fetch(answer: duckdb.DuckDBPyConnection, limit: int) -> tuple[list[list[Any]], bool]:
    """Up to `limit` rows, and whether there were more (or they grew too large)."""
    rows: list[list[Any]] = []
    size = 0
    while part := answer.fetchmany(256):
        for row in part:
            cells = [plain(cell) for cell in row]
            size += sum(len(cell) if isinstance(cell, str) else 16 for cell in cells)
            if len(rows) == limit or (rows and size > REPLY_BYTES_MAX):
                return rows, True
            rows.append(cells)
    return rows, False


def plain(cell: Any) -> Any:
    """A value as msgpack and JSON can carry it."""
    match cell:
        case None | bool():
            return cell
        case int():
            return cell if -(1 << 63) <= cell < 1 << 64 else str(cell)
        case float():
            return cell if math.isfinite(cell) else str(cell)
        case str():
            return cell if len(cell) <= CELL_CHARACTERS_MAX else f"{cell[:CELL_CHARACTERS_MAX]}… ({len(cell):,} characters)"
        case Decimal():
            return float(cell)
        case bytes():
            return base64.b64encode(cell[:CELL_CHARACTERS_MAX]).decode()
        case list() | tuple():
            return [plain(item) for item in cell]
        case dict():
            return {str(key): plain(item) for key, item in cell.items()}
        case _:
            return str(cell)
