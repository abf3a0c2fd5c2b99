"""A DuckDB instance that holds one session's file and can reach nothing else: no other file, no network, no setting.

Locked right after the file is attached: DuckDB then allows just the attached files, their log and its own spill folder (tried on
DuckDB 2.0: other files, COPY, ATTACH, INSTALL, glob and SET are refused). One instance a file: a file is never opened twice.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import duckdb

from actors.store.schema import ROW_GROUP_ROWS

MEMORY_BYTES_MAX: Final = 2 << 30
SPILL_BYTES_MAX: Final = 4 << 30
CATALOG: Final = "store"  # the attached file's name in SQL


def memory_bytes() -> int:
    """An eighth of the machine, at most 2 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(total // 8, MEMORY_BYTES_MAX)


def open_instance(file: Path, *, row_group_rows: int = ROW_GROUP_ROWS) -> duckdb.DuckDBPyConnection:
    """A connection with `file` (made if it is not there) attached and in use. Raises duckdb.Error when it is damaged."""
    # Each query runs in the thread that asks for it, and in no other: a heavy one can take one core, never the one that ingests.
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": f"{memory_bytes()}B",
        "temp_directory": str(file.parent / "spill"),
        "max_temp_directory_size": f"{SPILL_BYTES_MAX}B",
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "preserve_insertion_order": True,
        "late_materialization_max_rows": 1000,  # a page's other columns are read for its rows alone
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        quoted = str(file).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS {CATALOG} (ROW_GROUP_SIZE {row_group_rows})")
        connection.execute(f"USE {CATALOG}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


def roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    """A COMMIT that failed has ended its transaction already."""
    with suppress(duckdb.TransactionException):
        connection.execute("ROLLBACK")


def reader(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A second connection to the same instance: sees every commit, has its own transaction and can be interrupted alone."""
    cursor = connection.cursor()
    cursor.execute(f"USE {CATALOG}")
    return cursor
