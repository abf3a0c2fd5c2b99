"""The tables of a session's file, and the read-only views that SQL may use. The one place that spells their columns.

A call is one row of `raw_calls`: its enter, and its exit when that came within the same commit. An exit that came later is a row of
`raw_exits`. So an ordinary call costs one row for two events (6–12 bytes each after compression, measured) and nothing is ever updated.
All times are ns since the session's start; all `n` are arrival numbers from one sequence over all tables: event ids are `{session}-{n}`.

Captured values are BIGINT bits: integers as they are (64-bit unsigned ones in two's complement), floats as the bits of a double,
texts as ids of `strings` (0 a null pointer, -1 unreadable). NULL: not captured.
"""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 3  # 2: types, modules, payloads; 3: sampling
ROW_GROUP_ROWS: Final = 32768  # a commit of 50 ms at full speed fills whole groups: they go to the file compressed, not through the log
VALUE_COLUMNS: Final = 6  # arguments with a column of their own; further ones go to more_values
FIRST_VALUE_COLUMNS: Final = 2  # the others are added when a hook needs them: an empty column costs a tenth of the ingest
UNWOUND: Final = 64  # bit in `flags`, beside layout.EntryFlag's

# Integers are forced to bit packing: it is what DuckDB's analysis chooses anyway, and the analysis is half the price of an insert.
_PACKED: Final = "USING COMPRESSION bitpacking"


def _table(name: str, columns: list[tuple[str, str]], *, packed: bool = False) -> str:
    body = ", ".join(f"{column} {kind} {_PACKED if packed else ''}" for column, kind in columns)
    return f"CREATE TABLE IF NOT EXISTS {name}({body})"


CALLS: Final = [
    ("n", "BIGINT"), ("exit_n", "BIGINT"), ("ts", "BIGINT"), ("exit_ts", "BIGINT"), ("hook", "INTEGER"), ("caller", "INTEGER"),
    ("thread", "INTEGER"), ("flags", "UTINYINT"), ("parent", "BIGINT"), ("ret", "BIGINT"),
    *[(f"a{k}", "BIGINT") for k in range(FIRST_VALUE_COLUMNS)],
]  # fmt: skip
EXITS: Final = [
    ("n", "BIGINT"), ("call", "BIGINT"), ("ts", "BIGINT"), ("enter_ts", "BIGINT"), ("hook", "INTEGER"), ("caller", "INTEGER"),
    ("thread", "INTEGER"), ("flags", "UTINYINT"), ("ret", "BIGINT"),
]  # fmt: skip


def _columns(text: str) -> list[tuple[str, str]]:
    """`n BIGINT, ts BIGINT` → pairs."""
    return [(name, kind) for name, kind in (part.split() for part in text.split(","))]


TABLES: Final = [
    _table("session", _columns("record VARCHAR, version INTEGER")),
    # One row. open_calls: calls entered and not yet left, as actors.store.open_calls packs them.
    _table("positions", _columns("epoch BIGINT, seq BIGINT, resume BLOB, next_n BIGINT, settled BIGINT, newest BIGINT, open_calls BLOB")),
    _table("hooks", _columns("id INTEGER, function VARCHAR, function_raw VARCHAR, file VARCHAR, line INTEGER, result_type VARCHAR, hook VARCHAR")),
    _table("threads", _columns("id INTEGER, lane INTEGER, pid INTEGER, tid INTEGER, name VARCHAR")),
    _table("strings", _columns("id BIGINT, text VARCHAR, truncated BOOLEAN")),
    _table("raw_calls", CALLS, packed=True),
    _table("raw_exits", EXITS, packed=True),
    _table("more_values", _columns("n BIGINT, position INTEGER, bits BIGINT")),
    # Packed strobe.values.bundle.Bundles, by Plan.types. Where files are mapped: bias + link-time address = runtime address.
    _table("types", _columns("key VARCHAR, body BLOB")),
    _table("modules", _columns("path VARCHAR, bias BIGINT")),
    # Of events with more to show than scalars (hook_table.is_deep), and of calls that an exception left. Compressing them would cost more
    # than twice what storing does (measured: 2.2 to 2.6 µs a row of 224 bytes, 0.9 without).
    f"CREATE TABLE IF NOT EXISTS payloads(n BIGINT {_PACKED}, bytes INTEGER {_PACKED}, body BLOB USING COMPRESSION uncompressed)",
    # bytes: only where they are not UTF-8.
    _table(
        "output",
        _columns("n BIGINT, ts BIGINT, stream UTINYINT, start BIGINT, text VARCHAR, bytes BLOB, approximate BOOLEAN, parent BIGINT, thread INTEGER"),
    ),
    _table(
        "points",
        _columns(
            "n BIGINT, ts BIGINT, type VARCHAR, pid INTEGER, tid INTEGER, thread_name VARCHAR, function VARCHAR, file VARCHAR, line INTEGER, "
            "text VARCHAR, data VARCHAR, parent BIGINT"
        ),
    ),
    _table("losses", _columns("cause VARCHAR, hook INTEGER, kind VARCHAR, lost BIGINT")),
    _table("sampling", _columns("ts BIGINT, hook INTEGER, period INTEGER")),  # from ts on, of so many calls about one is recorded; 0: all
]
